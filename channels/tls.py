"""Whom we trust when a provider or receiver shows its certificate."""

import ssl
from pathlib import Path

import httpx


def trust(ca_file: Path | None = None) -> ssl.SSLContext:
    """A verifying context: the public authorities that come with httpx, this machine's own, and `ca_file`.

    Loading them takes tens of milliseconds, so build one per process, never one per send.
    """
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context
