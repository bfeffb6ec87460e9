"""A message as an e-mail: the same bytes on every attempt."""

import hashlib
import re
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from channels.port import Message

# 7-bit, because not every server offers 8BITMIME and the choice must not depend on the one that answers today.
_POLICY = SMTP.clone(cte_type="7bit")
_HEADER_BREAK = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")


def render(message: Message, sender: str, recipient: str) -> bytes:
    """The letter, with CRLF line ends. Raises ValueError for a line break in a header or text without an encoding."""
    if _HEADER_BREAK.search(message.title) or _HEADER_BREAK.search(message.brand):
        raise ValueError("line break in a header")
    letter = EmailMessage(_POLICY)
    letter["From"] = Address(display_name=message.brand, addr_spec=sender)
    letter["To"] = Address(addr_spec=recipient)
    letter["Subject"] = message.title
    letter["Date"] = datetime.fromisoformat(message.occurred_at)
    letter["Message-ID"] = _message_id(message.delivery_id, sender)
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(message.text)
    return letter.as_bytes()


def _message_id(delivery_id: str, sender: str) -> str:
    """One per delivery, not per attempt: some mailboxes drop a second copy by it."""
    domain = sender.rpartition("@")[2]
    return f"<{hashlib.sha256(delivery_id.encode()).hexdigest()[:32]}@{domain}>"
