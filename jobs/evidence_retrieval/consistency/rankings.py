"""Rules about ranked lists: what they miss, and where they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jobs.evidence_retrieval.consistency.rule import Broken, Rule, View
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.metrics.columns import Bools, Ints


def _gold_not_listed(view: View) -> Iterator[Broken]:
    gold = view.queries.gold
    if gold is not None:
        for name, lists in view.prediction.lists.items():
            yield _unlisted(name, gold, lists)


def _unlisted(
    name: str, gold: Sequence[Sequence[str]], lists: Sequence[Sequence[str]]
) -> Broken:
    missing = {
        i: uids
        for i, own in enumerate(gold)
        if own and (uids := set(own).difference(lists[i]))
    }
    total = sum(map(len, missing.values()))
    rows = np.zeros(len(gold), dtype=np.bool_)
    rows[list(missing)] = True
    return Broken(
        rows=rows,
        where=name,
        message=f"{total} gold sentences are not in their list at all, at any rank.",
        values=lambda i: (
            f"{len(missing[i])} of {len(set(gold[i]))} missing, such as "
            f"{min(missing[i])}"
        ),
    )


def _shorter_than_pool(view: View) -> Iterator[Broken]:
    pool = view.queries.pool
    for name, lengths in _lengths(view).items():
        yield _beside_pool(view, name, lengths, lengths < pool, "fewer")


def _longer_than_pool(view: View) -> Iterator[Broken]:
    pool = view.queries.pool
    for name, lengths in _lengths(view).items():
        yield _beside_pool(view, name, lengths, lengths > pool, "more")


def _beside_pool(
    view: View, name: str, lengths: Ints, rows: Bools, what: str
) -> Broken:
    pool = view.queries.pool
    return Broken(
        rows=(pool != UNKNOWN) & rows,
        where=name,
        message=f"Lists rank {what} sentences than the post has.",
        values=lambda i: f"{lengths[i]} of {pool[i]} candidates",
    )


def _end_early(view: View) -> Iterator[Broken]:
    """Recall at 20 that equals recall at 10 may only mean that lists stop at 10."""
    for name, lengths in _lengths(view).items():
        longest = int(lengths.max(initial=0))
        beyond = [k for k in sorted(view.settings.k_values) if k > longest]
        if beyond:
            yield _ending(name, lengths, longest, beyond)


def _ending(name: str, lengths: Ints, longest: int, beyond: Sequence[int]) -> Broken:
    shown = ", ".join(map(str, beyond))
    return Broken(
        rows=lengths == longest,
        where=name,
        message=(
            f"Lists end at {longest}: figures at {shown} equal those at {longest} for "
            "that reason alone."
        ),
        values=lambda _: f"{longest} sentences",
    )


def _lengths(view: View) -> dict[str, Ints]:
    return {
        name: np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        for name, lists in view.prediction.lists.items()
    }


RULES: tuple[Rule[View], ...] = (
    Rule(code="gold_not_listed", severity="info", broken=_gold_not_listed),
    Rule(code="list_shorter_than_pool", severity="info", broken=_shorter_than_pool),
    Rule(code="list_longer_than_pool", severity="error", broken=_longer_than_pool),
    Rule(code="lists_end_early", severity="info", broken=_end_early),
)
