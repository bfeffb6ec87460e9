"""One SMTP connection that submits one message and always knows how far it got."""

import asyncio
import re
import socket
import ssl
from contextlib import suppress
from enum import Enum, auto
from typing import cast

from aiosmtplib import SMTP, SMTPException, SMTPResponse, SMTPResponseException, SMTPServerDisconnected

from settings import SmtpSettings

# Connect, TLS, greeting, two EHLO, STARTTLS, AUTH (up to five commands), MAIL, RCPT, DATA, content.
STEPS_BEFORE_DOT = 15
QUIT_TIMEOUT_S = 2.0
BLOCK_BYTES = 65_536

_LINE_START_DOT = re.compile(rb"(?m)^\.")


class Step(Enum):
    """What the session is waiting for. The server can hold a whole message only at `DOT`."""

    CONNECT = auto()
    EHLO = auto()
    STARTTLS = auto()
    AUTH = auto()
    MAIL = auto()
    RCPT = auto()
    DATA = auto()
    CONTENT = auto()
    DOT = auto()


class SmtpSession:
    """Used once. `step` stays right when an error, a timeout or a cancellation cuts the session short."""

    def __init__(self, settings: SmtpSettings, tls: ssl.SSLContext) -> None:
        self.step = Step.CONNECT
        self._settings = settings
        self._client = SMTP(
            hostname=settings.host,
            local_hostname=settings.local_hostname or socket.gethostname(),
            timeout=settings.timeout_s,
            use_tls=settings.tls == "implicit",
            start_tls=False,
            tls_context=tls,
        )
        self._writer: asyncio.StreamWriter | None = None

    async def submit(self, addresses: tuple[str, ...], sender: str, recipient: str, content: bytes) -> SMTPResponse:
        """The server's reply to the whole message. Raises what aiosmtplib, sockets and TLS raise."""
        try:
            async with asyncio.timeout(STEPS_BEFORE_DOT * self._settings.timeout_s):
                await self._connect(addresses)
                await self._greet()
                await self._envelope(sender, recipient)
                await self._content(content)
            reply = await self._dot()
            await self._quit()
            return reply
        finally:
            self._client.close()

    async def _connect(self, addresses: tuple[str, ...]) -> None:
        """To an address that was checked, so the name is not resolved again; TLS still verifies the name."""
        async with asyncio.timeout(self._settings.timeout_s):
            connected = await _first_reachable(addresses, self._settings.port)
        await self._client.connect(sock=connected)

    async def _greet(self) -> None:
        self.step = Step.EHLO
        await self._client.ehlo()
        if self._settings.tls == "starttls":
            self.step = Step.STARTTLS
            await self._client.starttls()
            self.step = Step.EHLO
            await self._client.ehlo()
        if self._settings.username is not None:
            self.step = Step.AUTH
            password = self._settings.password.get_secret_value() if self._settings.password else ""
            await self._client.login(self._settings.username, password)

    async def _envelope(self, sender: str, recipient: str) -> None:
        self.step = Step.MAIL
        await self._client.mail(sender)
        self.step = Step.RCPT
        await self._client.rcpt(recipient)
        self.step = Step.DATA
        reply = await self._client.execute_command(b"DATA")
        if reply.code != 354:
            raise SMTPResponseException(reply.code, reply.message)

    async def _content(self, content: bytes) -> None:
        """Hands all lines to the socket and waits until it took them.

        `SMTP.data` would write the lines and the final dot in one go, and a failure could not be told apart. The writer
        is asyncio's own: aiosmtplib's protocol implements the flow control that it asks of a protocol. It lives as long
        as the session, because a writer that is collected closes the connection.
        """
        self.step = Step.CONTENT
        protocol, transport = self._client.protocol, self._client.transport
        if protocol is None or transport is None:
            raise SMTPServerDisconnected("Connection lost")
        writable = cast(asyncio.WriteTransport, transport)
        writable.set_write_buffer_limits(high=1, low=0)
        self._writer = asyncio.StreamWriter(writable, protocol, None, asyncio.get_running_loop())
        lines = _LINE_START_DOT.sub(b"..", content)
        for start in range(0, len(lines), BLOCK_BYTES):  # under TLS only a following write waits for the socket
            await self._require_connection()
            self._writer.write(lines[start : start + BLOCK_BYTES])
            async with asyncio.timeout(self._settings.timeout_s):
                await self._writer.drain()

    async def _dot(self) -> SMTPResponse:
        """The one step after which the message may be theirs. Nothing is awaited between the check and the write."""
        await self._require_connection()
        self.step = Step.DOT
        return await self._client.execute_command(b".", timeout=self._settings.final_reply_timeout_s)

    async def _require_connection(self) -> None:
        """What a connection drops silently must not be taken for sent: TLS does so from the peer's end to its own."""
        await asyncio.sleep(0)  # an end that was noticed takes effect in the loop's next round
        if not self._client.is_connected:
            raise SMTPServerDisconnected("Connection lost")

    async def _quit(self) -> None:
        """A courtesy: the outcome is known already."""
        with suppress(SMTPException, OSError):
            await self._client.quit(timeout=QUIT_TIMEOUT_S)


async def _first_reachable(addresses: tuple[str, ...], port: int) -> socket.socket:
    for address in addresses[:-1]:
        with suppress(OSError):
            return await _connected(address, port)
    return await _connected(addresses[-1], port)


async def _connected(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The event loop switches Nagle's delay off only for a socket that says it is TCP.
    connecting = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        connecting.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connecting, (address, port))
    except BaseException:  # cancelled too: the socket is nobody's yet
        connecting.close()
        raise
    return connecting
