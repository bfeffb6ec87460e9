"""The `tidings` command: names, options and exit codes. What the commands do is in `commands/` and `dev/`."""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from api.auth import PERMISSIONS, mint
from commands import doctor as doctor_command
from commands import migration, serving
from commands import outbox as outbox_command
from commands.access import Where
from commands.outbox import Outbox
from dev import stack, story
from dev.stack import Addresses, Options
from dev.state_dir import DEFAULT, StateDir
from process import run_main
from settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PORT = click.IntRange(1, 65_535)

config_option = click.option("--config", type=FILE, help="TOML file; default: TIDINGS_CONFIG, else ./tidings.toml.")
state_dir_option = click.option("--state-dir", type=FOLDER, help="State directory of `tidings dev`.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def run() -> None:
    """The entry point of the installed command."""
    cli.main(windows_expand_args=False)


@click.group()
@click.version_option(package_name="tidings")
def cli() -> None:
    """Durable notification delivery on Temporal."""


@cli.command()
@click.option("--state-dir", type=FOLDER, default=DEFAULT, show_default=True, help="Where everything is kept.")
@click.option("--api-port", type=PORT, help="Default: 8080, or the next free one.")
@click.option("--temporal-port", type=PORT, help="Default: 7233, or the next free one.")
@click.option("--ui-port", type=PORT, help="Default: 8233, or the next free one.")
@click.option("--sample", is_flag=True, help="Send one sample event through it and tell what happened.")
@config_option
def dev(
    state_dir: Path,
    api_port: int | None,
    temporal_port: int | None,
    ui_port: int | None,
    sample: bool,
    config: Path | None,
) -> None:
    """Run everything on this machine: Temporal with its Web UI, API, worker and relay. Loopback only."""
    options = Options(state_dir, config, api_port, temporal_port, ui_port)
    run_main(lambda: _dev(options, sample=sample))


async def _dev(options: Options, *, sample: bool) -> int:
    samples: list[asyncio.Task[None]] = []

    def announce(addresses: Addresses, settings: Settings, state: StateDir) -> None:
        story.tell_addresses(addresses, state)
        if sample:
            samples.append(asyncio.create_task(story.tell_sample(addresses, state)))

    try:
        return await stack.run(options, announce)
    finally:
        for task in samples:
            task.cancel()
        await asyncio.gather(*samples, return_exceptions=True)


@cli.command()
@config_option
def api(config: Path | None) -> None:
    """Serve the HTTP API."""
    run_main(lambda: serving.run_api(config))


@cli.command()
@config_option
def worker(config: Path | None) -> None:
    """Run the worker: workflows, deliveries, relay and recovery sweep."""
    run_main(lambda: serving.run_worker(config))


@cli.command()
@config_option
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when a migration is missing.")
def migrate(config: Path | None, check: bool) -> None:
    """Bring the state and config databases up to date."""
    _print(lambda: migration.run(config, check=check))


@cli.command()
@config_option
@state_dir_option
@click.option("--tenant", required=True)
@click.option("--subject", required=True, help="Who the token is for.")
@click.option("--permission", "permissions", multiple=True, required=True, type=click.Choice(PERMISSIONS))
@click.option("--expires-in", default="12h", show_default=True, help="Such as 30m, 12h, 90d.")
def token(
    config: Path | None,
    state_dir: Path | None,
    tenant: str,
    subject: str,
    permissions: tuple[str, ...],
    expires_in: str,
) -> None:
    """Mint a signed token and print it."""
    lifetime = _lifetime(expires_in)
    where = Where(state_dir, config)
    _print(
        lambda: [mint(where.secret(), tenant=tenant, subject=subject, permissions=list(permissions), lifetime=lifetime)]
    )


@cli.command()
@config_option
@json_option
def doctor(config: Path | None, as_json: bool) -> None:
    """Check configuration, databases, Temporal and channels; exit 1 on any fault."""
    run_main(lambda: _doctor(config, as_json=as_json))


async def _doctor(config: Path | None, *, as_json: bool) -> int:
    findings = await doctor_command.examine(config)
    for found in findings:
        line = {"part": found.part, "ok": found.sound, "text": found.text}
        click.echo(
            json.dumps(line) if as_json else f"{'ok   ' if found.sound else 'FAULT'}  {found.part}: {found.text}"
        )
    return 0 if all(found.sound for found in findings) else 1


@cli.group()
def outbox() -> None:
    """Look at events, and decide about those that failed or may have been sent."""


def access_options(command: Command) -> Command:
    """The options by which every outbox command finds the API and its token."""
    for option in (
        click.option("--api-url", envvar="TIDINGS_API_URL", help="Default: from the configuration or state directory."),
        click.option("--token", envvar="TIDINGS_TOKEN", help="Default: minted with the configured secret."),
        click.option("--tenant", help="Whose events, when a token is minted."),
        state_dir_option,
        config_option,
        json_option,
    ):
        command = option(command)
    return command


def _outbox(permissions: list[str], how: dict[str, Any]) -> Outbox:
    where = Where(how["state_dir"], how["config"])
    return Outbox(how["api_url"] or where.api_url(), how["token"] or where.token(how["tenant"], permissions))


@outbox.command("list")
@click.option("--source")
@click.option("--kind")
@click.option("--status")
@click.option("--channel")
@click.option("--limit", type=click.IntRange(1, 200))
@click.option("--cursor")
@access_options
def list_events(
    source: str | None,
    kind: str | None,
    status: str | None,
    channel: str | None,
    limit: int | None,
    cursor: str | None,
    **how: Any,
) -> None:
    """List events, newest first."""
    filters = {
        "source": source,
        "kind": kind,
        "status": status,
        "channel": channel,
        "limit": limit,
        "cursor": cursor,
    }

    def lines() -> list[str]:
        page = _outbox(["runs:read"], how).page(filters)
        more = [f"more: --cursor {page['next_cursor']}"] if page["next_cursor"] else []
        if not page["items"]:
            click.echo("no such events", err=True)
        return [_json(page)] if how["as_json"] else outbox_command.table(page["items"]) + more

    _print(lines)


@outbox.command()
@click.argument("event")
@access_options
def show(event: str, **how: Any) -> None:
    """Show one event with everything that happened to it."""
    _tell(how, lambda: _outbox(["runs:read"], how).show(event), outbox_command.story)


@outbox.command()
@click.argument("event")
@click.option("--kind", help="Default: the event's.")
@click.option("--expected-status", help="What you saw; default: read now.")
@click.option("--channel", help="Only this channel.")
@click.option("--reason", help="Kept with the decision.")
@click.option("--allow-uncertain", is_flag=True, default=None, help="Accept that it may arrive twice.")
@access_options
def retry(event: str, **how: Any) -> None:
    """Send again what failed, or what is uncertain when you accept the risk."""
    order = {name: how[name] for name in ("kind", "expected_status", "channel", "reason", "allow_uncertain")}
    _tell(how, lambda: _outbox(["runs:read", "runs:write"], how).retry(event, order), _as_line)


@outbox.command()
@click.argument("event")
@click.option("--channel", required=True)
@click.option("--decision", required=True, type=click.Choice(["resend", "delivered", "abandon"]))
@click.option("--reason", help="Kept with the decision.")
@access_options
def resolve(event: str, **how: Any) -> None:
    """End the doubt about one channel of an uncertain event."""
    order = {name: how[name] for name in ("channel", "decision", "reason")}
    _tell(how, lambda: _outbox(["runs:read", "runs:write"], how).resolve(event, order), _as_line)


def _tell(how: dict[str, Any], ask: Callable[[], dict[str, Any]], shown: Callable[[dict[str, Any]], list[str]]) -> None:
    _print(lambda: [_json(ask())] if how["as_json"] else shown(ask()))


def _as_line(event: dict[str, Any]) -> list[str]:
    return outbox_command.table([event])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _lifetime(text: str) -> timedelta:
    match = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if match is None:
        raise click.BadParameter("expected a number with s, m, h or d, such as 12h", param_hint="--expires-in")
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[match[2]]
    return timedelta(**{unit: int(match[1])})


def _print(lines: Callable[[], list[str]]) -> None:
    """Runs a command that is not asynchronous under the same rules of ending as the others."""

    async def main() -> int:
        for line in await asyncio.to_thread(lines):
            click.echo(line)
        return 0

    run_main(main)
