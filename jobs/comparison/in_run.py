"""The models of one run compared with each other, for its summary and tables.

Items, intervals, tests, Holm's families and verdicts are those of `siftlog compare` on
the same run, so that one pair and metric has one p and one word wherever it is shown.
Tables of a run give left minus right, so the words are about the left model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from jobs.comparison.difference import Compared
from jobs.comparison.matching import Drawing, Side, all_compared
from jobs.comparison.verdict import Rule, Verdict, standing_words
from jobs.counted import counted
from jobs.metrics.intervals import Form
from runner.scorecard import Cell, Comparable


class Drawn(Protocol):
    """The settings of a job that say how it draws intervals and judges differences."""

    @property
    def boot_b(self) -> int:
        """Bootstrap replicates."""

    @property
    def boot_seed(self) -> int:
        """Seed of draws and permutations."""

    @property
    def level(self) -> float:
        """Level of the intervals."""

    @property
    def interval(self) -> Form:
        """How the ends of intervals are made."""

    @property
    def min_clusters(self) -> int:
        """Clusters below which a comparison has no winner."""


def rule(settings: Drawn) -> Rule:
    """The rule of verdicts under a job's settings."""
    return _drawing(settings).rule


def _drawing(settings: Drawn) -> Drawing:
    return Drawing(
        b=settings.boot_b,
        seed=settings.boot_seed,
        level=settings.level,
        min_clusters=settings.min_clusters,
        form=settings.interval,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two models of a run, metric by metric."""

    left: str
    right: str
    metrics: Mapping[str, Compared]  #: by path, left minus right


def model_pairs(
    models: Mapping[str, Comparable], paths: Sequence[str], settings: Drawn
) -> tuple[ModelPair, ...]:
    """Every two models, in their order, in those of *paths* that both have.

    Args:
        models: what each can be compared in.
        paths: metrics whose families lie within them, so that Holm's correction is
            that of a comparison of all metrics.
        settings: of the job.
    """
    sides = [
        Side(
            run="",
            number=None,
            model=model,
            # every pair of a model asks for its values
            comparable={path: cache(own[path]) for path in paths if path in own},
            seq=0,
        )
        for model, own in models.items()
    ]
    # a comparison is B minus A
    pairs = [(right, left) for left, right in itertools.combinations(sides, 2)]
    return tuple(
        ModelPair(
            left=match.b.model,
            right=match.a.model,
            metrics={each.path: each for each in match.compared},
        )
        for match in all_compared(pairs, (), _drawing(settings))
    )


def difference_cells(found: Compared | None) -> tuple[Cell, ...]:
    """The difference of one metric of a pair and the ends of its interval."""
    if found is None:
        return (None, None, None)
    return (found.gap.value, found.gap.interval.lo, found.gap.interval.hi)


TESTED_COLUMNS = ("test", "p", "p_holm", "verdict", "clusters", "won", "lost", "tied")
"""Of a metric in a table of pairs; the counts are items."""


def tested_cells(found: Compared | None) -> tuple[Cell, ...]:
    """One metric of a pair, below `TESTED_COLUMNS`."""
    if found is None:
        return (None,) * len(TESTED_COLUMNS)
    own, standing = found.p_values.own, found.standing
    return (
        None if own is None else own.name,
        None if own is None else own.p,
        found.p_holm,
        found.verdict,
        found.overlap.clusters,
        *(
            (standing.wins, standing.losses, standing.ties)
            if standing
            else (None, None, None)
        ),
    )


def in_words(found: Compared) -> str:
    """The test, the items by outcome and the verdict, for a line of a summary."""
    own = found.p_values.own
    parts = [
        "no test"
        if own is None or found.p_holm is None
        else f"p {own.p:.2g} ({own.name}), Holm {found.p_holm:.2g}"
    ]
    if found.standing is not None:
        won = found.standing
        parts.append(standing_words(won.wins, won.losses, won.ties))
    return f"{', '.join(parts)}: {said(found)}"


def said(found: Compared) -> str:
    """The verdict as a phrase about the left model."""
    word: Verdict = found.verdict
    if word == "too few":
        return f"too few ({counted(found.overlap.clusters, found.cluster)})"
    return f"left {word}" if word in {"better", "worse"} else word
