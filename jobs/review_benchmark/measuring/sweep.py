"""What every threshold would give: one sort of the scores, and no new call.

As the threshold falls, papers are included one by one. A truth paper has a record as
soon as one that serves it is included; of several it is the one that ranks first, as it
would be if the run were scored again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from jobs.metrics import mean, ratio
from jobs.review_benchmark.matching.claims import Claims
from jobs.review_benchmark.measuring.benchmark import CREDITED, passes
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one threshold would give for a review."""

    threshold: float  #: a score that occurs; papers from it on are included
    truth: int
    included_rows: int
    found_and_included: int
    credited: int  #: numerator of precision
    passed: bool

    @property
    def recall(self) -> float:
        """Truth papers that would be included, of all."""
        return self.found_and_included / self.truth

    @property
    def precision(self) -> float | None:
        """Included rows that would be truth papers, of all."""
        return ratio(self.credited, self.included_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """What one threshold would give over reviews."""

    threshold: float
    reviews: int
    passed: int
    included_rows: int
    recall: float | None  #: mean over reviews
    precision: float | None  #: mean over reviews that include anything
    micro_recall: float | None
    micro_precision: float | None


def swept(own: Rebuilt, settings: Settings) -> tuple[Step, ...]:
    """A step a distinct score, falling.

    Papers without a score stay what they are: included or not by the settings, or as
    their file has it.
    """
    served: _Served = _Claimed(own) if settings.unique_claims else _Shared(own)
    rows: Counter[str] = Counter()
    steps = []
    scored = sorted(
        (
            (each.score, each.document)
            for each in own.candidates
            if each.score is not None
        ),
        key=lambda found: -found[0],
    )
    for each in own.candidates:
        if each.score is None and each.included:
            rows[each.document] += 1
            served.add(each.document)
    for score, group in groupby(scored, key=lambda found: found[0]):
        for _, document in group:
            rows[document] += 1
            served.add(document)
        right_rows = sum(rows[document] for document in served.documents)
        steps.append(
            Step(
                threshold=score,
                truth=len(own.hits),
                included_rows=rows.total(),
                found_and_included=served.papers,
                credited=CREDITED[settings.precision](right_rows, served.papers),
                passed=passes(served.papers, len(own.hits), settings.target_recall),
            )
        )
    return tuple(steps)


def passing(steps: Sequence[Step]) -> Step | None:
    """How far the threshold would have to fall for the review to pass; None: never."""
    return next((step for step in steps if step.passed), None)


def overall(
    every: Mapping[str, Sequence[Step]], truth: Mapping[str, int]
) -> Iterator[Overall]:
    """A step a distinct score of any review, falling.

    A review counts from its highest score on: before it nothing is included.

    Args:
        every: the steps of each review.
        truth: how many truth papers each review has.
    """
    now: dict[str, Step | None] = dict.fromkeys(every)
    moves = sorted(
        (
            (step.threshold, review, step)
            for review, own in every.items()
            for step in own
        ),
        key=lambda move: (-move[0], move[1]),
    )
    for threshold, group in groupby(moves, key=lambda move: move[0]):
        now |= {review: step for _, review, step in group}
        yield _overall(threshold, now, truth)


def _overall(
    threshold: float,
    now: Mapping[str, Step | None],
    truth: Mapping[str, int],
) -> Overall:
    there = [step for step in now.values() if step is not None]
    papers = sum(step.found_and_included for step in there)
    rows = sum(step.included_rows for step in there)
    return Overall(
        threshold=threshold,
        reviews=len(now),
        passed=sum(step.passed for step in there),
        included_rows=rows,
        recall=mean(0.0 if step is None else step.recall for step in now.values()),
        precision=mean(step.precision for step in there),
        micro_recall=ratio(papers, sum(truth.values())),
        micro_precision=ratio(sum(step.credited for step in there), rows),
    )


class _Served(Protocol):
    """Truth papers that included records serve, as more and more are included."""

    @property
    def documents(self) -> Collection[str]:
        """The records that serve a truth paper."""
        ...

    @property
    def papers(self) -> int:
        """Truth papers that have one."""
        ...

    def add(self, document: str) -> None:
        """Include one more; a document may come again."""
        ...


class _Shared:
    """A record may serve several truth papers."""

    def __init__(self, own: Rebuilt) -> None:
        self._rank: dict[str, int] = {}
        for each in own.candidates:
            self._rank.setdefault(each.document, each.rank)
        self._serves: dict[str, list[int]] = {}
        for paper, hits in enumerate(own.matched.serving):
            for document in dict.fromkeys(own.documents[hit.place] for hit in hits):
                self._serves.setdefault(document, []).append(paper)
        self._chosen: dict[int, str] = {}

    @property
    def documents(self) -> Collection[str]:
        return set(self._chosen.values())

    @property
    def papers(self) -> int:
        return len(self._chosen)

    def add(self, document: str) -> None:
        for paper in self._serves.get(document, ()):
            best = self._chosen.get(paper)
            if best is None or self._rank[document] < self._rank[best]:
                self._chosen[paper] = document


class _Claimed:
    """A record serves one truth paper."""

    def __init__(self, own: Rebuilt) -> None:
        self._documents = own.documents
        self._claims = Claims(own.matched.claimable)
        self._places: dict[str, list[int]] = {}
        for place, document in own.documents.items():
            self._places.setdefault(document, []).append(place)

    @property
    def documents(self) -> Collection[str]:
        return {self._documents[place] for place in self._claims.places}

    @property
    def papers(self) -> int:
        return len(self._claims)

    def add(self, document: str) -> None:
        for place in self._places.get(document, ()):
            self._claims.add(place)
