"""Models compared with each other, on the reviews that both have done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from jobs.metrics import (
    Difference,
    Interval,
    Ratio,
    holm,
    mcnemar,
    mean_of,
    ratio,
)
from jobs.review_benchmark.measuring.benchmark import Benchmark
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.drawing import Draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Left minus right."""

    value: float | None
    ends: Interval  #: bootstrap by review, the same draws for both


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models on the truth papers of the reviews that both have done."""

    left: str
    right: str
    reviews: int
    dropped: int  #: reviews that only one of them has done
    n: int  #: truth papers
    left_alone: int  #: included by the left one only
    right_alone: int
    p: float | None  #: exact McNemar; None where they share no review
    p_holm: float | None = None  #: over all pairs of the run
    gaps: Mapping[str, Gap]  #: by metric, such as `macro.recall`


def pairs(columns: Sequence[Column], draws: Draws) -> tuple[Pair, ...]:
    """Every pair of models, in their order."""
    found = [_pair(left, right, draws) for left, right in combinations(columns, 2)]
    corrected = holm([own.p for own in found])
    return tuple(
        replace(own, p_holm=p) for own, p in zip(found, corrected, strict=True)
    )


def _pair(left: Column, right: Column, draws: Draws) -> Pair:
    shared = tuple(review for review in left.benchmarks if review in right.benchmarks)
    included = [
        [match.included for review in shared for match in own.matches[review]]
        for own in (left, right)
    ]
    both = list(zip(*included, strict=True))
    left_alone = sum(a and not b for a, b in both)
    right_alone = sum(b and not a for a, b in both)
    gaps = _gaps(
        [left.benchmarks[review] for review in shared],
        [right.benchmarks[review] for review in shared],
    )
    ends = draws.of(shared).intervals(list(gaps.values()))
    return Pair(
        left=left.model,
        right=right.model,
        reviews=len(shared),
        dropped=len(left.benchmarks.keys() ^ right.benchmarks.keys()),
        n=len(both),
        left_alone=left_alone,
        right_alone=right_alone,
        p=mcnemar(left_alone, right_alone).p if both else None,
        gaps={
            path: Gap(value=_value(of), ends=each)
            for (path, of), each in zip(gaps.items(), ends, strict=True)
        },
    )


def _gaps(
    left: Sequence[Benchmark], right: Sequence[Benchmark]
) -> Mapping[str, Difference]:
    both = [
        (a.precision, b.precision)
        if a.precision is not None and b.precision is not None
        else (None, None)
        for a, b in zip(left, right, strict=True)
    ]
    return {
        "macro.recall": Difference(
            *(mean_of([each.recall for each in side]) for side in (left, right))
        ),
        "macro.precision": Difference(
            *(mean_of([pair[side] for pair in both]) for side in (0, 1))
        ),
        "micro.recall": Difference(
            *(
                Ratio(
                    [each.found_and_included for each in side],
                    [each.truth for each in side],
                )
                for side in (left, right)
            )
        ),
        "micro.precision": Difference(
            *(
                Ratio(
                    [each.credited for each in side],
                    [each.included_rows for each in side],
                )
                for side in (left, right)
            )
        ),
    }


def _value(of: Difference) -> float | None:
    left, right = (
        ratio(math.fsum(side.numerators), math.fsum(side.denominators))
        for side in (of.left, of.right)
    )
    return None if left is None or right is None else left - right
