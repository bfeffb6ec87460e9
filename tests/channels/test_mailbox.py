"""Addresses that every mail server takes, and those that none of ours may try."""

import pytest

from channels.mailbox import ascii_mailbox


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("somebody@example.com", "somebody@example.com"),
        ("First.Last+tag@EXAMPLE.com", "First.Last+tag@example.com"),
        ("o'hara@mail.example", "o'hara@mail.example"),
        ("root@localhost", "root@localhost"),
        ("user@bücher.example", "user@xn--bcher-kva.example"),
        ("user@例え.example", "user@xn--r8jz45g.example"),
    ],
)
def test_the_domain_travels_as_an_a_label(address: str, sent: str) -> None:
    assert ascii_mailbox(address) == sent


@pytest.mark.parametrize(
    "address",
    [
        "",
        "somebody",
        "@example.com",
        "somebody@",
        "jörg@example.com",
        "a b@example.com",
        "a..b@example.com",
        ".a@example.com",
        '"quoted"@example.com',
        "a@b@example.com",
        "a@example.com,b@example.com",
        "a@example.com\r\nRCPT TO:<b@example.com>",
        "a@example.com\n",
        "<a@example.com>",
        "a@[127.0.0.1]",
        "a@-example.com",
        "a@exa_mple.com",
        "a@example..com",
        f"{'a' * 65}@example.com",
        f"a@{'b' * 64}.com",
        f"a@{'b.' * 130}com",
        "a@\ud800.example",
    ],
)
def test_anything_else_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ValueError, match=r"^not an e-mail address$"):
        ascii_mailbox(address)
