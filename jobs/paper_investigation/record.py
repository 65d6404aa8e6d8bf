"""What a run holds about one paper, wherever it was made: the input of all scoring.

A record is one paper under one model in one replicate. `families.py` makes them from
answers, native or imported; everything behind it works on records only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.paper_investigation.dataset import Question
from runner.messages import Reply

Mode: TypeAlias = Literal["investigate", "extract", "questions"]

Fact: TypeAlias = str | bool | float | list[str] | None
"""A verdict, recall or score as an imported file states it."""

Options: TypeAlias = tuple[str, str, str, str] | None
"""The texts of a to d; None where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one reply to several questions is expected to answer, in order."""

    keys: tuple[str, ...]
    kinds: tuple[Literal["mcq", "study"], ...]
    options: tuple[Options, ...]

    @classmethod
    def of(cls, questions: tuple[Question, ...]) -> Batch:
        """The shape of a batch of *questions*."""
        return cls(
            keys=tuple(question.key for question in questions),
            kinds=tuple("mcq" if q.is_mcq else "study" for q in questions),
            options=tuple(question.options for question in questions),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question about a paper, and what became of it."""

    question: Question
    task: int | None = None  #: number of the task that asked it; None: never asked
    stage: str = "question"
    reply: Reply | None = None
    absent: str | None = None  #: why a question that was asked has no reply
    batch: Batch | None = None  #: where the reply answers several questions
    had_paper: bool = True  #: whether the paper's text stood in the prompt
    recorded: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Identity in the run: paper, pipeline and id."""
        return f"{self.question.pmcid}/{self.question.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord:
    """One paper, one model, one replicate.

    In mode `questions` a paper has one record for each of its question tasks, since
    they were planned one by one.
    """

    pmcid: str
    model: str
    replicate: int
    mode: Mode
    title: str | None = None
    pmid: str | None = None
    truth: tuple[str, ...] = ()  #: curated variants as they stand
    task: int | None = None  #: of the extraction; None in mode questions
    reply: Reply | None = None  #: of the extraction
    absent: str | None = None  #: why the extraction has no reply
    had_paper: bool = True
    items: tuple[Item, ...] = ()  #: pipeline order, then file order
    fixed_links: bool = False
    """Whether each question belongs to the one variant that its file put it under."""
    recorded: Mapping[str, Fact] = field(default_factory=dict)
    strays: int = 0  #: replies about what the data no longer holds
