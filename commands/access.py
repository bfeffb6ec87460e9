"""Which configuration a command means: a state directory of `tidings dev`, or the settings of a deployment."""

import getpass
import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from api.auth import mint, signing_secret
from dev.stack import Addresses
from dev.state_dir import DEFAULT, StateDir
from process import Refused
from settings import CONFIG_VARIABLE, DEFAULT_FILE, OTHER_VARIABLES, PREFIX, load

TOKEN_LIFETIME = timedelta(minutes=5)
"""Of a token that a command mints for itself."""


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line said about it."""

    state_dir: Path | None
    config: Path | None

    def secret(self) -> str:
        """The secret that tokens are signed with. Raises Refused or SettingsError."""
        if self._deployment():
            return signing_secret(load(self.config).auth)
        return self._state().jwt_secret()

    def api_url(self) -> str:
        """The API's address. Raises Refused or SettingsError."""
        if self._deployment():
            api = load(self.config).api
            return f"http://{f'[{api.host}]' if ':' in api.host else api.host}:{api.port}"
        addresses = Addresses.of(self._state())
        if addresses is None:
            raise Refused("no running stack is known here; name the API with --api-url, or start `tidings dev`")
        return addresses.api

    def token(self, tenant: str | None, permissions: list[str]) -> str:
        """A short-lived token for whoever runs the command. Raises Refused or SettingsError."""
        if tenant is None:
            raise Refused("name the tenant with --tenant, or give a token with --token or TIDINGS_TOKEN")
        return mint(
            self.secret(),
            tenant=tenant,
            subject=getpass.getuser(),
            permissions=permissions,
            lifetime=TOKEN_LIFETIME,
        )

    def _state(self) -> StateDir:
        return StateDir(self.state_dir or DEFAULT)

    def _deployment(self) -> bool:
        if self.state_dir is not None:
            return False
        by_environment = any(name.startswith(PREFIX) and name not in OTHER_VARIABLES for name in os.environ)
        named = self.config is not None or CONFIG_VARIABLE in os.environ
        return named or by_environment or Path(DEFAULT_FILE).is_file()
