"""The names of channels, as callers, tables, metrics and the console use them."""

from enum import StrEnum


class ChannelName(StrEnum):
    """A way to reach somebody."""

    WEBHOOK = "webhook"
    EMAIL = "email"
    WECOM = "wecom"
