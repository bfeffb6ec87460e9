"""The state directory: private, complete or absent, used by one process at a time."""

import base64
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dev.state_dir import StateDir
from process import Refused

ROOT = Path(__file__).parent.parent.parent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_making_one_touches_nothing(tmp_path: Path) -> None:
    StateDir(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "deep" / "state")
    with state.held():
        assert mode(state.path) == 0o700
        assert mode(state.secrets_dir) == 0o700
        assert mode(state.jwt_secret_file) == 0o600
        assert mode(state.webhook_secret_file) == 0o600


def test_one_that_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    tmp_path.chmod(0o755)
    with state.held():
        assert mode(tmp_path) == 0o700


def test_secrets_are_strong_and_stay(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    with state.held():
        secrets = state.jwt_secret(), state.webhook_secret_file.read_text()
    assert len(secrets[0]) >= 32
    assert secrets[1].startswith("whsec_")
    assert len(base64.b64decode(secrets[1].removeprefix("whsec_"), validate=True)) == 32
    with state.held():
        assert (state.jwt_secret(), state.webhook_secret_file.read_text()) == secrets


def test_a_secret_that_was_half_written_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / ".jwt.secret.new").write_text("half")
    state = StateDir(tmp_path)
    with state.held():
        assert len(state.jwt_secret()) >= 32
    assert not (tmp_path / ".jwt.secret.new").exists()


def test_a_second_user_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    with state.held():
        message = rf"^another `tidings dev` \(process {os.getpid()}\) is using "
        with pytest.raises(Refused, match=message), StateDir(tmp_path).held():
            pytest.fail("two users hold one directory")
    with state.held():
        pass


def test_a_killed_user_leaves_no_lock_behind(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom dev.state_dir import StateDir\n"
        "with StateDir(Path(sys.argv[1])).held():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Refused, match=rf"\(process {holder.pid}\)"), StateDir(tmp_path).held():
            pytest.fail("two processes hold one directory")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with StateDir(tmp_path).held():
        pass


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"^cannot use .*/file: File exists$"), StateDir(tmp_path / "file").held():
        pass


def test_asking_for_a_secret_before_the_first_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"holds no development stack; start `tidings dev` first$"):
        StateDir(tmp_path).jwt_secret()
