"""Every number of a stored summary beside the one recomputed from the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from jobs.evidence_retrieval.verification.choices import SIFTLOG, Choices, Tries
from jobs.evidence_retrieval.verification.figures import NotComputableError, Scope
from jobs.evidence_retrieval.verification.folds_layout import read_folds
from jobs.evidence_retrieval.verification.held import Held
from jobs.evidence_retrieval.verification.lists_layout import read_lists
from jobs.evidence_retrieval.verification.queries import Row, read_queries
from jobs.evidence_retrieval.verification.verification import Comparison, Verification

TOLERANCE = 1e-9

Stored: TypeAlias = float | str | None
"""A stored value: a number, undefined, or a text that is neither."""


def verify(
    rows: Iterable[Row],
    stored: Mapping[str, Any],
    *,
    choices: Choices = SIFTLOG,
    ranking: str = "reranked",
    probability: str | None = None,
    tolerance: float = TOLERANCE,
) -> Verification:
    """Recompute from per-query rows every number that a stored summary holds.

    Args:
        rows: of a file with ranking lists, or with predictions, or with the columns
            of both, in file order.
        stored: the summary, as `json.loads` gives it.
        choices: the definitions to read it by.
        ranking: the list that evidence figures are about, in the columns
            `<ranking>_topk`.
        probability: the column of the probability, where it is not the usual one.
        tolerance: the largest difference that is still equal.

    Raises:
        ValueError: a cell of the rows that should be a number is none.
    """
    scope = Scope(read_queries(rows, probability))
    if "fold_results" in stored or "aggregated_metrics" in stored:
        reading = read_folds(stored, scope, choices, ranking)
    else:
        reading = read_lists(stored, scope, choices)
    return Verification(
        comparisons=tuple(_compare(held, choices, tolerance) for held in reading.held),
        contradictions=reading.failures,
    )


def _compare(held: Held, choices: Choices, tolerance: float) -> Comparison:
    stored = _number(held.stored)
    bare = Comparison(
        path=held.path,
        kind="count" if held.is_count else "figure",
        stored=stored,
        verdict="not computable" if held.why else "unknown key",
        why=held.why,
        meaning=held.meaning,
    )
    if held.compute is None:
        return bare
    try:
        value = _defined(held.compute(choices))
    except NotComputableError as error:
        return replace(bare, verdict="not computable", why=str(error))
    known = replace(bare, recomputed=value, difference=_difference(stored, value))
    if _agree(stored, value, tolerance):
        return replace(known, verdict="equal")
    why = _definition_of(stored, held.compute, held.tries, choices, tolerance)
    if why is not None:
        return replace(known, verdict="other definition", why=why)
    return replace(known, verdict="differs")


def _definition_of(
    stored: Stored,
    compute: Callable[[Choices], float | None],
    tries: Tries,
    choices: Choices,
    tolerance: float,
) -> str | None:
    """The other choices that make the stored number; None: none that are known."""
    for other, named in choices.alternatives(tries):
        try:
            value = _defined(compute(other))
        except NotComputableError:
            continue
        if _agree(stored, value, tolerance):
            return named
    return None


def _number(stored: object) -> Stored:
    """A stored value as a number, None where it is undefined, or the text it is."""
    if stored is None:
        return None
    try:
        return _defined(float(str(stored)))
    except ValueError:
        return str(stored)


def _defined(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _agree(stored: Stored, value: float | None, tolerance: float) -> bool:
    """Whether two numbers are one; null is how JSON writes a threshold of inf."""
    if isinstance(stored, str):
        return False
    if stored is None or value is None:
        return stored is value or value == math.inf
    return stored == value or abs(value - stored) <= tolerance


def _difference(stored: Stored, value: float | None) -> float | None:
    if value is None or stored is None or isinstance(stored, str):
        return None
    return 0.0 if stored == value else value - stored
