"""What is known before any draw: reviews, papers, who cites whom, known exclusions.

Ids are text everywhere: leading zeros count, and order is that of text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from runner.scorecard import Finding

Ids: TypeAlias = tuple[str, ...]
Places: TypeAlias = npt.NDArray[np.int64]
Status: TypeAlias = Literal["excluded", "awaiting", "ongoing"]


def place_in(ids: Ids, wanted: str) -> int | None:
    """The place of an id among ascending ones; None where it is not among them."""
    place = bisect_left(ids, wanted)
    return place if ids[place : place + 1] == (wanted,) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What can be read of a review or a paper."""

    title: str = ""
    abstract: str = ""  #: blank: missing
    year: int | None = None

    @property
    def has_abstract(self) -> bool:
        """Whether there is an abstract; blanks are none."""
        return bool(self.abstract.strip())


_NO_TEXT = Text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A paper that a review has looked at and not included, or not yet."""

    review: str
    paper: str
    status: Status = "excluded"
    reason: str = ""
    reason_code: str = ""  #: as the file says; empty: coded from the reason
    study: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What a review asks for; what a model is told."""

    question: str = ""
    pico: Mapping[str, str] = field(default_factory=dict)
    inclusion: Ids = ()
    exclusion: Ids = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    """Further criteria by heading."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        return not (
            self.question
            or self.pico
            or self.inclusion
            or self.exclusion
            or self.headings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Citations:
    """Who cites whom: each edge once, as places in two sorted lists of ids."""

    reviews: Ids  #: that cite anything, ascending as text
    papers: Ids  #: that are cited, ascending as text
    review: Places  #: (E,) place in reviews, ascending
    paper: Places  #: (E,) place in papers, ascending within a review
    rows: int  #: rows with both ids, duplicates counted

    def has(self, review: str, paper: str) -> bool:
        """Whether a review cites a paper."""
        row, column = place_in(self.reviews, review), place_in(self.papers, paper)
        if row is None or column is None:
            return False
        begin, end = np.searchsorted(self.review, (row, row + 1))
        own = self.paper[begin:end]
        at = int(np.searchsorted(own, column))
        return at < len(own) and int(own[at]) == column


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """All inputs of `prepare` and `explain`, validated."""

    reviews: Mapping[str, Text]  #: rows of the review table, by id
    papers: Mapping[str, Text]
    """Rows of the paper table, by id; they alone say who has an abstract."""
    further: Mapping[str, Text] = field(default_factory=dict)
    """Texts that the list of exclusions brings, by paper."""
    citations: Citations
    exclusions: tuple[Exclusion, ...] = ()  #: one a review and paper, ascending
    criteria: Mapping[str, Criteria] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Counts of the input: `reviews_without_citations`, `exclusions`, ..."""

    def excluded_by(self) -> dict[str, dict[str, Exclusion]]:
        """What each review has excluded or not decided, by paper."""
        found: dict[str, dict[str, Exclusion]] = {}
        for each in self.exclusions:
            found.setdefault(each.review, {})[each.paper] = each
        return found

    def text(self, paper: str) -> Text:
        """A paper's text: the table's, and where that has no abstract the other."""
        own = self.papers.get(paper, _NO_TEXT)
        return own if own.has_abstract else self.further.get(paper, own)


def true_exclusions(
    corpus: Corpus, cited: Iterable[str], known: Mapping[str, Exclusion]
) -> list[str]:
    """Papers that a review looked at and excluded, with an abstract, ascending.

    Args:
        corpus: texts.
        cited: what the review cites: it stays included whatever else is said.
        known: what the review has excluded or not decided, by paper.
    """
    taken = set(cited)
    return [
        paper
        for paper, found in sorted(known.items())
        if found.status == "excluded"
        and paper not in taken
        and corpus.text(paper).has_abstract
    ]
