"""Values with units for the tests of comparing, and the pairs that match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind


@dataclass(frozen=True)
class Value:
    value: str
    unit: str = ""


def comparer(
    *,
    clusters: dict[str, dict[str, str]] | None = None,
    space_groups: dict[str, int] | None = None,
    **settings: Any,
) -> Comparer:
    return Comparer(
        PropertySettings(**settings), clusters=clusters, space_groups=space_groups
    )


def matches(kind: ComparisonKind, prediction: str, truth: str, **settings: Any) -> bool:
    """Whether two values without unit match, as explained and as matched."""
    by = comparer(**settings)
    one, other = Value(prediction), Value(truth)
    explained = by.compare(kind, "property", one, other).match
    assert explained == bool(pairs(by, kind, [one], [other]))
    return explained


def pairs(
    by: Comparer,
    kind: ComparisonKind,
    predictions: Iterable[Value],
    truths: Iterable[Value],
) -> list[tuple[int, int]]:
    edges = by.edges(kind, "property", tuple(predictions), tuple(truths))
    return [(edge.prediction, edge.truth) for edge in edges]
