"""The types that request fields are made of: what a caller may write, byte for byte."""

import unicodedata
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from domain.channels import ChannelName
from domain.identity import MAX_ID_CHARS

MAX_RECIPIENT_CHARS = 2_048
MAX_TEXT_CHARS = 1_000


class Body(BaseModel):
    """A request body: unknown fields and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CamelBody(Body):
    """A body of `/api/*`, which speaks camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


def _without_control_characters(value: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        raise PydanticCustomError("control_character", "must not contain control characters")
    return value


def _http_url(value: str) -> str:
    """Only the form; whether the destination may be reached is decided at each send."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise PydanticCustomError("http_url", "must be an absolute http or https URL")
    return value


def _channel(value: Any) -> Any:
    """`WeCom` and `wecom` are the same channel."""
    return ChannelName(value.lower()) if isinstance(value, str) and value.lower() in set(ChannelName) else value


CallerId = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS), AfterValidator(_without_control_characters)
]
Recipient = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_RECIPIENT_CHARS), AfterValidator(_without_control_characters)
]
Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_RECIPIENT_CHARS),
    AfterValidator(_without_control_characters),
    AfterValidator(_http_url),
]
Brand = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_without_control_characters)]
Reason = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]
Channel = Annotated[ChannelName, Field(strict=False), BeforeValidator(_channel)]
TitleText = Annotated[str, StringConstraints(min_length=1, max_length=300), AfterValidator(_without_control_characters)]
