"""E-mail by SMTP submission: one recipient, one fresh connection, in doubt only after the final dot."""

import hashlib
import ssl

from channels.destinations import Guard
from channels.letter import render
from channels.mailbox import ascii_mailbox
from channels.port import Message, Prepared
from channels.smtp_replies import error_outcome, reply_outcome
from channels.smtp_session import QUIT_TIMEOUT_S, STEPS_BEFORE_DOT, SmtpSession
from domain.errors import NotSendable
from domain.outcome import Outcome, Scope, not_sent
from settings import SettingsError, SmtpSettings


class EmailChannel:
    """`delivered` means that the relay took the message; a bounce may still follow."""

    channel = "email"
    provider = "smtp"
    native = True

    def __init__(self, settings: SmtpSettings, guard: Guard, tls: ssl.SSLContext) -> None:
        self.deadline_s = STEPS_BEFORE_DOT * settings.timeout_s + settings.final_reply_timeout_s + QUIT_TIMEOUT_S
        self._settings = settings
        self._guard = guard
        self._tls = tls
        try:
            self._sender = ascii_mailbox(settings.sender)
        except ValueError:
            raise SettingsError("configuration: channels.email.smtp.sender: not an e-mail address") from None

    async def prepare(self, message: Message) -> Prepared:
        """Checks the recipient, renders the letter and pins the relay's address."""
        recipient = _recipient(message.destination)
        content = _content(message, self._sender, recipient)
        addresses = await self._guard.addresses(self._settings.host, Scope.CONFIG)

        async def send() -> Outcome:
            return await self._send(addresses, recipient, content)

        return Prepared(hashlib.sha256(content).hexdigest(), send)

    async def close(self) -> None:
        """Every send closes its own connection."""

    async def _send(self, addresses: tuple[str, ...], recipient: str, content: bytes) -> Outcome:
        session = SmtpSession(self._settings, self._tls)
        try:
            reply = await session.submit(addresses, self._sender, recipient, content)
        except Exception as error:  # whatever it was, the step tells what the relay may hold
            return error_outcome(session.step, error)
        return reply_outcome(session.step, reply)


def _recipient(destination: str) -> str:
    try:
        return ascii_mailbox(destination)
    except ValueError:
        raise NotSendable(not_sent("bad_address", scope=Scope.RECIPIENT, permanent=True)) from None


def _content(message: Message, sender: str, recipient: str) -> bytes:
    try:
        return render(message, sender, recipient)
    except ValueError:
        raise NotSendable(not_sent("unrenderable", permanent=True)) from None
