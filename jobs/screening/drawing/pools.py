"""The pools of one review: which papers each kind of negative may be drawn from.

Disjoint by precedence: included, true-excluded, near-miss, random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.metrics.columns import Bools
from jobs.screening.corpus import Corpus, Exclusion, Ids, true_exclusions
from jobs.screening.graph.relations import Graph, Neighbourhood
from jobs.screening.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Papers by kind, ascending as text, and what is known of them."""

    included: Ids
    true_excluded: Ids
    near_miss: Ids
    random: Ids
    candidates: Mapping[str, tuple[int, int]]
    """Links and shared papers of every candidate, drawn or not, by id."""

    def of(self, kind: str) -> Ids:
        """The pool of a kind."""
        pool: Ids = getattr(self, kind.replace("-", "_"))
        return pool


def pools(
    corpus: Corpus,
    graph: Graph,
    near: Neighbourhood,
    exclusions: Mapping[str, Exclusion],
    settings: Settings,
) -> Pools:
    """The pools of the review whose neighbourhood is *near*.

    Args:
        corpus: all texts.
        graph: the citations.
        near: of the review.
        exclusions: what the review has excluded or not decided, by paper.
        settings: which kinds are wanted.
    """
    candidates = dict(
        zip(
            graph.names(near.candidates),
            zip(near.n_links.tolist(), near.n_shared.tolist(), strict=True),
            strict=True,
        )
    )
    has_true = "true-excluded" in settings.negatives
    known = exclusions.keys() if has_true else set()
    far: Ids = ()
    if "random" in settings.negatives:
        far = tuple(graph.names(np.flatnonzero(far_from(graph, near, exclusions))))
    return Pools(
        included=tuple(graph.names(near.included)),
        true_excluded=tuple(
            true_exclusions(corpus, graph.names(near.cited), exclusions)
        )
        if has_true
        else (),
        near_miss=tuple(paper for paper in candidates if paper not in known),
        random=far,
        candidates=candidates,
    )


def far_from(graph: Graph, near: Neighbourhood, exclusions: Iterable[str]) -> Bools:
    """Which papers may be random ones of a review, by place in the graph.

    Args:
        graph: the citations.
        near: of the review: what it cites and its candidates are none.
        exclusions: papers that it has excluded or not decided, which are none either.
    """
    places = map(graph.place, exclusions)
    known = [place for place in places if place is not None]
    is_far = graph.has_abstract.copy()
    for taken in (near.cited, near.candidates, known):
        is_far[taken] = False
    return is_far
