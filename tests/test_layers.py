"""The order of the parts: who may import whom, and which names and imports no file may have."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

RANKS = [
    {"domain", "settings", "logs"},
    {"process"},
    {"store", "channels", "directory", "workflows"},
    {"activities", "relay", "api"},
    {"worker"},
    {"dev"},
    {"commands"},
    {"cli"},
]
"""A part imports itself and parts of lower ranks."""

RANK = {part: rank for rank, parts in enumerate(RANKS) for part in parts}

KNOWS_TEMPORAL = {"workflows", "activities", "relay", "worker", "dev", "commands", "cli"}

NOT_SHIPPED = {"tests", "bench", "docs", "deploy", "build"}

NAMES_WITHOUT_A_NOUN = {"utils", "util", "common", "helpers", "helper", "shared", "base", "manager", "core", "service"}

PURE = {
    *(
        "__future__",
        "abc",
        "base64",
        "bisect",
        "calendar",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
    ),
    *(
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "hmac",
        "ipaddress",
        "itertools",
        "json",
        "math",
    ),
    *("operator", "re", "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib.parse", "uuid"),
}
"""The parts of the standard library that do no IO."""

MAY_IMPORT = {
    "domain": PURE,
    "workflows": PURE | {"asyncio", "logging", "temporalio", "domain", "workflows"},
}
"""Parts that must stay free of IO, and all that they may import."""


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    tree: ast.Module

    @property
    def part(self) -> str:
        return self.name.partition(".")[0]


def modules(root: Path) -> dict[str, Module]:
    """Every shipped source file by its dotted name."""
    found = [
        _module(root, file) for top in _tops(root) for file in ([top] if top.is_file() else sorted(top.rglob("*.py")))
    ]
    return {module.name: module for module in found}


def _tops(root: Path) -> Iterator[Path]:
    for top in sorted(root.iterdir()):
        package = top.is_dir() and not top.name.startswith(".") and top.name not in NOT_SHIPPED
        if top.suffix == ".py" or (package and any(top.rglob("*.py"))):
            yield top


def _module(root: Path, file: Path) -> Module:
    words = file.relative_to(root).with_suffix("").parts
    words = words[:-1] if words[-1] == "__init__" else words
    return Module(".".join(words), ast.parse(file.read_text(encoding="utf-8"), str(file)))


def imported(module: Module, known: dict[str, Module]) -> set[str]:
    """The dotted names a module imports: our modules exactly, others as they are written."""
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in known else node.module for name in inside}
    return names


def faults(root: Path) -> list[str]:
    """Every breach of the order under `root`, one line each."""
    known = modules(root)
    found = [fault for module in known.values() for fault in _faults_of(module, known)]
    return sorted({*found, *_cycle(known)})


def _faults_of(module: Module, known: dict[str, Module]) -> Iterator[str]:
    if module.part not in RANK:
        yield f"{module.name}: a part without a rank"
        return
    names = imported(module, known)
    yield from _wrong_arrows(module, names)
    yield from _wrong_outsiders(module, names)
    yield from _hidden_imports(module)
    if nameless := NAMES_WITHOUT_A_NOUN.intersection(module.name.split(".")):
        yield f"{module.name}: {nameless.pop()!r} is not a noun of ours"


def _wrong_arrows(module: Module, names: set[str]) -> Iterator[str]:
    for name in names:
        part = name.partition(".")[0]
        if part in RANK and part != module.part and RANK[part] >= RANK[module.part]:
            yield f"{module.name}: may not import {name}"


def _wrong_outsiders(module: Module, names: set[str]) -> Iterator[str]:
    allowed = MAY_IMPORT.get(module.part)
    for name in names:
        top = name.partition(".")[0]
        if top == "temporalio" and module.part not in KNOWS_TEMPORAL:
            yield f"{module.name}: may not know Temporal"
        elif allowed is not None and top != module.part and not {name, top} & allowed:
            yield f"{module.name}: may not import {name}"


def _hidden_imports(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    yield f"{module.name}:{inner.lineno}: an import inside a function"
        elif isinstance(node, ast.Name | ast.alias | ast.Attribute) and "TYPE_CHECKING" in ast.unparse(node):
            yield f"{module.name}:{node.lineno}: TYPE_CHECKING"
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield f"{module.name}:{node.lineno}: a relative import"


def _cycle(known: dict[str, Module]) -> Iterator[str]:
    graph = {name: imported(module, known) & known.keys() - {name} for name, module in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"a cycle: {' <- '.join(error.args[1])}"


def test_the_parts_keep_their_order() -> None:
    assert faults(ROOT) == []


def test_every_part_is_looked_at() -> None:
    parts = {module.part for module in modules(ROOT).values()}
    assert parts >= {"domain", "store", "channels", "workflows", "activities", "dev", "settings", "process", "worker"}


def test_what_counts_as_pure_exists() -> None:
    assert {name.partition(".")[0] for name in PURE} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"domain/a.py": "import store"}, "domain.a: may not import store"),
        ({"domain/a.py": "from os import path"}, "domain.a: may not import os"),
        ({"domain/a.py": "import urllib.request"}, "domain.a: may not import urllib.request"),
        ({"store/a.py": "from channels import port"}, "store.a: may not import channels"),
        ({"store/a.py": "from channels import port", "channels/port.py": ""}, "store.a: may not import channels.port"),
        ({"workflows/a.py": "import store.events", "store/events.py": ""}, "workflows.a: may not import store.events"),
        ({"workflows/a.py": "import socket"}, "workflows.a: may not import socket"),
        ({"workflows/a.py": "import httpx"}, "workflows.a: may not import httpx"),
        ({"workflows/a.py": "import settings", "settings.py": ""}, "workflows.a: may not import settings"),
        ({"api/a.py": "import temporalio.client"}, "api.a: may not know Temporal"),
        ({"api/a.py": "import worker"}, "api.a: may not import worker"),
        ({"api/a.py": "import relay"}, "api.a: may not import relay"),
        ({"relay.py": "import cli"}, "relay: may not import cli"),
        ({"process.py": "import store"}, "process: may not import store"),
        ({"api/a.py": "def f():\n    import json"}, "api.a:2: an import inside a function"),
        ({"api/a.py": "class C:\n    async def f(self):\n        from json import loads"}, "api.a:3: an import inside"),
        ({"api/a.py": "from typing import TYPE_CHECKING"}, "api.a:1: TYPE_CHECKING"),
        ({"api/a.py": "import typing\nif typing.TYPE_CHECKING: pass"}, "api.a:2: TYPE_CHECKING"),
        ({"api/a.py": "from . import b", "api/b.py": ""}, "api.a:1: a relative import"),
        ({"api/utils.py": ""}, "api.utils: 'utils' is not a noun of ours"),
        ({"api/core/a.py": ""}, "api.core.a: 'core' is not a noun of ours"),
        ({"api/a.py": "import api.b", "api/b.py": "from api import a"}, "a cycle: "),
        ({"tools.py": ""}, "tools: a part without a rank"),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, files: dict[str, str], fault: str) -> None:
    _plant(tmp_path, files)
    assert len(faults(tmp_path)) == 1
    assert faults(tmp_path)[0].startswith(fault)


def test_a_tree_in_order_has_no_faults(tmp_path: Path) -> None:
    _plant(
        tmp_path,
        {
            "domain/a.py": "import json\nfrom urllib.parse import quote\nfrom collections.abc import Iterator",
            "domain/b.py": "from domain.a import Iterator",
            "workflows/a.py": "import asyncio\nfrom temporalio import workflow\nfrom domain import b",
            "store/__init__.py": "from store.a import x",
            "store/a.py": "import sqlalchemy\nfrom domain.b import y\nx = 1",
            "worker.py": "import os\nimport store\nfrom workflows.a import workflow",
            "tests/utils.py": "def f():\n    import cli",
        },
    )
    assert faults(tmp_path) == []


def _plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
