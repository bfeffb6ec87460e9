"""Signing secrets by name, read at every send so that a rotation needs no restart."""

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from domain.errors import NotSendable
from domain.outcome import Scope, not_sent

# No separator and no leading full stop: a name can only ever be a file in the folder, or in the tenant's folder in it.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")


class Secrets:
    """A folder with one file per secret, which wins, and the secrets of the configuration."""

    def __init__(self, folder: Path | None, configured: Mapping[str, SecretStr]) -> None:
        self._folder = folder
        self._configured = configured

    def live(self, tenant: str, name: str | None) -> tuple[str, ...]:
        """Every live secret of that name, separated by white space where it is kept. Raises NotSendable for none.

        `TENANT/NAME` belongs to one tenant and wins; a plain `NAME` is shared by all of them.
        """
        if name and _NAME.fullmatch(name):
            own = f"{tenant}/{name}" if _NAME.fullmatch(tenant) else name
            if found := tuple((self._text(own) or self._text(name)).split()):
                return found
        raise NotSendable(not_sent("secret_missing", scope=Scope.CONFIG))

    def _text(self, name: str) -> str:
        if self._folder is not None:
            try:
                return (self._folder / name).read_text(encoding="utf-8")
            except (FileNotFoundError, NotADirectoryError):
                pass
            except (OSError, UnicodeDecodeError):  # there but unreadable: never fall back to an older secret
                return ""
        configured = self._configured.get(name)
        return configured.get_secret_value() if configured else ""
