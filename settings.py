"""Every setting of Tidings: one frozen value from a TOML file and the environment, printable without secrets."""

import ipaddress
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "TIDINGS_"
CONFIG_VARIABLE = "TIDINGS_CONFIG"
OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "TIDINGS_API_URL", "TIDINGS_TOKEN"})
"""Variables of ours that are not settings."""
DEFAULT_FILE = "tidings.toml"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Port = Annotated[int, Field(ge=1, le=65_535)]


class SettingsError(Exception):
    """The configuration is not usable; the message names every fault in one line and no value."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuthSettings(_Section):
    """How bearer tokens are verified. Exactly one of the key sources must be set."""

    secret: SecretStr | None = None
    """HS256 secret, at least 32 bytes."""
    secret_file: Path | None = None
    """File holding the HS256 secret; trailing newline ignored."""
    public_key_file: Path | None = None
    """PEM public key for RS256 or ES256."""
    jwks_url: str | None = None
    """Where the issuer publishes its keys, for RS256 or ES256."""
    audience: str | None = None
    """Required `aud` claim; not checked when unset."""
    issuer: str | None = None
    """Required `iss` claim; not checked when unset."""
    leeway_s: Annotated[float, Field(ge=0, le=300)] = 10.0

    @model_validator(mode="after")
    def _one_source(self) -> "AuthSettings":
        sources = [self.secret, self.secret_file, self.public_key_file, self.jwks_url]
        if sum(source is not None for source in sources) > 1:
            raise ValueError("set only one of secret, secret_file, public_key_file, jwks_url")
        return self

    @property
    def configured(self) -> bool:
        """Whether any key source is set; without one the API refuses to start."""
        return any((self.secret, self.secret_file, self.public_key_file, self.jwks_url))


class ApiSettings(_Section):
    """The HTTP API."""

    host: str = "127.0.0.1"
    port: Port = 8080
    max_body_bytes: Annotated[int, Field(ge=1_024, le=16_777_216)] = 1_048_576
    """Largest accepted request body, counted on the bytes received."""
    threads: Annotated[int, Field(ge=1, le=256)] = 16
    """Requests served at once."""


class TemporalSettings(_Section):
    """What Temporal's own TEMPORAL_* variables (address, namespace, TLS, API key) do not cover."""

    task_queue: Annotated[str, Field(min_length=1, max_length=200)] = "tidings"
    ui_url: str | None = None
    """Base address of the Temporal Web UI, for links."""
    namespace: str = Field(default_factory=lambda: os.environ.get("TEMPORAL_NAMESPACE", "default"))
    """Namespace, for links only: the connection takes it from TEMPORAL_NAMESPACE, which is also the default here."""
    search_attributes: bool = True
    """Whether workflows carry TidingsTenant, TidingsKind and TidingsState."""


class WorkerSettings(_Section):
    """The worker process."""

    max_concurrent_deliveries: Annotated[int, Field(ge=1, le=5_000)] = 500
    store_threads: Annotated[int, Field(ge=1, le=256)] = 2
    """Threads, and so connections, for each database. Few are fast: what waits is committed together."""
    lease_s: Annotated[float, Field(ge=2, le=3_600)] = 30.0
    """How long a claim holds without renewal; a dead worker's delivery is retaken after at most this."""
    drain_s: Annotated[float, Field(ge=1, le=3_600)] = 60.0
    """At a graceful stop, how long sends under way may take; what is cut off is recorded as what it is."""


class RelaySettings(_Section):
    """Carrying intents from the outbox to Temporal."""

    batch: Annotated[int, Field(ge=1, le=1_000)] = 100
    lease_s: Seconds = 30.0
    busy_poll_s: Seconds = 0.02
    idle_poll_s: Seconds = 0.5
    sweep_every_s: Seconds = 15.0
    """Pause between two rounds of the recovery sweep."""
    sweep_batch: Annotated[int, Field(ge=1, le=10_000)] = 200
    stale_after_s: Seconds = 60.0
    """An open event without progress for this long is started again; a live workflow makes that a no-op."""


class RetrySettings(_Section):
    """Attempts of one automatic cycle."""

    max_attempts: Annotated[int, Field(ge=1, le=6)] = 6
    first_delay_s: Seconds = 1.0
    max_delay_s: Seconds = 300.0
    max_retry_after_s: Seconds = 3_600.0


class WebhookSettings(_Section):
    """Signed webhooks."""

    timeout_s: Seconds = 15.0
    """Whole send, from connect to the last byte of the answer."""
    default_secret: str | None = None
    """Name of the signing secret used when a callback names none."""


class SmtpSettings(_Section):
    """One SMTP relay."""

    host: str
    port: Port = 587
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    username: str | None = None
    password: SecretStr | None = None
    sender: str
    """Envelope and header sender address."""
    local_hostname: str | None = None
    """Name given in EHLO; default: this machine's."""
    ca_file: Path | None = None
    """Extra certificate authority for the relay."""
    timeout_s: Annotated[float, Field(gt=0, le=30)] = 30.0
    """Each step up to the end of the message. Both limits keep a whole send below what a worker may take for one."""
    final_reply_timeout_s: Annotated[float, Field(gt=0, le=600)] = 600.0
    """Waiting for the answer after the final dot (RFC 5321 4.5.3.2.6: ten minutes; shorter makes more doubt)."""


class WeComSettings(_Section):
    """A WeCom (企业微信) application."""

    base_url: str = "https://qyapi.weixin.qq.com"
    corp_id: str
    corp_secret: SecretStr
    agent_id: int
    timeout_s: Seconds = 15.0


class EmailSettings(_Section):
    """E-mail providers."""

    smtp: SmtpSettings | None = None


class ImSettings(_Section):
    """Instant-message providers, by key."""

    wecom: WeComSettings | None = None


class ChannelSettings(_Section):
    """Every channel; one that is absent is not configured and refuses deliveries with a clear code."""

    webhook: WebhookSettings = WebhookSettings()
    email: EmailSettings = EmailSettings()
    im: ImSettings = ImSettings()


class Settings(BaseSettings):
    """The whole configuration. Build it with `load`."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        hide_input_in_errors=True,
    )

    state_database_url: SecretStr
    """Tasks and notifications: `mysql+pymysql://…` or `sqlite:///…`."""
    config_database_url: SecretStr = SecretStr("")
    """Approvals; the state database when unset."""
    brand: Annotated[str, Field(min_length=1, max_length=100)] = "Tidings"
    """Sender's name in texts, unless a request brings its own; frozen into each event."""
    allowed_private_networks: tuple[Network, ...] = ()
    """Private or loopback networks that destinations may lie in; all others are refused."""
    secrets: dict[str, SecretStr] = {}
    """Signing secrets by name; several live ones separated by spaces while one rotates."""
    secrets_dir: Path | None = None
    """Folder with one file per signing secret, read at each send; wins over `secrets`."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    auth: AuthSettings = AuthSettings()
    api: ApiSettings = ApiSettings()
    temporal: TemporalSettings = TemporalSettings()
    worker: WorkerSettings = WorkerSettings()
    relay: RelaySettings = RelaySettings()
    retry: RetrySettings = RetrySettings()
    channels: ChannelSettings = ChannelSettings()

    @field_validator("state_database_url", "config_database_url")
    @classmethod
    def _known_store(cls, url: SecretStr) -> SecretStr:
        value = url.get_secret_value()
        if value and not value.startswith(("mysql+pymysql://", "sqlite:///")):
            raise ValueError("must begin with mysql+pymysql:// or sqlite:///")
        return url

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, which arrives as init values."""
        return env_settings, init_settings

    @property
    def state_url(self) -> str:
        """The state database's URL."""
        return self.state_database_url.get_secret_value()

    @property
    def config_url(self) -> str:
        """The config database's URL: the state database's when none is set."""
        return self.config_database_url.get_secret_value() or self.state_url

    def printable(self) -> dict[str, Any]:
        """Every setting as JSON values, secrets as `**********`."""
        return self.model_dump(mode="json")


def load(file: Path | None = None, **defaults: Any) -> Settings:
    """Reads the file (given, else TIDINGS_CONFIG, else ./tidings.toml when it exists) and the environment.

    `defaults` are used where neither says anything. Raises SettingsError with one line.
    """
    values = _merged(defaults, _read(_chosen_file(file)))
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise SettingsError(f"configuration: {faults}") from None
    except ValueError as error:  # pydantic-settings: a variable that is not valid JSON; its message may quote the value
        raise SettingsError(
            f"configuration: an environment variable could not be read ({type(error).__name__})"
        ) from None


def _refuse_unknown_variables() -> None:
    """A mistyped variable would otherwise be ignored, and its default would rule."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    for name in os.environ:
        if name.upper().startswith(PREFIX) and name.upper().partition("__")[0] not in known:
            raise SettingsError(f"configuration: there is no setting for the environment variable {name}")


def _chosen_file(file: Path | None) -> Path | None:
    if file is not None:
        return file
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{file} is not valid TOML: a number too long, or nested too deep") from None


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged
