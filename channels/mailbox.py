"""E-mail addresses in the only form that every server takes: ASCII, one mailbox, no comment, no quoting."""

import re

import idna

_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOMAIN = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")


def ascii_mailbox(address: str) -> str:
    """The address with its domain as an A-label. Raises ValueError, without the address, when it is none.

    A local part outside ASCII needs SMTPUTF8 on every hop to the mailbox; encoding it some other way makes an address
    that belongs to nobody, so it is refused.
    """
    local, _, domain = address.rpartition("@")
    domain = _ascii_domain(domain)
    if len(local) > 64 or not _LOCAL.fullmatch(local) or len(domain) > 253 or not _DOMAIN.fullmatch(domain):
        raise ValueError("not an e-mail address")
    return f"{local}@{domain}"


def _ascii_domain(domain: str) -> str:
    if domain.isascii():
        return domain.lower()
    try:
        return idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        raise ValueError("not an e-mail address") from None
