"""What became of every key of a stored summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Outcome: TypeAlias = Literal[
    "equal", "other definition", "differs", "not computable", "unknown key"
]
COMPARED: tuple[Outcome, ...] = ("equal", "other definition", "differs")

COLUMNS = (
    "path",
    "kind",
    "stored",
    "recomputed",
    "difference",
    "verdict",
    "why",
    "meaning",
)
"""Of `verification.csv`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One key of a stored summary."""

    path: str
    kind: Literal["figure", "count"]  #: a count is one of queries or folds
    stored: float | str | None  #: a text where it is no number
    verdict: Outcome
    recomputed: float | None = None
    difference: float | None = None  #: recomputed less stored
    why: str = ""  #: the choices that give the stored value, or why there is none
    meaning: str = ""

    @property
    def cells(self) -> tuple[float | str | None, ...]:
        """The row of `verification.csv`."""
        return tuple(getattr(self, column) for column in COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All of them, in the order of the summary."""

    comparisons: tuple[Comparison, ...]
    contradictions: tuple[str, ...] = ()
    """Blocks that should be there, and what is wrong without any recomputing."""

    @property
    def figures(self) -> tuple[Comparison, ...]:
        """All but the counts of queries and folds."""
        return tuple(c for c in self.comparisons if c.kind == "figure")

    @property
    def tally(self) -> Mapping[str, int]:
        """How many figures had each verdict."""
        return Counter(c.verdict for c in self.figures)

    @property
    def compared(self) -> int:
        """How many figures were recomputed."""
        return sum(self.tally.get(verdict, 0) for verdict in COMPARED)

    @property
    def largest_difference(self) -> float | None:
        """Among the figures that are equal; None where none is."""
        equal = (c for c in self.figures if c.verdict == "equal")
        return max((abs(c.difference or 0.0) for c in equal), default=None)

    @property
    def summary(self) -> str:
        """One line for a terminal."""
        tally = self.tally
        told = [f"{tally[v]} {v}" for v in get_args(Outcome) if v in tally]
        line = ", ".join([f"{self.compared} numbers compared", *told])
        largest = self.largest_difference
        return line if largest is None else f"{line}; largest difference {largest!r}"

    @property
    def failures(self) -> tuple[str, ...]:
        """One sentence for each reason not to trust the summary; none: verified.

        A file of which nothing could be compared has not been verified.
        """
        return (*self._nothing(), *self.contradictions, *self._differing())

    def _nothing(self) -> Iterator[str]:
        is_number = (
            c.verdict in COMPARED and c.stored is not None for c in self.figures
        )
        if not any(is_number):
            yield (
                "No number of the stored summary could be compared: none of its keys "
                "is known, or the rows do not hold what they are made of."
            )

    def _differing(self) -> Iterator[str]:
        wrong = [c for c in self.comparisons if c.verdict == "differs"]
        if wrong:
            first, others = wrong[0], len(wrong) - 1
            yield (
                f"{first.path} is stored as {first.stored}, but the rows come to "
                f"{first.recomputed}; {others:,} more differ (see verification.csv)."
            )
