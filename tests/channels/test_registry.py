"""Which channels a configuration sets up."""

from typing import Any

from channels.port import Channel
from channels.registry import build
from settings import load


def build_from(channels: dict[str, Any]) -> dict[str, Channel]:
    return build(load(state_database_url="sqlite:///unused.db", channels=channels))


async def test_only_configured_channels_are_built() -> None:
    channels = build_from({})
    assert list(channels) == ["webhook"]
    for channel in channels.values():
        await channel.close()


async def test_each_channel_says_what_it_is() -> None:
    smtp = {"host": "127.0.0.1", "sender": "tidings@sender.example"}
    wecom = {"corp_id": "corp", "corp_secret": "secret", "agent_id": 1}
    channels = build_from({"email": {"smtp": smtp}, "im": {"wecom": wecom}})
    assert {name: (channel.provider, channel.native) for name, channel in channels.items()} == {
        "webhook": ("http", False),
        "email": ("smtp", True),
        "wecom": ("wecom", True),
    }
    for name, channel in channels.items():
        assert channel.channel == name
        assert channel.deadline_s > 0
        await channel.close()
