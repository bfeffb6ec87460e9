"""An SMTP server on loopback that can refuse, hang up or fall silent at any step, and records what it took."""

import asyncio
import base64
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from tests.doubles.listener import Listener, reset

STEPS = ("banner", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "content", "dot")

_GOOD = {
    "banner": "220 double ready",
    "starttls": "220 go ahead",
    "auth": "235 2.7.0 welcome",
    "mail": "250 2.1.0 ok",
    "rcpt": "250 2.1.5 ok",
    "data": "354 go on",
    "dot": "250 2.0.0 Ok: queued as 4F2A9C",
}


class Cut(Enum):
    """How a connection ends instead of a reply."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass
class SmtpScript:
    """What differs from a friendly server, by step (`STEPS`)."""

    replies: dict[str, str] = field(default_factory=dict)
    cuts: dict[str, Cut] = field(default_factory=dict)
    """`content` stops reading after 354; `dot` takes the whole message and then fails to say so."""
    offers: tuple[str, ...] = ("8BITMIME",)
    """Extensions in the EHLO reply, besides STARTTLS when there is a certificate for it."""


class _Ended(Exception):
    """A cut was reached."""


class SmtpServer(Listener):
    """`starttls` is the context to upgrade with, `tls` the one to begin with; neither means plain text."""

    def __init__(
        self,
        script: SmtpScript | None = None,
        *,
        starttls: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(tls)
        self.script = script or SmtpScript()
        self.messages: list[bytes] = []
        """Every message whose final dot was read, with dots unstuffed and CRLF kept."""
        self.commands: list[str] = []
        self.logins: list[str] = []
        """User names that came with AUTH PLAIN."""
        self._starttls = starttls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One session."""
        with suppress(_Ended):
            await self._session(_Line(reader, writer, self.script))

    async def _session(self, line: "_Line") -> None:
        await line.reply("banner")
        while command := await line.command():
            self.commands.append(command)
            verb = command.split(" ")[0].split(":")[0].upper()
            if verb == "QUIT":
                return await line.say("221 bye")
            await self._answer(verb, command, line)

    async def _answer(self, verb: str, command: str, line: "_Line") -> None:
        if verb == "EHLO":
            await line.reply("ehlo", self._greeting(line))
        elif verb == "STARTTLS":
            await line.reply("starttls")
            if self._starttls is not None and line.last.startswith("220"):
                await line.writer.start_tls(self._starttls)
        elif verb == "AUTH":
            self.logins.append(base64.b64decode(command.split(" ")[-1]).split(b"\0")[1].decode())
            await line.reply("auth")
        elif verb == "DATA":
            await self._take(line)
        else:
            await line.reply(verb.lower())

    async def _take(self, line: "_Line") -> None:
        await line.reply("data")
        if not line.last.startswith("354"):
            return
        await line.cut("content")
        self.messages.append(await line.content())
        await line.reply("dot")

    def _greeting(self, line: "_Line") -> str:
        encrypted = line.writer.get_extra_info("sslcontext") is not None
        upgrade = () if self._starttls is None or encrypted else ("STARTTLS",)
        words = ("double", *self.script.offers, *upgrade)
        return "".join(f"250-{word}\r\n" for word in words[:-1]) + f"250 {words[-1]}"


class _Line:
    """The conversation on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: SmtpScript) -> None:
        self.writer = writer
        self.last = ""
        self._reader = reader
        self._script = script

    async def command(self) -> str:
        return (await self._reader.readline()).decode("latin-1").rstrip("\r\n")

    async def content(self) -> bytes:
        lines = []
        while (line := await self._reader.readline()) != b".\r\n":
            if not line.endswith(b"\n"):
                raise _Ended
            lines.append(line.removeprefix(b"."))
        return b"".join(lines)

    async def reply(self, step: str, good: str = "250 ok") -> None:
        await self.cut(step)
        self.last = self._script.replies.get(step, _GOOD.get(step, good))
        await self.say(self.last)

    async def say(self, text: str) -> None:
        self.writer.write(text.encode("latin-1") + b"\r\n")
        await self.writer.drain()

    async def cut(self, step: str) -> None:
        how = self._script.cuts.get(step)
        if how is Cut.HANG:
            self.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.Event().wait()
        if how is Cut.RESET:
            reset(self.writer)
        if how is not None:
            raise _Ended
