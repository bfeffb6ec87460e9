"""Every channel that the configuration sets up, by name. A new adapter is one more line here."""

from channels.destinations import Guard
from channels.email import EmailChannel
from channels.exchange import Exchange
from channels.port import Channel
from channels.secrets import Secrets
from channels.tls import trust
from channels.webhook import WebhookChannel
from channels.wecom import WeComChannel
from settings import Settings


def build(settings: Settings) -> dict[str, Channel]:
    """The configured channels. Raises SettingsError."""
    guard, tls, configured = Guard(settings.allowed_private_networks), trust(), settings.channels
    secrets = Secrets(settings.secrets_dir, settings.secrets)
    channels: list[Channel] = [WebhookChannel(configured.webhook, guard, secrets, Exchange(tls))]
    if configured.email.smtp is not None:
        channels.append(EmailChannel(configured.email.smtp, guard, trust(configured.email.smtp.ca_file)))
    if configured.im.wecom is not None:
        channels.append(WeComChannel(configured.im.wecom, guard, Exchange(tls)))
    return {channel.channel: channel for channel in channels}
