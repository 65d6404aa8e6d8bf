"""Topic drift: how near each kind of paper lies to what its review includes.

Papers are TF-IDF vectors of title and abstract: lower case, words of two or more
characters, scikit-learn's English stop words out, sublinear counts, smoothed idf. The
similarity of a paper to a review is the cosine with the sum of the review's included
vectors, which leaves the paper itself out. Separability is the AUROC of that
similarity, included papers against a kind: 0.5 means that topic tells nothing, 1.0 that
topic alone solves the task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from jobs.metrics import auroc
from jobs.metrics.aggregate import mean, quantiles
from jobs.metrics.columns import Floats
from jobs.screening.corpus import Corpus, Places
from jobs.screening.graph.relations import Graph, Neighbourhood

TOO_EASY = 0.95
"""From this separability on a review's negatives are flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """The similarities of one kind of paper to one review."""

    n: int  #: papers with a similarity
    mean: float | None
    quartiles: tuple[float | None, float | None, float | None]
    separability: float | None  #: of the included papers from these; None for those


class Vectors:
    """The cited papers with an abstract as TF-IDF vectors of length 1."""

    def __init__(self, corpus: Corpus, graph: Graph) -> None:
        places = np.flatnonzero(graph.has_abstract)
        texts = (corpus.papers[graph.papers[at]] for at in places)
        made = TfidfVectorizer(
            lowercase=True,
            stop_words="english",
            sublinear_tf=True,
            smooth_idf=True,
            norm="l2",
        ).fit_transform(f"{text.title} {text.abstract}" for text in texts)
        # rows by place in the graph, so that no second numbering is needed
        self._rows = np.full(len(graph.papers), -1, dtype=np.int64)
        self._rows[places] = np.arange(len(places))
        self._matrix = sparse.csr_array(made)

    def similarities(self, papers: Places, included: Places) -> Floats:
        """Of *papers*, each to the others among *included*; NaN where that is nothing.

        Args:
            papers: places in the graph, with abstract.
            included: places of what the review includes, ascending.
        """
        rows = self._matrix[self._rows[papers]]
        centre = self._matrix[self._rows[included]].sum(axis=0)
        centre = np.asarray(centre).ravel()
        dots = np.asarray(rows @ centre, dtype=np.float64).ravel()
        norms = np.full(len(papers), float(centre @ centre))
        own = np.isin(papers, included, assume_unique=True)
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        # without itself: (c - v).v and |c - v|^2, from what is known already
        norms = np.where(own, norms - 2 * dots + squares, norms)
        dots = np.where(own, dots - squares, dots)
        lengths = np.sqrt(np.maximum(norms, 0.0) * squares)
        is_alone = own & (len(included) == 1)
        defined = (lengths > 0) & ~is_alone
        found: Floats = np.full(len(papers), np.nan)
        found[defined] = dots[defined] / lengths[defined]
        return found


def nearness(own: Floats, included: Floats | None = None) -> Nearness:
    """The similarities of a kind in figures, set against those of the included."""
    values = own[~np.isnan(own)]
    separable = None
    if included is not None:
        others = included[~np.isnan(included)]
        truth = np.concatenate([np.ones(len(others)), np.zeros(len(values))])
        separable = auroc(truth, np.concatenate([others, values]))
    low, middle, high = quantiles(values.tolist(), (0.25, 0.5, 0.75))
    return Nearness(
        n=len(values),
        mean=mean(values.tolist()),
        quartiles=(low, middle, high),
        separability=separable,
    )


def mean_jaccard(graph: Graph, near: Neighbourhood) -> float | None:
    """Of the included papers of a review and of each related one, on average."""
    sizes = np.diff(graph.included.indptr)
    union = len(near.included) + sizes[near.related] - near.shared
    return mean((near.shared / union).tolist()) if len(union) else None
