"""The draw against its definition: sets for the pools, a sorted list for the order."""

from __future__ import annotations

import hashlib
import math

from hypothesis import given
from hypothesis import strategies as st

from jobs.screening.data import RecordKind
from jobs.screening.graph import Graph
from jobs.screening.sampling import (
    DrawnReview,
    DroppedReview,
    NegativeSampler,
    first_by_hash,
    shuffled_reviews,
)
from jobs.screening.settings import NegativeKind, ScreeningSettings
from tests.jobs.screening.corpora import IDS, World, worlds

ALL: tuple[NegativeKind, ...] = ("near-miss", "random", "true-excluded")
SETTINGS = st.builds(
    ScreeningSettings,
    min_included=st.integers(1, 3),
    min_included_basis=st.sampled_from(("with_abstract", "all_references")),
    max_included=st.none() | st.integers(1, 3),
    negatives=st.lists(st.sampled_from(ALL), unique=True).map(tuple),
    ratio=st.sampled_from((0.3, 0.5, 1.0, 1.5, 4.0)),
    per_review=st.none() | st.integers(1, 3),
    keep_without_negatives=st.booleans(),
    seed=st.integers(0, 5),
)


def order(
    pool: set[str], settings: ScreeningSettings, review: str, kind: str
) -> list[str]:
    def place(paper: str) -> tuple[str, str]:
        text = f"{settings.seed}\x1f{review}\x1f{kind}\x1f{paper}"
        return hashlib.sha256(text.encode()).hexdigest(), paper

    return sorted(pool, key=place)


def outcomes(
    world: World, settings: ScreeningSettings
) -> dict[str, DrawnReview | DroppedReview | None]:
    corpus = world.corpus()
    graph = Graph(corpus, settings.max_paper_degree)
    draw, known = NegativeSampler(corpus, graph, settings), corpus.excluded_by()
    return {
        graph.reviews[near.review]: draw.of(
            near, known.get(graph.reviews[near.review], {})
        )
        for near in graph.neighbourhoods()
    }


@given(worlds(), SETTINGS)
def test_a_draw_is_that_of_the_definition(
    world: World, settings: ScreeningSettings
) -> None:
    found = outcomes(world, settings)
    assert list(found) == world.reviews
    for review, outcome in found.items():
        own, cited = world.included(review), world.cited(review)
        related = [o for o in world.reviews if o != review and world.included(o) & own]
        candidates = set().union(*map(world.included, related)) - own
        has_near = "near-miss" in settings.negatives
        basis = own if settings.min_included_basis == "with_abstract" else cited
        if isinstance(outcome, DroppedReview):
            lacks = has_near and not settings.keep_without_negatives and not candidates
            assert outcome.reason == (
                "too_few_included"
                if len(basis) < settings.min_included
                else "no_candidates"
                if lacks
                else "no_text"
            )
            assert outcome.reason != "no_text" or not own
            continue
        assert isinstance(outcome, DrawnReview)
        known = world.known(review)
        true = {p for p, status in known.items() if status == "excluded"}
        true = (true & world.readable) - cited
        has_true = "true-excluded" in settings.negatives
        pools: dict[RecordKind, set[str]] = {
            "included": own,
            "near-miss": candidates - set(known) if has_true else candidates,
            "random": world.readable - cited - candidates - set(known),
            "true-excluded": true,
        }
        positives = min(settings.max_included or len(own), len(own))
        n = settings.per_review or math.floor(settings.ratio * positives + 0.5)
        expected = []
        for kind, pool in pools.items():
            if kind == "included":
                expected += [
                    (kind, p)
                    for p in sorted(order(pool, settings, review, kind)[:positives])
                ]
            elif kind in settings.negatives:
                expected += [
                    (kind, p) for p in sorted(order(pool, settings, review, kind)[:n])
                ]
                assert outcome.short.get(kind, 0) == max(0, n - len(pool))
        assert [(each.kind, each.paper) for each in outcome.records] == expected
        papers = [each.paper for each in outcome.records]
        assert len(set(papers)) == len(papers)
        for each in outcome.records:
            assert each.label == (each.paper in own)
            is_both = each.kind == "true-excluded" and each.paper in candidates
            assert each.also_near_miss == is_both


@given(st.sets(st.text(max_size=3)), st.integers(0, 6), st.integers(0, 6))
def test_a_larger_draw_begins_with_the_smaller_one(
    pool: set[str], few: int, more: int
) -> None:
    first = first_by_hash(pool, few, seed=42, review="r", kind="near-miss")
    both = first_by_hash(
        sorted(pool), few + more, seed=42, review="r", kind="near-miss"
    )
    assert both[: len(first)] == first
    assert sorted(
        first_by_hash(pool, len(pool), seed=42, review="r", kind="x")
    ) == sorted(pool)


def test_the_first_reviews_of_the_seeded_order_are_taken() -> None:
    world = World(
        edges=tuple((review, paper) for review in IDS for paper in ("1", "2")),
        readable=frozenset({"1", "2"}),
    )
    base = ScreeningSettings(min_included=1, negatives=("random",))

    def taken(**changed: object) -> list[str]:
        settings = base.model_copy(update=changed)
        return [review for review, out in outcomes(world, settings).items() if out]

    first, second = taken(max_reviews=3), taken(max_reviews=4)
    assert set(first) == set(shuffled_reviews(IDS, 42)[:3])
    assert set(first) < set(second)
    assert taken(review=("9", "01")) == ["01", "9"]
    assert taken(seed=7, max_reviews=3) != first
