"""Recomputes every number of a stored summary from rows, and compares.

Rows and summary are read as plain text and JSON; no data of the scoring in memory is
used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from jobs.evidence_retrieval.verification.definitions import (
    SIFTLOG,
    MetricDefinitions,
    Row,
    read_queries,
)
from jobs.evidence_retrieval.verification.figures import NotComputableError, QueryScope
from jobs.evidence_retrieval.verification.layouts import (
    StoredKey,
    read_folds,
    read_lists,
)

Outcome: TypeAlias = Literal[
    "equal", "other definition", "differs", "not computable", "unknown key"
]
COMPARED: tuple[Outcome, ...] = ("equal", "other definition", "differs")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredComparison:
    """Comparison of one key of a stored summary."""

    path: str
    kind: Literal["figure", "count"]  #: a count is of queries or folds
    stored: float | str | None  #: text if it is not a number
    recomputed: float | None = None
    difference: float | None = None  #: recomputed minus stored
    verdict: Outcome
    why: str = ""  #: the definitions that give the stored value, or why it has none
    meaning: str = ""

    @property
    def cells(self) -> tuple[float | str | None, ...]:
        """The row of `verification.csv`."""
        return tuple(getattr(self, column) for column in COLUMNS)


COLUMNS = tuple(field.name for field in fields(StoredComparison))
"""Columns of `verification.csv`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryVerification:
    """Comparisons of all keys, in the order of the summary."""

    comparisons: tuple[StoredComparison, ...]
    contradictions: tuple[str, ...] = ()
    """Missing blocks, and errors that are visible without recomputing."""

    @property
    def figures(self) -> tuple[StoredComparison, ...]:
        """All but the counts of queries and folds."""
        return tuple(c for c in self.comparisons if c.kind == "figure")

    @property
    def tally(self) -> Mapping[str, int]:
        """Number of figures by verdict."""
        return Counter(c.verdict for c in self.figures)

    @property
    def compared(self) -> int:
        """Number of figures that were recomputed."""
        return sum(self.tally.get(verdict, 0) for verdict in COMPARED)

    @property
    def largest_difference(self) -> float | None:
        """Largest difference among the equal figures; None if there are none."""
        equal = (c for c in self.figures if c.verdict == "equal")
        return max((abs(c.difference or 0.0) for c in equal), default=None)

    @property
    def summary(self) -> str:
        """One line for a terminal."""
        tally = self.tally
        outcomes = [f"{tally[v]} {v}" for v in get_args(Outcome) if v in tally]
        line = ", ".join([f"{self.compared} numbers compared", *outcomes])
        largest = self.largest_difference
        return line if largest is None else f"{line}; largest difference {largest!r}"

    @property
    def failures(self) -> tuple[str, ...]:
        """Reasons not to trust the summary, one sentence each; empty: verified.

        A file without any comparable number has not been verified.
        """
        sentences = []
        if not any(
            c.verdict in COMPARED and c.stored is not None for c in self.figures
        ):
            sentences.append(
                "No number of the stored summary could be compared: its "
                "keys are unknown, or the rows lack the data."
            )
        sentences += self.contradictions
        wrong = [c for c in self.comparisons if c.verdict == "differs"]
        if wrong:
            first, others = wrong[0], len(wrong) - 1
            sentences.append(
                f"{first.path} is stored as {first.stored}, but the rows "
                f"give {first.recomputed}; {others:,} more differ (see "
                "verification.csv)."
            )
        return tuple(sentences)


TOLERANCE = 1e-9

Stored: TypeAlias = float | str | None
"""A stored value: a number, None if undefined, or any other text."""


def verify(
    rows: Iterable[Row],
    stored: Mapping[str, Any],
    *,
    choices: MetricDefinitions = SIFTLOG,
    ranking: str = "reranked",
    tolerance: float = TOLERANCE,
) -> SummaryVerification:
    """Recompute every number of a stored summary from per-query rows.

    Args:
        rows: rows of a file with ranking lists, or with predictions, or with the
            columns of both, in file order.
        stored: the summary, parsed from JSON.
        choices: the definitions to use.
        ranking: the list that evidence figures are about, in the columns
            `<ranking>_topk`.
        tolerance: the largest difference that is still equal.

    Raises:
        ValueError: a cell of the rows that should be a number is not one.
    """
    scope = QueryScope(read_queries(rows))
    if "fold_results" in stored or "aggregated_metrics" in stored:
        reading = read_folds(stored, scope, choices, ranking)
    else:
        reading = read_lists(stored, scope, choices)
    return SummaryVerification(
        comparisons=tuple(
            _compare(stored_key, choices, tolerance)
            for stored_key in reading.stored_keys
        ),
        contradictions=reading.failures,
    )


def _compare(
    stored_key: StoredKey, choices: MetricDefinitions, tolerance: float
) -> StoredComparison:
    stored = _number(stored_key.stored)
    bare = StoredComparison(
        path=stored_key.path,
        kind="count" if stored_key.is_count else "figure",
        stored=stored,
        verdict="not computable" if stored_key.reason else "unknown key",
        why=stored_key.reason,
        meaning=stored_key.meaning,
    )
    if stored_key.compute is None:
        return bare
    try:
        value = _defined(stored_key.compute(choices))
    except NotComputableError as error:
        return replace(bare, verdict="not computable", why=str(error))
    compared = replace(bare, recomputed=value, difference=_difference(stored, value))
    if _agree(stored, value, tolerance):
        return replace(compared, verdict="equal")
    for other, changes in choices.alternatives(stored_key.variants):
        with suppress(NotComputableError):
            if _agree(stored, _defined(stored_key.compute(other)), tolerance):
                return replace(compared, verdict="other definition", why=changes)
    return replace(compared, verdict="differs")


def _number(stored: object) -> Stored:
    """Parse a stored value to a number, None if undefined, or its text."""
    if stored is None:
        return None
    try:
        return _defined(float(str(stored)))
    except ValueError:
        return str(stored)


def _defined(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _agree(stored: Stored, value: float | None, tolerance: float) -> bool:
    """Return whether two numbers are equal; JSON's null is a threshold of inf."""
    if isinstance(stored, str):
        return False
    if stored is None or value is None:
        return stored is value or value == math.inf
    return stored == value or abs(value - stored) <= tolerance


def _difference(stored: Stored, value: float | None) -> float | None:
    if value is None or stored is None or isinstance(stored, str):
        return None
    return 0.0 if stored == value else value - stored
