"""Rules about what is true: queries, gold and pools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.consistency.rule import Broken, Rule
from jobs.evidence_retrieval.queries import Queries
from jobs.metrics.columns import Bools


def _incomplete(queries: Queries) -> Iterator[Broken]:
    """Every post is read for every criterion, so N is posts x criteria."""
    per_post = np.bincount(queries.post, minlength=len(queries.posts))
    first_of_post = np.zeros(len(queries), dtype=np.bool_)
    first_of_post[np.unique(queries.post, return_index=True)[1]] = True
    posts, criteria = len(queries.posts), len(queries.criteria)
    yield Broken(
        rows=first_of_post & (per_post[queries.post] < criteria),
        where="queries",
        message=(
            f"There are {len(queries)} queries, but {posts} posts x {criteria} "
            f"criteria are {posts * criteria}; posts without every criterion are left "
            "out of figures by post."
        ),
        values=lambda i: f"{per_post[queries.post[i]]} of {criteria} criteria",
    )


def _without_gold(queries: Queries) -> Iterator[Broken]:
    if queries.gold is not None:
        yield Broken(
            rows=(queries.y == 1) & ~_has_gold(queries),
            where="gold",
            message=(
                "Queries with evidence name no gold sentence; they count 0 in ranking "
                "figures."
            ),
            values=lambda _: "has_evidence is 1 and gold is empty",
        )


def _gold_on_negatives(queries: Queries) -> Iterator[Broken]:
    if queries.gold is not None:
        yield Broken(
            rows=(queries.y == 0) & _has_gold(queries),
            where="gold",
            message="Queries without evidence name gold sentences.",
            values=lambda i: f"has_evidence is 0 and gold is {_joined(queries, i)}",
        )


def _has_gold(queries: Queries) -> Bools:
    return np.array([bool(own) for own in queries.gold or ()], dtype=np.bool_)


def _joined(queries: Queries, i: int) -> str:
    return "|".join(queries.gold[i]) if queries.gold is not None else ""


def _empty_pools(queries: Queries) -> Iterator[Broken]:
    yield Broken(
        rows=queries.pool == 0,
        where="pool",
        message="Posts without a sentence have nothing to rank.",
        values=lambda _: "0 candidates",
    )


RULES: tuple[Rule[Queries], ...] = (
    Rule(code="incomplete_posts", severity="warn", broken=_incomplete),
    Rule(code="positive_without_gold", severity="warn", broken=_without_gold),
    Rule(code="negative_with_gold", severity="error", broken=_gold_on_negatives),
    Rule(code="empty_pool", severity="info", broken=_empty_pools),
)
