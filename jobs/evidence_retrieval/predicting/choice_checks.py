"""Experiments that an honest choice from a grid must survive, as gates must.

Another gold of the test posts, or none at all, must leave the choice of their fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from jobs.evidence_retrieval.gating.splits import Split
from jobs.evidence_retrieval.predicting.choosing import FoldChoice, Grid, choose
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from runner.scorecard import Finding

Choose: TypeAlias = Callable[[Grid, Queries, Split], FoldChoice]


def choice_checks(
    where: str,
    grid: Grid,
    queries: Queries,
    splits: Sequence[Split],
    *,
    choose: Choose = choose,
) -> Iterator[Finding]:
    """What the experiments find.

    Args:
        where: model and configuration, for the findings.
        grid: what was chosen from.
        queries: with gold.
        splits: of the folds.
        choose: how one fold's constants are chosen.
    """
    for own in splits:
        before = choose(grid, queries, own)
        tested = [
            i
            for i, post in enumerate(queries.post.tolist())
            if queries.posts[post] in frozenset(own.test)
        ]
        for code, what, changed in (
            ("gold_scramble", "permuted", _reversed(queries, tested)),
            ("test_removal", "taken away", _removed(queries, tested)),
        ):
            if choose(grid, changed, own) != before:
                yield Finding(
                    code=code,
                    severity="error",
                    where=f"{where}, fold {own.fold}",
                    message=f"With the gold of the test posts {what}, the fold's "
                    "choice from a grid changes.",
                )


def _reversed(queries: Queries, tested: Sequence[int]) -> Queries:
    """The gold of the tested queries in the opposite order."""
    y = queries.y.copy()
    y[list(tested)] = y[list(reversed(tested))]
    if queries.gold is None:
        return replace(queries, y=y)
    gold = [*queries.gold]
    for i, other in zip(tested, reversed(tested), strict=True):
        gold[i] = queries.gold[other]
    return replace(queries, y=y, gold=gold)


def _removed(queries: Queries, tested: Sequence[int]) -> Queries:
    y = queries.y.copy()
    y[list(tested)] = UNKNOWN
    return replace(queries, y=y)
