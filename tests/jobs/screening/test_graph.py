"""Neighbourhoods by matrices against the definitions, read with plain sets."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.screening.data import review_index
from jobs.screening.graph import Graph, statistics_of
from runner.errors import DatasetError
from tests.jobs.screening.corpora import World, worlds

HUBS = st.none() | st.integers(1, 4)


@given(worlds(), HUBS)
def test_neighbourhoods_are_those_of_the_definitions(
    world: World, max_degree: int | None
) -> None:
    graph = Graph(world.corpus(), max_degree)
    found = list(graph.neighbourhoods())
    assert [graph.reviews[near.review] for near in found] == world.reviews
    for near in found:
        review = graph.reviews[near.review]
        own = world.included(review)
        relating = {
            paper
            for paper in own
            if max_degree is None or len(world.citing(paper)) <= max_degree
        }
        related = {
            other
            for other in world.reviews
            if other != review and world.included(other) & relating
        }
        reach = set().union(*(world.included(other) for other in related))
        candidates = sorted(reach - own)
        assert set(graph.names(near.cited)) == world.cited(review)
        assert graph.names(near.included) == sorted(own)
        assert [graph.reviews[place] for place in near.related] == sorted(related)
        assert near.shared.tolist() == [
            len(own & world.included(other)) for other in sorted(related)
        ]
        assert near.n_reached == len(reach)
        assert graph.names(near.candidates) == candidates
        by = {
            paper: [other for other in related if paper in world.included(other)]
            for paper in candidates
        }
        assert near.n_links.tolist() == [len(by[paper]) for paper in candidates]
        assert near.n_shared.tolist() == [
            max(len(own & world.included(other)) for other in by[paper])
            for paper in candidates
        ]
        digest = hashlib.sha256("\n".join(candidates).encode()).hexdigest()
        assert statistics_of(graph, near).candidates_sha256 == digest


@given(worlds(), HUBS, st.integers(1, 12), st.randoms(use_true_random=False))
def test_neither_blocks_nor_the_order_of_edges_matter(
    world: World, max_degree: int | None, block: int, chance: Random
) -> None:
    def told(graph: Graph, block: int) -> list[str]:
        return [repr(near) for near in graph.neighbourhoods(block)]

    edges = [*world.edges, *world.edges]
    chance.shuffle(edges)
    whole = Graph(world.corpus(), max_degree)
    other = Graph(world.corpus(edges), max_degree)
    assert told(whole, 10**6) == told(other, block)
    assert whole.n_hubs == other.n_hubs
    one_by_one = [repr(whole.neighbourhood(at)) for at in range(len(whole.reviews))]
    assert one_by_one == told(whole, block)


def test_an_unknown_review_is_told_the_nearest() -> None:
    reviews = ("100", "200", "2001")
    assert review_index("200", reviews) == 1
    with pytest.raises(DatasetError, match=r"No review '202' .* are 200, 2001, 100\.$"):
        review_index("202", reviews)
    with pytest.raises(DatasetError, match=r"there are no reviews\.$"):
        review_index("1", ())
