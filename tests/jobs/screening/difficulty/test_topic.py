"""How topical the kinds of a review are."""

from __future__ import annotations

from hypothesis import given, settings

from jobs.screening.graph import Graph
from jobs.screening.topic_drift import TopicDrift, tfidf_vectors
from tests.jobs.screening.corpora import World, worlds


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
