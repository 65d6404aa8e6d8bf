"""A post as one item with a label for every criterion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.measure import Measure, count
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.metrics.classification import at_threshold, multilabel
from jobs.metrics.columns import Bools, Ints
from jobs.metrics.selective import NEG

FIGURES = (
    "exact_match",
    "hamming_score",
    "hamming_loss",
    "micro_f1",
    "jaccard_per_item",
    "f1_per_item",
    "f1_per_item_empty_one",
    "f1_per_item_defined",
    "weighted_f1_per_item",
    "macro_f1_over_labels",
    "weighted_f1_over_labels",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One way to decide about every query, as tables of posts by criteria."""

    prefix: str
    how: str
    posts: Ints  #: complete ones, by their place in the sheet
    truth: Bools  #: (posts, criteria)
    said: Bools
    incomplete: int  #: posts without a decision about every criterion


def decisions(block: Block) -> Iterator[Decided]:
    """By probability and by state, where the block has them."""
    gated, stated, tau = block.gated, block.stated, block.settings.tau
    if gated is not None and gated.is_probability:
        said = at_threshold(gated.p, tau)
        yield _table(block, "posts_at_tau", f"p >= {tau:g}", gated.rows, said)
    if stated is not None:
        how = f"state is not NEG; states {stated.how}"
        said = stated.state != NEG
        yield _table(block, "posts_not_neg", how, stated.rows, said)


def chosen_decision(block: Block) -> Decided | None:
    """The one that stands in the table of posts, as the settings ask."""
    made = {decided.prefix: decided for decided in decisions(block)}
    by_state = block.settings.post_prediction == "state"
    return made.get("posts_not_neg" if by_state else "posts_at_tau")


def _table(block: Block, prefix: str, how: str, rows: Ints, said: Bools) -> Decided:
    queries = block.queries
    shape = (len(queries.posts), len(queries.criteria))
    cells = np.full(shape, UNKNOWN, dtype=np.int64)
    truth = np.full(shape, UNKNOWN, dtype=np.int64)
    at = queries.post[rows], queries.criterion[rows]
    cells[at] = said
    truth[at] = queries.y[rows]
    posts = np.flatnonzero((cells != UNKNOWN).all(axis=1))
    judged = len(np.unique(queries.post[block.judged]))
    return Decided(
        prefix=prefix,
        how=how,
        posts=posts,
        truth=truth[posts] == 1,
        said=cells[posts] == 1,
        incomplete=judged - len(posts),
    )


def by_post(block: Block) -> Iterator[Measure]:
    """The figures of several labels an item, over complete posts."""
    for decided in decisions(block):
        found = multilabel(decided.truth, decided.said)
        n_defined = {
            "jaccard_per_item": found.jaccard_defined,
            "f1_per_item_defined": found.f1_per_item_n_defined,
            "macro_f1_over_labels": found.macro_f1_n_defined,
        }
        name = decided.prefix
        yield count(f"{name}.items", found.items, "posts", subset="complete posts")
        yield count(f"{name}.labels", found.labels, "criteria", subset="complete posts")
        yield count(
            f"{name}.incomplete", decided.incomplete, "left out", subset="posts"
        )
        for figure in FIGURES:
            yield Measure(
                path=f"{name}.{figure}",
                value=getattr(found, figure),
                n=found.items,
                n_defined=n_defined.get(figure),
                subset="complete posts",
                definition=f"{figure}@1({decided.how})",
            )
