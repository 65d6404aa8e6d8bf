"""Measures topic drift: the similarity of each kind of paper to its review.

Papers are TF-IDF vectors of title and abstract: lower case, words of two or more
characters, without scikit-learn's English stop words, sublinear counts, smoothed idf.
The similarity of a paper to a review is the cosine with the sum of the vectors of the
review's other included papers. Separability is the AUROC of that similarity, included
papers against a kind: 0.5 means that topic is no help, 1.0 that topic alone solves the
task. Means over reviews leave undefined values out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from jobs.kit.metrics import auroc
from jobs.kit.metrics.columns import Bools, Floats, mean, quantiles, quotient
from jobs.screening.citations import Indices
from jobs.screening.corpus import Corpus
from jobs.screening.data import (
    ArticleText,
    Exclusion,
    RecordKind,
)
from jobs.screening.graph import Graph, Neighbourhood
from jobs.screening.sampling import unrelated_papers

DECIMALS = 12
"""Decimals of a similarity: logarithms differ between machines in the sixteenth."""

TOO_EASY = 0.95
"""Separability from which a review's negatives are flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSimilarity:
    """Similarities of one kind of paper to one review."""

    n: int  #: papers with a similarity
    mean: float | None
    quartiles: tuple[float | None, float | None, float | None]
    separability: float | None  #: from the included papers; None for those


def tfidf_vectors(corpus: Corpus, graph: Graph) -> TfidfVectors | None:
    """Return the vectors of a corpus; None if its papers have no indexed word."""
    try:
        return TfidfVectors(corpus, graph)
    except ValueError:  # raised by the vectorizer for an empty vocabulary
        return None


class TfidfVectors:
    """The cited papers with an abstract, as TF-IDF vectors of length 1."""

    def __init__(self, corpus: Corpus, graph: Graph) -> None:
        """Compute the vectors of *corpus*.

        Raises:
            ValueError: no paper has a word that is not a stop word.
        """
        self.graph = graph
        indices = np.flatnonzero(graph.has_abstract)
        self._terms = TfidfVectorizer(stop_words="english", sublinear_tf=True)
        self._matrix = sparse.csr_array(
            self._terms.fit_transform(
                _words(corpus.papers[graph.papers[at]]) for at in indices
            )
        )
        self._squares = _squares(self._matrix)
        self._indices = indices
        # rows by index into the graph, so that no second numbering is needed
        self._rows = np.full(len(graph.papers), -1, dtype=np.int64)
        self._rows[indices] = np.arange(len(indices))

    def similarities(self, included: Indices, papers: Indices | None = None) -> Floats:
        """Return the similarities of papers to the others among *included*.

        NaN if there are no others, and for papers that are not in *papers*. All papers
        are indices into the graph.

        Args:
            included: indices of the papers that the review includes, ascending.
            papers: indices of papers with an abstract; None: all, by one product with
                the whole matrix, since selecting most of its rows takes longer.
        """
        matrix, squares, indices = self._matrix, self._squares, self._indices
        if papers is not None:
            rows = self._rows[papers]
            matrix, squares, indices = matrix[rows], squares[rows], papers
        is_included = np.zeros(len(self._rows), dtype=np.bool_)
        is_included[included] = True
        similarities = np.full(len(self._rows), np.nan)
        similarities[indices] = _cosines(
            matrix, squares, self._centre(included), is_included[indices]
        )
        if len(included) == 1:
            similarities[included] = (
                np.nan
            )  # no other vectors; rounding would leave a value
        return similarities

    def similarities_of(
        self, texts: Sequence[ArticleText], included: Indices
    ) -> Floats:
        """Return the similarities of uncited papers to the included ones."""
        if not texts:
            return np.empty(0)
        rows = sparse.csr_array(self._terms.transform(map(_words, texts)))
        is_included = np.zeros(len(texts), dtype=np.bool_)
        return _cosines(rows, _squares(rows), self._centre(included), is_included)

    def _centre(self, included: Indices) -> Floats:
        total = self._matrix[self._rows[included]].sum(axis=0)
        centre: Floats = np.asarray(total, dtype=np.float64).ravel()
        return centre


def _words(text: ArticleText) -> str:
    return f"{text.title} {text.abstract}"


def _squares(rows: sparse.csr_array) -> Floats:
    squares: Floats = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return squares


def _cosines(
    rows: sparse.csr_array, squares: Floats, centre: Floats, is_included: Bools
) -> Floats:
    """Return the cosine of each row with the centre of the other *is_included* rows."""
    dots = np.asarray(rows @ centre, dtype=np.float64).ravel()
    # without itself: (c - v).v and |c - v|^2, from known products
    norms = float((centre * centre).sum()) - np.where(
        is_included, 2 * dots - squares, 0.0
    )
    dots -= np.where(is_included, squares, 0.0)
    lengths = np.sqrt(np.maximum(norms, 0.0) * squares)
    return np.round(quotient(dots, lengths), DECIMALS)


def kind_similarity(
    similarities: Floats, included: Floats | None = None
) -> KindSimilarity:
    """Summarise the similarities of a kind, compared with those of the included."""
    values = similarities[~np.isnan(similarities)]
    separable = None
    if included is not None:
        others = included[~np.isnan(included)]
        truth = np.concatenate([np.ones(len(others)), np.zeros(len(values))])
        separable = auroc(truth, np.concatenate([others, values]))
    low, middle, high = quantiles(values.tolist(), (0.25, 0.5, 0.75))
    return KindSimilarity(
        n=len(values),
        mean=mean(values.tolist()),
        quartiles=(low, middle, high),
        separability=separable,
    )


def mean_jaccard(graph: Graph, near: Neighbourhood) -> float | None:
    """Return the mean Jaccard index of a review and each related one."""
    sizes = np.diff(graph.included.indptr)
    union = len(near.included) + sizes[near.related] - near.shared
    return mean((near.shared / union).tolist()) if len(union) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDrift:
    """Topical similarity of the kinds of one review."""

    review: str
    kinds: Mapping[RecordKind, KindSimilarity]
    jaccard: float | None  #: mean, of its included papers and its related reviews'

    def is_easy(self, kind: RecordKind) -> bool:
        """Return whether topic nearly separates a kind from the included papers."""
        similarity = self.kinds.get(kind)
        return similarity is not None and (similarity.separability or 0.0) >= TOO_EASY


def macro_drift(drift: Iterable[ReviewDrift]) -> dict[str, float | None]:
    """Return means over the reviews with defined values, by name."""
    drifts = list(drift)
    kinds = {kind: None for review_drift in drifts for kind in review_drift.kinds}
    means: dict[str, float | None] = {}
    for kind in kinds:
        similarities = [
            review_drift.kinds[kind]
            for review_drift in drifts
            if kind in review_drift.kinds
        ]
        means[f"similarity.{kind}"] = mean(
            similarity.mean for similarity in similarities
        )
        if kind != "included":
            means[f"separability.{kind}"] = mean(
                similarity.separability for similarity in similarities
            )
    means["jaccard"] = mean(review_drift.jaccard for review_drift in drifts)
    return means


class TopicDrift:
    """Similarities of one review's kinds: whole kinds, not the drawn papers."""

    def __init__(
        self,
        vectors: TfidfVectors,
        corpus: Corpus,
        near: Neighbourhood,
        exclusions: Mapping[str, Exclusion],
        *,
        has_random: bool,
    ) -> None:
        """Compute the similarities for the review whose neighbourhood is *near*.

        Args:
            vectors: vectors of all papers.
            corpus: texts of the papers.
            near: neighbourhood of the review.
            exclusions: papers that the review has excluded or not decided, by paper.
            has_random: whether random papers are needed; that kind has nearly all
                papers, for every review.
        """
        graph = vectors.graph
        self._graph, self._near = graph, near
        similarities = vectors.similarities(
            near.included,
            None if has_random else np.concatenate([near.included, near.candidates]),
        )
        self._similarities = similarities
        self._by_kind: dict[RecordKind, Floats] = {
            "included": similarities[near.included],
            "near-miss": similarities[near.candidates],
        }
        if has_random:
            self._by_kind["random"] = similarities[
                unrelated_papers(graph, near, exclusions)
            ]
        self._excluded: dict[str, float] = {}
        papers = corpus.true_exclusions(graph.names(near.cited), exclusions)
        if papers:
            values = vectors.similarities_of(
                [corpus.text(paper) for paper in papers], near.included
            )
            self._by_kind["true-excluded"] = values
            self._excluded = dict(zip(papers, values.tolist(), strict=True))

    def drift(self, review: str) -> ReviewDrift:
        """Return the similarities of each kind, summarised."""
        included = self._by_kind["included"]
        return ReviewDrift(
            review=review,
            kinds={
                kind: kind_similarity(
                    similarities, None if kind == "included" else included
                )
                for kind, similarities in self._by_kind.items()
            },
            jaccard=mean_jaccard(self._graph, self._near),
        )

    def of(self, paper: str) -> float | None:
        """Return the similarity of a paper; None if it is undefined."""
        index = self._graph.index(paper)
        similarity = math.nan if index is None else float(self._similarities[index])
        if math.isnan(similarity):  # only in the list of exclusions
            similarity = self._excluded.get(paper, math.nan)
        return None if math.isnan(similarity) else similarity
