"""No widget reads a text as markup: names and texts come from outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TUI = Path(__file__).resolve().parents[2] / "tui"
#: What reads its text as markup unless it is told not to.
READERS = {"Static", "Label", "notify"}


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(TUI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{path.name}:{node.lineno}", node


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _is_plain(call: ast.Call) -> bool:
    return any(
        word.arg == "markup"
        and isinstance(word.value, ast.Constant)
        and word.value.value is False
        for word in call.keywords
    )


def test_whatever_could_read_markup_is_told_not_to() -> None:
    found = [(where, call) for where, call in _calls() if _name(call) in READERS]
    assert found
    assert not [where for where, call in found if not _is_plain(call)]


def test_nothing_makes_content_of_markup() -> None:
    makers = {"from_markup", "to_content"}
    assert not [where for where, call in _calls() if _name(call) in makers]
