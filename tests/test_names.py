"""Identifiers of the product are standard terms: no word of `DIALECT` is part of one.

Read `DIALECT` as advice: each word has terms that say what a value holds. Names that
other people's files, requests or commands depend on stay as they are: `PUBLIC`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("store", "runner", "jobs", "tui")

DIALECT = {
    "allowance": "quota, limit, budget",
    "asked": "requested, questions, sent",
    "ballot": "vote, replicate verdict",
    "bell": "wakeups, event",
    "beside": "alongside, second, other side",
    "company": "shared endpoints, group",
    "courses": "attempt history, searches",
    "crowd": "concurrent calls, excess",
    "each": "the noun of what is iterated over",
    "fate": "outcome",
    "fates": "outcomes",
    "foretold": "forecast, predicted",
    "found": "the noun of what was looked up: match, row, path",
    "given": "options, arguments, source, stated value",
    "growth": "planner, new tasks",
    "heard": "received, last message",
    "kept": "stored, selected, retained",
    "lane": "model queue",
    "lanes": "model queues",
    "looked": "polled, searched, read",
    "made": "the noun of what was built",
    "nobody": "no owner, empty",
    "outlook": "estimate accuracy, forecast",
    "own": "the noun of what it holds: settings, rates, rows",
    "purse": "lease, budget share",
    "said": "reply, answer, message, stated value",
    "shown": "visible, rendered, plotted, text",
    "sight": "snapshot",
    "stakes": "preview",
    "standing": "status, verdict, outcome",
    "stands": "status, is_valid",
    "told": "message, reported, header limits",
    "undertaking": "session, run",
    "whoever": "reader, owner",
}
"""Words that say little, and the terms to choose from instead."""

PUBLIC = {
    "FoundPlace": "its name is part of the JSON schema that requests carry",
    "GIVEN_UP": "its value stands in the JSON of a split run",
    "alpha_each": "a key of `compare --sequential --json`",
    "asked_us": "a key of `siftlog control --json`",
    "beside": "a key of `compare --json`",
    "found": "a field of an event, a key of JSON reports, a metric path",
    "found_and_included": "a metric path and a key of JSON reports",
    "found_but_excluded": "a metric path and a key of JSON reports",
    "kept": "a field of events",
    "made_us": "a field of segment files",
    "not_asked": "a metric path",
    "said": "a key of `doctor --json` and of `control --json`",
    "standing": "a key of `compare --json`",
}
"""Names that are data: of these, classes have fields and enumerations members."""


def words_of(name: str) -> set[str]:
    """The words of an identifier, in lower case; "not found" is one."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return set(text.replace("not_found", "missing").split("_"))


def assigned_in(body: list[ast.stmt]) -> set[int]:
    """The ids of all nodes of assignments in a class's body."""
    return {
        id(node)
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
    }


def bindings_of(tree: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """Names that a module binds, with the line, and whether the name may be public."""
    members = set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno, id(node) in members
            case ast.arg(arg=name):
                yield name, node.lineno, False
            case ast.ClassDef(name=name, body=body):
                members |= assigned_in(body)  # the walk comes to them later
                yield name, node.lineno, True
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno, True
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno, False
            case ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield name, node.lineno, False
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno, False
            case _:
                pass


def test_identifiers_are_standard_terms() -> None:
    odd = []
    for path in sorted(p for top in PACKAGES for p in (ROOT / top).rglob("*.py")):
        for name, line, may_be_public in bindings_of(ast.parse(path.read_text())):
            word = min(words_of(name) & DIALECT.keys(), default=None)
            if word and not (may_be_public and name in PUBLIC):
                where = f"{path.relative_to(ROOT)}:{line}"
                odd.append(f"{where}: {name}; instead of {word!r}: {DIALECT[word]}")
    assert not odd, "\n".join(odd)
