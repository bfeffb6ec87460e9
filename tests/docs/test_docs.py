"""The documentation against the code: what it names exists, and what exists is named."""

import ast
import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from prometheus_client import CollectorRegistry
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from temporalio.envconfig import ClientConfigProfile

import logs
from api.app import create_app
from cli import cli
from settings import CONFIG_VARIABLE, Settings, load
from store import migrate
from store.database import Stores

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
CONFIGURATION = ROOT / "docs" / "configuration.md"
OPERATIONS = ROOT / "docs" / "operations.md"
DEPLOYED = sorted(file for file in (ROOT / "deploy").iterdir() if file.suffix != ".md")
SOURCES = [f for f in ROOT.glob("**/*.py") if f.relative_to(ROOT).parts[0] not in ("tests", "bench", ".venv", "build")]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def fences(page: Path, language: str = r"\w*") -> list[str]:
    """The code blocks of a page in one language; all of them without one."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", text_of(page), flags=re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """What stands between single backticks in the page's prose."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


def code(page: Path) -> list[str]:
    """Every line of code on a page, continued lines as one, and every span."""
    joined = (fence.replace("\\\n", " ") for fence in fences(page))
    return [*(line.strip() for fence in joined for line in fence.splitlines()), *spans(page)]


def all_code() -> Iterator[str]:
    for page in PAGES:
        yield from code(page)


# Commands


def invocations(lines: list[str]) -> Iterator[str]:
    """What follows `tidings` where it is called, up to the end of that call."""
    for line in lines:
        yield from re.findall(r"(?:^|bin/|\$\()tidings ([^|;)#]+)", line)


def misuse(invocation: str) -> str | None:
    """The first word that is no command, or option that its command does not have."""
    command: click.Command = cli
    words = invocation.split()
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        if name not in command.commands:
            return name
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    used = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
    return next(iter(used - known - {"--help"}), None)


def commands(command: click.Command, name: str = "") -> Iterator[str]:
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            yield from commands(inner, f"{name} {word}".strip())
    else:
        yield name


@every_page
def test_every_command_and_option_exists(page: Path) -> None:
    assert [line for line in invocations(code(page)) if misuse(line)] == []


def test_every_command_is_documented() -> None:
    written = " ".join(invocations([*all_code()]))
    assert [name for name in commands(cli) if not re.search(rf"\b{name}\b", written)] == []


def test_units_call_commands_that_exist() -> None:
    called = [line for file in DEPLOYED for line in invocations(re.findall(r"^ExecStart=(.*)$", text_of(file), re.M))]
    assert [line.split()[0] for line in called] == ["api", "worker"]
    assert [line for line in called if misuse(line)] == []


def test_a_wrong_command_or_option_is_found() -> None:
    assert misuse("outbox forget EVENT") == "forget"
    assert misuse("outbox show EVENT --loud --json") == "--loud"
    assert misuse("outbox show EVENT --json") is None


@every_page
def test_every_make_target_exists(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), flags=re.MULTILINE)
    named = {target for line in code(page) for target in re.findall(r"(?:^|\s)make ([a-z-]+)", line)}
    assert named <= set(targets)


# Settings


def settings_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its dotted name, sections opened."""
    for name, field in model.model_fields.items():
        section = _section(field.annotation)
        if section is None:
            yield prefix + name, field
        else:
            yield from settings_of(section, f"{prefix}{name}.")


def _section(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *get_args(annotation)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def variable(name: str) -> str:
    return f"TIDINGS_{name.upper().replace('.', '__')}"


def shown_default(field: FieldInfo) -> str | None:
    """The default as the tables write it; None where it is computed."""
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return None
    if field.default is None:
        return "none"
    value = field.default.get_secret_value() if hasattr(field.default, "get_secret_value") else field.default
    return f"`{json.dumps(value)}`"


def bounds(field: FieldInfo) -> set[str]:
    """Every limit of a setting, as the tables write it."""
    names = ("ge", "gt", "le", "lt", "min_length", "max_length")
    limits = [getattr(limit, name, None) for limit in field.metadata for name in names]
    return {str(limit) for limit in limits if limit is not None}


SETTINGS = dict(settings_of(Settings))
SECTIONS = {name.rpartition(".")[0] for name in SETTINGS} | {"channels", "channels.email", "channels.im"}
ROWS = {
    cells[0].strip("`"): cells
    for line in text_of(CONFIGURATION).splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split(" | ")]) == 5 and cells[0].startswith("`")
}


def test_every_setting_has_its_row() -> None:
    assert list(ROWS) == list(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_row_says_what_the_setting_is(name: str) -> None:
    _, named_variable, kind, default, _ = ROWS[name]
    assert named_variable == f"`{variable(name)}`"
    assert bounds(SETTINGS[name]) <= set(re.findall(r"\d+", kind))
    assert shown_default(SETTINGS[name]) in (default, None)


@every_page
def test_every_setting_named_exists(page: Path) -> None:
    first = "|".join(name for name in Settings.model_fields if name in SECTIONS)
    named = {span for span in spans(page) if re.fullmatch(rf"({first})(\.[a-z_]+)+", span) and span[-3:] != ".py"}
    sections = {section for span in spans(page) for section in re.findall(r"^\[([a-z.]+)\]$", span)}
    assert named <= SETTINGS.keys() | SECTIONS
    assert sections <= SECTIONS


def test_the_sample_configuration_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)
    assert load(ROOT / "deploy" / "tidings.toml").auth.configured


def parameters(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from parameters(inner)


def environment_variables() -> set[str]:
    """Those of ours: of the file, of command-line options, of settings."""
    given = {str(parameter.envvar) for parameter in parameters(cli) if parameter.envvar}
    return {CONFIG_VARIABLE} | given | {variable(name) for name in SETTINGS}


def named_variables(prefix: str) -> set[str]:
    texts = [text_of(page) for page in [*PAGES, *DEPLOYED]]
    return {name for text in texts for name in re.findall(rf"\b{prefix}_[A-Z_]*[A-Z]\b", text)}


def test_every_variable_of_ours_exists_and_is_documented() -> None:
    assert named_variables("TIDINGS") == environment_variables()


@pytest.mark.parametrize("name", sorted(named_variables("TEMPORAL")))
def test_temporal_knows_the_variable(name: str, tmp_path: Path) -> None:
    """It is known when it changes what is loaded."""
    file = tmp_path / "temporal.toml"
    file.write_text('[profile.default]\naddress = "from.file:1"\n[profile.true]\naddress = "of.profile:1"\n')
    nothing = {"TEMPORAL_CONFIG_FILE": str(tmp_path / "none.toml")}
    if name == "TEMPORAL_CONFIG_FILE":
        before, value = nothing, str(file)
    else:
        before, value = {"TEMPORAL_CONFIG_FILE": str(file)}, "true"
    after = ClientConfigProfile.load(override_env_vars={**before, name: value})
    assert after != ClientConfigProfile.load(override_env_vars=before)


# The API, its metrics and the logs


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    """The application on an empty database."""
    url = f"sqlite:///{tmp_path}/state.db"
    settings = Settings(state_database_url=url, auth={"secret": "s" * 32})  # type: ignore[arg-type]
    stores = Stores.open(settings.state_url, settings.config_url, connections=1)
    migrate.upgrade(stores.state)
    yield create_app(settings, stores)
    stores.close()


def routes(app: FastAPI) -> set[tuple[str, str]]:
    """Method and path of every route a caller may use."""
    found = {
        (method, re.sub(r":\w+}", "}", context.path or ""))
        for context in iter_route_contexts(app.routes)
        for method in (context.methods or ())
    }
    return {(method, path) for method, path in found if method != "HEAD" and not path.startswith("/docs/")}


def named_requests() -> set[tuple[str, str]]:
    pattern = r"\b(GET|PUT|POST|PATCH|DELETE) (?:http://[^/\s]+)?(/[^\s?`]*)"
    return {found for line in all_code() for found in re.findall(pattern, line)}


def test_every_request_named_exists(app: FastAPI) -> None:
    served = {(method, re.sub(r"{\w+}", "[^/]+", path)) for method, path in routes(app)}
    unknown = [
        request
        for request in named_requests()
        if not any(request[0] == method and re.fullmatch(path, request[1]) for method, path in served)
    ]
    assert unknown == []


def test_every_route_is_documented(app: FastAPI) -> None:
    assert routes(app) - named_requests() == set()


def test_metrics_are_those_documented(app: FastAPI) -> None:
    registry: CollectorRegistry = app.state.metrics.registry
    served = {f"{family.name}_total" if family.type == "counter" else family.name for family in registry.collect()}
    named = {name for line in code(OPERATIONS) for name in re.findall(r"\btidings_[a-z_]+", line)}
    assert named == served
    elsewhere = {name for line in all_code() for name in re.findall(r"\btidings_[a-z_]+", line)}
    assert elsewhere <= served


def logged_words() -> Iterator[str]:
    """The constant first argument of every call of our loggers, where it is one word."""
    for file in SOURCES:
        for node in ast.walk(ast.parse(text_of(file))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("LOG.") and node.args:
                yield ast.literal_eval(node.args[0])


def test_log_lines_are_explained() -> None:
    explained = set(spans(OPERATIONS))
    assert set(logged_words()) - explained == set()
    assert set(logs.FIELDS) - explained == set()


# Links and samples


def anchors(page: Path) -> set[str]:
    """The names that headings get where Markdown is shown."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not re.match(r"https?:", link) and not (target.exists() and (not anchor or anchor in anchors(target))):
            broken.append(link)
    assert broken == []


@every_page
def test_samples_parse(page: Path) -> None:
    for sample in fences(page, "python"):
        ast.parse(sample)
    for sample in fences(page, "json"):
        json.loads(sample)
    for sample in fences(page, "toml"):
        assert tomllib.loads(sample).keys() <= Settings.model_fields.keys()


@every_page
def test_lines_are_short_but_for_tables(page: Path) -> None:
    long = [line for line in text_of(page).splitlines() if len(line) > 130 and not line.startswith("|")]
    assert long == []
