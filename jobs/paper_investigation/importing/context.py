"""What an imported task carries: all that its file said and the run cannot derive.

The importer writes it, scoring reads it. Fields that have their default are left out
of the JSON, since it is stored with every task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from jobs.paper_investigation.dataset import Question
from jobs.paper_investigation.record import Fact, Mode

UNKNOWN_SKIP = "unknown_skip"
"""Why a paper was skipped whose file does not say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPaper:
    """What a file says about a paper besides the reply."""

    mode: Mode
    truth: tuple[str, ...] = ()
    title: str | None = None
    pmid: str | None = None
    had_paper: bool = True
    fixed_links: bool = False
    recorded: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuestion:
    """What a file says about a question besides the reply."""

    question: Question
    had_paper: bool = True
    recorded: Mapping[str, Fact] = field(default_factory=dict)


def encode(stored: StoredPaper | StoredQuestion) -> str:
    """The context of an imported task, as JSON."""
    return msgspec.json.encode(_sparse(stored)).decode()


def decode_paper(context: str) -> StoredPaper:
    """The context of an imported extraction."""
    return _PAPER.decode(context)


def decode_question(context: str) -> StoredQuestion:
    """The context of an imported question."""
    return _QUESTION.decode(context)


_PAPER = msgspec.json.Decoder(StoredPaper)
_QUESTION = msgspec.json.Decoder(StoredQuestion)


def _sparse(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    named = ((each, getattr(value, each.name)) for each in dataclasses.fields(value))
    return {
        each.name: _sparse(content) if dataclasses.is_dataclass(content) else content
        for each, content in named
        if content != _default(each)
    }


def _default(each: dataclasses.Field[Any]) -> object:
    if each.default_factory is dataclasses.MISSING:
        return each.default
    return each.default_factory()
