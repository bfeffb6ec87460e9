"""The kinds of value that requests are made of, and their rules."""

import re
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from domain.channels import ChannelName
from domain.identity import MAX_ID_CHARS

MAX_DESTINATION_CHARS = 2_048

_NOT_TEXT = r"\x00-\x1f\x7f-\x9f\ud800-\udfff"
"""Control characters (C0, DEL, C1) and halves of characters."""
_ID = re.compile(rf"[^{_NOT_TEXT}]{{1,{MAX_ID_CHARS}}}")
_LINE = re.compile(rf"[^{_NOT_TEXT}]*")
_TEXT = re.compile(rf"(?:[^{_NOT_TEXT}]|[\n\r\t])*")
_SECRET_NAME = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{MAX_ID_CHARS - 1}}}")


class CamelBody(BaseModel):
    """A request body under /api: camelCase names, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class CamelAnswer(BaseModel):
    """An answer under /api."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


def is_id(value: str) -> bool:
    """Whether `value` may be an id: 1-128 characters without control characters."""
    return _ID.fullmatch(value) is not None


def _checked_id(value: str) -> str:
    if not is_id(value):
        raise PydanticCustomError("id", "must be 1-128 characters without control characters")
    return value


def _decoded(segment: Any) -> str:
    """A path segment exactly as meant: two ids that differ in a byte never become one."""
    try:
        return unquote_to_bytes(str(segment).encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise PydanticCustomError("path", "must be percent-encoded UTF-8") from None


def _line(value: str) -> str:
    if not _LINE.fullmatch(value):
        raise PydanticCustomError("line", "must not contain control characters")
    return value


def _text(value: str) -> str:
    if not _TEXT.fullmatch(value):
        raise PydanticCustomError("text", "must not contain control characters other than line breaks and tabs")
    return value


def _url(value: str) -> str:
    if not is_http_url(value):
        raise PydanticCustomError("url", "must be an absolute http or https URL")
    return value


def is_http_url(value: str) -> bool:
    """Whether `value` looks like an absolute http(s) URL without credentials; where it leads is judged when sending."""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 -- reading it is the check
    except ValueError:
        return False
    has_space = any(character.isspace() for character in value)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and not has_space


def _secret_name(value: str) -> str:
    """A name that may also be a file name in the folder of secrets, and nothing more."""
    if not _SECRET_NAME.fullmatch(value):
        raise PydanticCustomError("secret_ref", "must be 1-128 letters, digits, '.', '_' or '-', no '.' first")
    return value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Id = Annotated[str, AfterValidator(_checked_id), Field(description="1-128 characters without control characters")]
PathId = Annotated[Id, BeforeValidator(_decoded)]
PATH_ID = "Percent-encoded UTF-8, kept byte for byte; an encoded slash (%2F) is part of the id."

Brand = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_line)]
Title = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_line)]
Recipient = Annotated[str, Field(min_length=1, max_length=MAX_DESTINATION_CHARS), AfterValidator(_line)]
Url = Annotated[Recipient, AfterValidator(_url)]
SecretName = Annotated[str, AfterValidator(_secret_name)]
Channel = Annotated[ChannelName, BeforeValidator(_lower)]
Reason = Annotated[str, Field(min_length=1, max_length=2_000), AfterValidator(_text)]
