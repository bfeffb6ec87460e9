"""The address guard: where a send may connect to, resolved once and pinned, so that a name cannot change under us."""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpx

from domain.errors import NotSendable
from domain.outcome import Scope, not_sent

RESOLVE_TIMEOUT_S = 5.0

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Our own table: `ipaddress.is_global` calls several of these global (NAT64, 6to4, multicast, a metadata address).
_DENIED_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_DENIED_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "::/96",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "100::/64",
            "100:0:0:1::/64",
            "::ffff:0:0:0/96",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
        ),
    )
)
_HOST_NAME = re.compile(r"[a-z0-9._-]{1,253}")


@dataclass(frozen=True, slots=True)
class Target:
    """A URL and the checked addresses of its host. The URL is personal data, so it shows in no `repr`."""

    url: httpx.URL = field(repr=False)
    addresses: tuple[str, ...] = field(repr=False)


class Guard:
    """Refuses private, loopback and other special addresses unless configuration allows their network."""

    def __init__(self, allowed: Iterable[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    async def target(self, url: str, scope: Scope) -> Target:
        """Parses and pins an http or https URL; `scope` says whose fault a refusal is. Raises NotSendable."""
        parsed = _parsed(url)
        if parsed is None:
            raise NotSendable(not_sent("bad_address", scope=scope, permanent=True))
        return Target(parsed, await self.addresses(parsed.raw_host.decode("ascii"), scope))

    async def addresses(self, host: str, scope: Scope) -> tuple[str, ...]:
        """Every address of a host, or NotSendable when it has none or any one of them is forbidden."""
        addresses = await _resolved(host, scope)
        if not all(map(self._permits, addresses)):
            raise NotSendable(not_sent("destination_forbidden", scope=scope, permanent=True))
        return tuple(map(str, addresses))

    def _permits(self, address: Address) -> bool:
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if any(address in network for network in self._allowed):
            return True
        denied = _DENIED_V4 if isinstance(address, ipaddress.IPv4Address) else _DENIED_V6
        return not any(address in network for network in denied)


def _parsed(url: str) -> httpx.URL | None:
    """The URL if it is one we send to. The parser is the one that sends, so both see the same host."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    plain = parsed.scheme in ("http", "https") and not parsed.userinfo and "#" not in url
    return parsed if plain and _is_port(parsed.port) and _is_host(parsed.raw_host.decode("ascii")) else None


def _is_port(port: int | None) -> bool:
    return port is None or 0 < port < 65_536


def _is_host(host: str) -> bool:
    literal = ":" in host and "%" not in host  # a zone id names one of our own interfaces
    return literal or _HOST_NAME.fullmatch(host) is not None


async def _resolved(host: str, scope: Scope) -> tuple[Address, ...]:
    try:
        return (ipaddress.ip_address(host),)
    except ValueError:
        pass  # a name, or one of the spellings of an address that only the resolver understands
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError:  # an empty or overlong label
        raise NotSendable(not_sent("bad_address", scope=scope, permanent=True)) from None
    except (OSError, TimeoutError):
        raise NotSendable(not_sent("dns_failed", scope=scope)) from None
    return tuple(ipaddress.ip_address(entry[4][0]) for entry in found)
