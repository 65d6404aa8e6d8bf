"""Topic drift: how near each kind of paper lies to what its review includes.

Papers are TF-IDF vectors of title and abstract: lower case, words of two or more
characters, scikit-learn's English stop words out, sublinear counts, smoothed idf. The
similarity of a paper to a review is the cosine with the sum of the review's included
vectors, which leaves the paper itself out. Separability is the AUROC of that
similarity, included papers against a kind: 0.5 means that topic tells nothing, 1.0 that
topic alone solves the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from jobs.metrics import auroc
from jobs.metrics.columns import Bools, Floats, mean, quantiles, quotient
from jobs.screening.corpus import Corpus, Places, Text
from jobs.screening.graph.relations import Graph, Neighbourhood

DECIMALS = 12
"""Of a similarity: the logarithms of machines differ in the sixteenth."""

TOO_EASY = 0.95
"""From this separability on a review's negatives are flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """The similarities of one kind of paper to one review."""

    n: int  #: papers with a similarity
    mean: float | None
    quartiles: tuple[float | None, float | None, float | None]
    separability: float | None  #: of the included papers from these; None for those


def vectors_of(corpus: Corpus, graph: Graph) -> Vectors | None:
    """The vectors of a corpus; None where its papers hold no word that counts."""
    try:
        return Vectors(corpus, graph)
    except ValueError:  # the vectorizer's word for an empty vocabulary
        return None


class Vectors:
    """The cited papers with an abstract as TF-IDF vectors of length 1."""

    def __init__(self, corpus: Corpus, graph: Graph) -> None:
        """The vectors of *corpus*.

        Raises:
            ValueError: no paper has a word that is no stop word.
        """
        self.graph = graph
        places = np.flatnonzero(graph.has_abstract)
        self._terms = TfidfVectorizer(stop_words="english", sublinear_tf=True)
        self._matrix = sparse.csr_array(
            self._terms.fit_transform(
                _words(corpus.papers[graph.papers[at]]) for at in places
            )
        )
        self._squares = _squares(self._matrix)
        self._places = places
        # rows by place in the graph, so that no second numbering is needed
        self._rows = np.full(len(graph.papers), -1, dtype=np.int64)
        self._rows[places] = np.arange(len(places))

    def similarities(self, included: Places, papers: Places | None = None) -> Floats:
        """Of papers, each to the others among *included*, by place in the graph.

        NaN where there are no others, and of papers that were not asked for.

        Args:
            included: places of what the review includes, ascending.
            papers: places, with abstract; None: all of them, by one product with the
                whole matrix, since cutting most rows out of it takes longer.
        """
        matrix, squares, places = self._matrix, self._squares, self._places
        if papers is not None:
            rows = self._rows[papers]
            matrix, squares, places = matrix[rows], squares[rows], papers
        is_own = np.zeros(len(self._rows), dtype=np.bool_)
        is_own[included] = True
        found = np.full(len(self._rows), np.nan)
        found[places] = _cosines(
            matrix, squares, self._centre(included), is_own[places]
        )
        if len(included) == 1:
            found[included] = np.nan  # of nothing, whatever rounding leaves of it
        return found

    def similarities_of(self, texts: Sequence[Text], included: Places) -> Floats:
        """Of papers that nobody cites, to what the review includes."""
        if not texts:
            return np.empty(0)
        rows = sparse.csr_array(self._terms.transform(map(_words, texts)))
        own = np.zeros(len(texts), dtype=np.bool_)
        return _cosines(rows, _squares(rows), self._centre(included), own)

    def _centre(self, included: Places) -> Floats:
        total = self._matrix[self._rows[included]].sum(axis=0)
        centre: Floats = np.asarray(total, dtype=np.float64).ravel()
        return centre


def _words(text: Text) -> str:
    return f"{text.title} {text.abstract}"


def _squares(rows: sparse.csr_array) -> Floats:
    squares: Floats = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return squares


def _cosines(
    rows: sparse.csr_array, squares: Floats, centre: Floats, own: Bools
) -> Floats:
    """Of each row with the centre, which leaves out those of its *own*."""
    dots = np.asarray(rows @ centre, dtype=np.float64).ravel()
    # without itself: (c - v).v and |c - v|^2, from what is known already
    norms = float((centre * centre).sum()) - np.where(own, 2 * dots - squares, 0.0)
    dots -= np.where(own, squares, 0.0)
    lengths = np.sqrt(np.maximum(norms, 0.0) * squares)
    return np.round(quotient(dots, lengths), DECIMALS)


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
