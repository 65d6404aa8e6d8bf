"""Near misses by what is known of them, and the share that a model's errors imply.

How topical the kinds of a review are.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.screening.citations import CitationCollector
from jobs.screening.corpus import Corpus
from jobs.screening.data import ArticleText, Exclusion, Status
from jobs.screening.graph import Graph
from jobs.screening.set_files import (
    Contamination,
    contamination,
    macro_confirmed,
    together,
)
from jobs.screening.strata import implied
from jobs.screening.topic_drift import TopicDrift, tfidf_vectors
from tests.jobs.screening.corpora import World, worlds

TITLES = {
    "1": "Sleep: a trial.",
    "2": "sleep - A Trial",
    "3": "Other",
    "4": "",
    "5": "",
    "6": "Study",
    "7": "Published twice",
}


def parted(known: Sequence[tuple[str, Status]], study: dict[str, str]) -> Contamination:
    corpus = Corpus(
        reviews={},
        papers={paper: ArticleText(title=title) for paper, title in TITLES.items()},
        citations=CitationCollector().citations(),
    )
    found = {
        paper: Exclusion(review="r", paper=paper, status=status)
        for paper, status in known
    }
    return contamination(corpus, ["2", "3", "5", "7"], ["1", "4", "6"], found, study)


def test_candidates_are_parted_and_what_is_known_goes_first() -> None:
    # a title without letters is the duplicate of nothing
    assert parted([], {}) == Contamination(duplicate_suspect=1, unverified=3)
    by_study = parted([], {"6": "S1", "7": "S1", "3": "S2"})
    assert by_study == Contamination(duplicate_suspect=2, unverified=2)
    known = parted([("2", "excluded"), ("3", "awaiting"), ("5", "ongoing")], {})
    assert known == Contamination(confirmed=1, pending=2, unverified=1)
    assert (known.n, known.share_confirmed) == (4, 0.25)
    assert (known.lower, known.upper) == (0.5, 0.75)


def test_shares_of_no_candidates_are_undefined() -> None:
    none = Contamination()
    assert (none.share_confirmed, none.lower, none.upper) == (None, None, None)
    some = Contamination(confirmed=1, unverified=1)
    assert macro_confirmed([none, some]) == 0.5
    assert together([none, some, some]) == Contamination(confirmed=2, unverified=2)


@pytest.mark.parametrize(
    ("near", "true", "tpr", "share"),
    [
        (0.5, 0.25, 0.75, 0.5),
        (0.25, 0.25, 0.75, 0.0),
        (0.75, 0.25, 0.75, 1.0),
        (0.85, 0.25, 0.75, None),  # above 1
        (0.1, 0.25, 0.75, None),  # below 0
        (0.5, 0.75, 0.75, None),  # a model that tells nothing
        (0.5, 0.8, 0.75, None),
        (None, 0.25, 0.75, None),
        (0.5, None, 0.75, None),
        (0.5, 0.25, None, None),
        # a keyword rule on 78 near misses, 168 true exclusions, 168 included papers:
        # 1.178372352285396 before the check
        (67 / 78, 63 / 168, 132 / 168, None),
    ],
)
def test_an_implied_share_outside_its_bounds_is_not_identified(
    near: float | None, true: float | None, tpr: float | None, share: float | None
) -> None:
    assert implied(near, true, tpr) == share


@given(st.floats(0, 1), st.floats(0, 0.4), st.floats(0.6, 1))
def test_an_implied_share_is_the_one_that_was_mixed(
    share: float, true: float, tpr: float
) -> None:
    mixed = share * tpr + (1 - share) * true
    found = implied(mixed, true, tpr)
    # rounding may carry a share of 0 or 1 over its bound
    assert (
        found == pytest.approx(share, abs=1e-9)
        or share in {0.0, 1.0}
        or (found is None and min(share, 1 - share) < 1e-9)
    )


@settings(max_examples=15)  # each of them makes vectors
@given(worlds())
def test_leaving_random_papers_out_changes_no_other_kind(world: World) -> None:
    corpus = world.corpus()
    graph = Graph(corpus)
    vectors = tfidf_vectors(corpus, graph)
    if vectors is None:
        return
    excluded = corpus.excluded_by()
    for near in graph.neighbourhoods():
        review = graph.reviews[near.review]
        known = excluded.get(review, {})
        whole, part = (
            TopicDrift(vectors, corpus, near, known, has_random=has_random)
            for has_random in (True, False)
        )
        kinds = dict(whole.drift(review).kinds)
        far = set(world.readable) - set(graph.names(near.candidates))
        assert kinds.pop("random").n <= len(far - world.cited(review) - set(known))
        assert part.drift(review).kinds == kinds
        for paper in graph.names(near.included) + graph.names(near.candidates):
            assert part.of(paper) == whole.of(paper)
