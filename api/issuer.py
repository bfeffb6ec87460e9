"""The keys that an issuer publishes: fetched beside the event loop, kept for minutes, left alone while it is away."""

import time
from typing import Any

import jwt
from anyio import CapacityLimiter, to_thread

from api.errors import Rejected
from settings import SettingsError

KEPT_S = 300.0
"""How long a key is trusted after the issuer has stopped to publish it."""
TIMEOUT_S = 5.0
AWAY_S = 1.0
"""How long an issuer that did not answer well is not asked again: whoever sends bad tokens must not make us wait."""


class IssuerKeys:
    """Finds the key of a token by the name the token gives it."""

    def __init__(self, url: str) -> None:
        """Fetches nothing yet. Raises SettingsError when the URL is none for the web."""
        try:
            self._client = _Client(url, lifespan=KEPT_S, timeout=TIMEOUT_S)
        except jwt.PyJWKClientError:
            raise SettingsError("auth.jwks_url: must begin with http:// or https://") from None
        self._one_at_a_time = CapacityLimiter(1)

    async def key_of(self, token: str) -> Any:
        """The token's key. Raises Rejected with 503 while keys cannot be fetched, PyJWTError when there is no such key.

        In a thread, for it may wait for the network; in one only, for the client has a lock.
        """
        try:
            return await to_thread.run_sync(self._client.get_signing_key_from_jwt, token, limiter=self._one_at_a_time)
        except jwt.PyJWKClientConnectionError:
            headers = {"Retry-After": "1"}
            raise Rejected(503, "auth_unavailable", "The issuer's keys cannot be fetched.", headers) from None


class _Client(jwt.PyJWKClient):
    """Whatever goes wrong with a fetch is one error, and the next fetch waits for a moment."""

    _away_until = 0.0

    def fetch_data(self) -> Any:
        if time.monotonic() < self._away_until:
            raise jwt.PyJWKClientConnectionError("it did not answer well a moment ago")
        try:
            return super().fetch_data()
        except (jwt.PyJWTError, OSError, ValueError, AttributeError) as fault:
            self._away_until = time.monotonic() + AWAY_S
            raise jwt.PyJWKClientConnectionError(type(fault).__name__) from None
