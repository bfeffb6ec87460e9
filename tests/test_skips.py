"""A skipped test, and a skipped file, fail the run in CI and nowhere else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Samples for a pytest of their own, to show that CI refuses a skip: no test of ours is skipped.
SKIPPED_TEST = "import pytest\ndef test_it():\n    pytest.skip('no time')\n"
SKIPPED_FILE = "import pytest\npytest.skip('no time', allow_module_level=True)\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_it():\n    assert False\n"


@pytest.mark.parametrize(
    ("source", "ci", "fails"),
    [
        (SKIPPED_TEST, "true", True),
        (SKIPPED_FILE, "true", True),
        (EXPECTED_FAILURE, "true", False),
        (SKIPPED_TEST, "", False),
    ],
)
def test_skips_fail_in_ci_only(tmp_path: Path, source: str, ci: str, fails: bool) -> None:
    (tmp_path / "test_planted.py").write_text(source)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode != 0) is fails, run.stdout
    assert ("which CI does not allow" in run.stdout) is fails
