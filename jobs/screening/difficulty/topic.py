"""The topics of one review's kinds, and their means over reviews."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.metrics.columns import Floats, mean
from jobs.screening.corpus import Corpus, Exclusion, true_exclusions
from jobs.screening.difficulty.drift import (
    TOO_EASY,
    Nearness,
    Vectors,
    mean_jaccard,
    nearness,
)
from jobs.screening.drawing.pools import far_from
from jobs.screening.graph.relations import Neighbourhood
from jobs.screening.validation_set import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How topical the kinds of one review are."""

    review: str
    kinds: Mapping[Kind, Nearness]
    jaccard: float | None  #: mean, of its included papers and its related reviews'

    def is_easy(self, kind: Kind) -> bool:
        """Whether topic alone nearly tells a kind from the included papers."""
        found = self.kinds.get(kind)
        return found is not None and (found.separability or 0.0) >= TOO_EASY


def macro_drift(drift: Iterable[Drift]) -> dict[str, float | None]:
    """Means over the reviews, undefined ones left out, by name of the figure."""
    each = list(drift)
    kinds = {kind: None for one in each for kind in one.kinds}
    found: dict[str, float | None] = {}
    for kind in kinds:
        own = [one.kinds[kind] for one in each if kind in one.kinds]
        found[f"similarity.{kind}"] = mean(one.mean for one in own)
        if kind != "included":
            found[f"separability.{kind}"] = mean(one.separability for one in own)
    found["jaccard"] = mean(one.jaccard for one in each)
    return found


class Topic:
    """The similarities of one review's kinds: whole kinds, not what is drawn."""

    def __init__(
        self,
        vectors: Vectors,
        corpus: Corpus,
        near: Neighbourhood,
        known: Mapping[str, Exclusion],
        *,
        has_random: bool,
    ) -> None:
        """The kinds of the review whose neighbourhood is *near*.

        Args:
            vectors: of all papers.
            corpus: their texts.
            near: of the review.
            known: what the review has excluded or not decided, by paper.
            has_random: whether random papers are asked for: that kind alone holds
                nearly all papers, for every review.
        """
        graph = vectors.graph
        self._graph, self._near = graph, near
        by_place = vectors.similarities(
            near.included,
            None if has_random else np.concatenate([near.included, near.candidates]),
        )
        self._by_place = by_place
        self._by_kind: dict[Kind, Floats] = {
            "included": by_place[near.included],
            "near-miss": by_place[near.candidates],
        }
        if has_random:
            self._by_kind["random"] = by_place[far_from(graph, near, known)]
        self._excluded: dict[str, float] = {}
        papers = true_exclusions(corpus, graph.names(near.cited), known)
        if papers:
            values = vectors.similarities_of(
                [corpus.text(paper) for paper in papers], near.included
            )
            self._by_kind["true-excluded"] = values
            self._excluded = dict(zip(papers, values.tolist(), strict=True))

    def drift(self, review: str) -> Drift:
        """The kinds in figures."""
        included = self._by_kind["included"]
        return Drift(
            review=review,
            kinds={
                kind: nearness(own, None if kind == "included" else included)
                for kind, own in self._by_kind.items()
            },
            jaccard=mean_jaccard(self._graph, self._near),
        )

    def of(self, paper: str) -> float | None:
        """The similarity of a paper; None where it is undefined."""
        place = self._graph.place(paper)
        found = math.nan if place is None else float(self._by_place[place])
        if math.isnan(found):  # known from the list of exclusions alone
            found = self._excluded.get(paper, math.nan)
        return None if math.isnan(found) else found
