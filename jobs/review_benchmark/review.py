"""A published review: what it asked, and the studies that it included.

Values are kept as the file has them, since they are written back; matching normalises
on its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.review_benchmark.answered import Certainty, Direction

_NO_WORD = re.compile(r"\W+")

PICO = ("population", "intervention", "comparison", "outcome")
"""The parts of a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthPaper:
    """One entry of a review's list of included studies."""

    pmid: str = ""  #: as written; empty: not given
    doi: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    ref_id: str = ""  #: what the review calls it, such as "Ahn 2008"
    notes: str = ""
    further: Mapping[str, Any] = field(default_factory=dict)
    """Fields that siftlog does not know; written back as they came."""

    @property
    def name(self) -> str:
        """What it is called in a sentence: the first that is given."""
        return self.ref_id or self.title or self.pmid or self.doi


@dataclass(frozen=True, slots=True, kw_only=True)
class Pico:
    """A review's question in parts; empty: not said."""

    population: str = ""
    intervention: str = ""
    comparison: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review with its ground truth."""

    id: str  #: such as CD012345; any text
    title: str
    question: str
    studies: tuple[TruthPaper, ...]  #: at least one, in the file's order
    pico: Pico | None = None
    inclusion: tuple[str, ...] = ()
    exclusion: tuple[str, ...] = ()
    conclusion: str = ""  #: what its authors concluded; empty: not given
    direction: Direction | None = None  #: of the effect they conclude; None: not given
    certainty: Certainty | None = None  #: the same
    source_url: str = ""
    notes: str = ""
    date_range: tuple[int, int] | None = None  #: years, both inclusive
    further: Mapping[str, Any] = field(default_factory=dict)
    """Fields that siftlog does not know; written back as they came."""

    @property
    def is_title_alone(self) -> bool:
        """Whether nothing beside the title says what the review asks for.

        Published lists of studies often repeat the title in place of the question.
        """
        parts = () if self.pico is None else (getattr(self.pico, each) for each in PICO)
        if any((*self.inclusion, *self.exclusion, *parts)):
            return False
        question, title = (
            _NO_WORD.sub(" ", text.casefold()).strip()
            for text in (self.question, self.title)
        )
        return question == title
