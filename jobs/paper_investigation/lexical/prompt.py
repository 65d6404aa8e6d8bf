"""Reads back what `prompts.py` wrote: the paper's text and the questions.

The baseline is honest because this is all it gets; nothing here sees a data file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runner.messages import ChatRequest

_PAPER = re.compile(
    r"<paper-(?P<mark>[0-9a-f]{8}) [^\n]*>\n(?P<text>.*)\n</paper-(?P=mark)>",
    re.DOTALL,
)
_BLOCK = re.compile(
    r"(?P<number>[^\n]*\d\W*\n)?"
    r"<question-(?P<mark>[0-9a-f]{8})>\n(?P<text>.*?)\n</question-(?P=mark)>",
    re.DOTALL,
)
_OPTION = re.compile(r"[a-d]\) (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A multiple-choice question."""

    sentence: str  #: with its gap
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study-parameter question: its fields by their label in the prompt."""

    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a request asks."""

    paper: str  #: "" in a closed-book request
    questions: tuple[Choice | Study, ...]  #: none: list the variants
    is_batch: bool
    is_structured: bool  #: the reply should follow the schema


def read_prompt(request: ChatRequest) -> Prompt:
    """The paper and the questions of a request of this job."""
    # by the marks, not by parts: a request that came over a wire has lost its parts
    asked = next(m.text for m in request.messages if m.role == "user")
    paper = _PAPER.search(asked)
    blocks = tuple(_BLOCK.finditer(asked, paper.end() if paper else 0))
    return Prompt(
        paper=paper["text"] if paper else "",
        questions=tuple(_question(block["text"]) for block in blocks),
        is_batch=any(block["number"] for block in blocks),
        is_structured=request.schema is not None,
    )


def _question(text: str) -> Choice | Study:
    first, *rest = text.split("\n")
    if first.startswith('"'):
        options = (_OPTION.fullmatch(line) for line in rest)
        return Choice(
            sentence=first.strip('"'), options=tuple(o[1] for o in options if o)
        )
    pairs = (line.partition(": ") for line in (first, *rest))
    return Study(fields={label: value for label, _, value in pairs})
