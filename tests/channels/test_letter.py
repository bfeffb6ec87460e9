"""The e-mail as it leaves."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage

import pytest

from channels.letter import render
from tests.channels.samples import message

SENDER, RECIPIENT = "tidings@sender.example", "somebody@example.com"


def parsed(content: bytes) -> EmailMessage:
    letter = message_from_bytes(content, policy=policy.default)
    assert isinstance(letter, EmailMessage)
    return letter


def test_every_attempt_renders_the_same_bytes() -> None:
    first = render(message(), SENDER, RECIPIENT)
    assert first == render(message(), SENDER, RECIPIENT)
    assert first != render(message(delivery_id="another"), SENDER, RECIPIENT)


def test_its_headers_name_the_brand_the_time_of_the_event_and_the_delivery() -> None:
    letter = parsed(render(message(brand="Grüße GmbH"), SENDER, RECIPIENT))
    assert letter["From"].addresses[0].display_name == "Grüße GmbH"
    assert letter["From"].addresses[0].addr_spec == SENDER
    assert letter["To"] == RECIPIENT
    assert letter["Date"].datetime.isoformat() == "2026-03-04T05:06:07+00:00"
    assert re.fullmatch(r"<[0-9a-f]{32}@sender\.example>", letter["Message-ID"])
    assert letter["Auto-Submitted"] == "auto-generated"


@pytest.mark.parametrize(
    "text",
    ["plain", "", "héllo\nworld", ".\n.leading dot\n..two", "lone\rreturn", "nul\0byte", "x" * 5_000, "漢字" * 2_000],
)
def test_the_lines_are_short_7_bit_and_end_in_crlf_only(text: str) -> None:
    content = render(message(text=text, title="Überschrift " * 30), SENDER, RECIPIENT)
    assert content.isascii()
    assert content.endswith(b"\r\n")
    assert b"\n" not in content.replace(b"\r\n", b"")
    assert b"\r" not in content.replace(b"\r\n", b"")
    assert max(map(len, content.split(b"\r\n"))) <= 998


def test_the_text_arrives_as_it_was() -> None:
    letter = parsed(render(message(text="héllo\n.dot\n", title="漢字 title"), SENDER, RECIPIENT))
    assert letter.get_content() == "héllo\r\n.dot\r\n"
    assert letter["Subject"] == "漢字 title"


@pytest.mark.parametrize("field", ["title", "brand"])
@pytest.mark.parametrize("mark", ["\r\nBcc: x@y.example", "\n", "\r", "\0", "\x0b", "\x85", "\u2028"])
def test_a_header_never_holds_a_line_break(field: str, mark: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        render(message(**{field: f"one{mark}two"}), SENDER, RECIPIENT)


@pytest.mark.parametrize("field", ["title", "brand", "text"])
def test_half_a_character_cannot_be_written(field: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        render(message(**{field: "\ud800"}), SENDER, RECIPIENT)
