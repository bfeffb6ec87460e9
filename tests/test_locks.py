"""The lock files hold what pyproject.toml asks for, hashed, in agreement, and name no place to get it from."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = ["requirements.lock", "requirements-test.lock"]


def entries(lock: str) -> dict[str, str]:
    """What is locked: name to version."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+) ", text, flags=re.MULTILINE))


def asked_for(*extras: str) -> set[str]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["build"]]
    for extra in extras:
        wanted += project["project"]["optional-dependencies"][extra]
    return {re.split(r"[\[<>=~! ]", requirement)[0] for requirement in wanted}


def test_everything_asked_for_is_locked() -> None:
    assert asked_for("dev-server") <= entries("requirements.lock").keys()
    assert asked_for("dev-server", "test") <= entries("requirements-test.lock").keys()


def test_both_agree() -> None:
    assert entries("requirements.lock").items() <= entries("requirements-test.lock").items()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_or_a_hash(lock: str) -> None:
    pin = r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; [a-z_]+ [!=]= '[A-Za-z0-9]+'( and [a-z_]+ [!=]= '[A-Za-z0-9]+')*)? \\"
    line_of_a_lock = re.compile(rf"{pin}|    --hash=sha256:[0-9a-f]{{64}}( \\)?")
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line_of_a_lock.fullmatch(line)] == []
