"""The directory that a development stack keeps its databases and secrets in; one process at a time may use it."""

import base64
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from process import Refused

DEFAULT = Path(".tidings")
WEBHOOK_SECRET = "webhook"
"""The name of the webhook signing secret in `secrets_dir`."""


class StateDir:
    """The paths in one state directory. Making one touches nothing; `held` does."""

    def __init__(self, path: Path = DEFAULT) -> None:
        self.path = path.absolute()
        self.lock_file = self.path / "lock"
        self.state_database = self.path / "tidings.db"
        self.temporal_database = self.path / "temporal.db"
        self.temporal_log = self.path / "temporal.log"
        self.jwt_secret_file = self.path / "jwt.secret"
        self.secrets_dir = self.path / "secrets"

    @property
    def webhook_secret_file(self) -> Path:
        """The `whsec_…` secret that webhooks are signed with."""
        return self.secrets_dir / WEBHOOK_SECRET

    @contextmanager
    def held(self) -> Iterator[None]:
        """Creates what is missing and keeps every other process out until the end. Raises Refused."""
        with self._usable():
            _private_directory(self.path)
            lock = _locked(self.lock_file)
        try:
            with self._usable():
                _private_directory(self.secrets_dir)
                _keep(self.jwt_secret_file, _jwt_secret)
                _keep(self.webhook_secret_file, _webhook_secret)
            yield
        finally:
            os.close(lock)

    def jwt_secret(self) -> str:
        """The secret that tokens are signed with. Raises Refused when no stack has used this directory yet."""
        try:
            return self.jwt_secret_file.read_text(encoding="ascii")
        except FileNotFoundError:
            raise Refused(f"{self.path} holds no development stack; start `tidings dev` first") from None
        except OSError as error:
            raise Refused(f"cannot read {self.jwt_secret_file}: {error.strerror}") from None

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Refused(f"cannot use {error.filename or self.path}: {error.strerror}") from None


def _private_directory(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)  # it may be older, or the umask stranger, than we think


def _locked(file: Path) -> int:
    """An open file that holds the lock until it is closed, by us or by the end of the process, however it ends."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(lock, 20).decode(errors="replace").strip()
        os.close(lock)
        raise Refused(f"another `tidings dev` (process {owner}) is using {file.parent}") from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def _keep(file: Path, make: Callable[[], str]) -> None:
    """Writes what `make` gives unless the file is there; after a crash it is there completely or not at all."""
    if file.exists():
        return
    unfinished = file.with_name(f".{file.name}.new")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as new:
        new.write(make())
        new.flush()
        os.fsync(new.fileno())
    unfinished.rename(file)
    _sync_directory(file.parent)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _jwt_secret() -> str:
    return secrets.token_urlsafe(48)


def _webhook_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode("ascii")
