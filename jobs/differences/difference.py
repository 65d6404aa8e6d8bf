"""A difference between two scorings as a value: metrics, their parts, items, verdicts.

Every part is a fraction of the doubles that were recorded. The parts of a metric add up
to its change exactly, and so do the shares of a part's items with what rounding left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from jobs.differences.causes import PARSER, SCORER, Cause, Kind
from runner.scorecard import Booking
from store.scoring import StoredVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemShare:
    """What an item has in a part; None: it is on one side alone, or has no value."""

    item: str
    cluster: str  #: the document that it is part of
    before: float | None
    after: float | None
    share: Fraction | None  #: None: the metric is no sum over items


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one cause, or several that go together only, has in a metric's change."""

    causes: tuple[Cause, ...]
    before: float | None
    after: float | None
    change: Fraction | None
    """None: the metric was undefined on one side of the whole difference."""
    items: tuple[ItemShare, ...]  #: the largest shares first
    rounding: Fraction | None
    """What the metric's own rounding leaves of the shares; None: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A metric that is not what it was, or went another way to the same value."""

    model: str
    path: str
    before: float | None
    after: float | None
    parts: tuple[Part, ...]

    @property
    def change(self) -> Fraction | None:
        """After less before, exactly; None where one is undefined."""
        if self.before is None or self.after is None:
            return None
        return Fraction(self.after) - Fraction(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """A verdict on a task that differs."""

    task: int
    key: str
    before: StoredVerdict | None  #: None: there was none
    after: StoredVerdict | None

    @property
    def cause(self) -> Cause:
        """Where only the code changed: whether reading or judging did."""
        if self.before is None or self.after is None:
            return PARSER
        return PARSER if self.before.value != self.after.value else SCORER

    @property
    def right(self) -> int:
        """1 where it came to be right, -1 where it ceased to be, else 0."""
        was, now = (each is not None and each.correct for each in self.sides)
        return bool(now) - bool(was)

    @property
    def sides(self) -> tuple[StoredVerdict | None, StoredVerdict | None]:
        """Before and after."""
        return self.before, self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What came with one change on the way from one scoring to the other."""

    causes: tuple[Cause, ...]
    metrics: int  #: that it moved
    verdicts: Mapping[str, tuple[VerdictChange, ...]]  #: by model
    bookings: Mapping[str, Booking]  #: by model, of jobs that name causes of their own

    @property
    def is_of_code(self) -> bool:
        """Whether nothing but the code changed."""
        return {cause.kind for cause in self.causes} == {Kind.CODE}

    def by_cause(
        self,
    ) -> Iterator[tuple[str, tuple[Cause, ...], Sequence[VerdictChange]]]:
        """The verdicts by model, those of the code as its parser's and its scorer's."""
        for model, changes in self.verdicts.items():
            if not self.is_of_code:
                yield model, self.causes, changes
                continue
            for cause in (PARSER, SCORER):
                own = [each for each in changes if each.cause == cause]
                if own:
                    yield model, (cause,), own


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """All that lies between two scorings of a run."""

    run: str
    job: str
    before: int  #: number of a scoring
    after: int
    digests: tuple[str, str]
    headline: str  #: path of the metric that the scorings are judged by
    headlines: tuple[str, ...]  #: of those that are looked at first
    stages: tuple[Stage, ...]
    changed: tuple[Changed, ...]
    unchanged: tuple[str, ...]  #: paths of the other metrics, once a model
    notes: tuple[str, ...]
