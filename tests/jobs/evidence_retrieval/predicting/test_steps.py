"""First stages, rerankers and the graph on one post, and what stands in for a gap."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset
from jobs.evidence_retrieval.parsing import Assessment
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.outputs import Cosines, Outputs, SubjectOutputs
from jobs.evidence_retrieval.predictions.rankings import (
    PostPool,
    RankingStep,
    RankingSteps,
    gate_chain,
    ranking_chains,
)
from jobs.evidence_retrieval.predictions.stages import lexical_similarity, spread, start
from jobs.evidence_retrieval.sentence_order import shuffled
from jobs.evidence_retrieval.settings import EvidenceSettings
from tests.jobs.evidence_retrieval.world import post

TEXTS = ("cannot sleep at night", "i feel sad sad", "sleep is bad", "fine")
KEY = "p/A"


def steps(
    subject: SubjectOutputs | None = None,
    *,
    texts: tuple[str, ...] = TEXTS,
    cosines: Cosines | None = None,
    endpoint: tuple[float | None, ...] | None = None,
) -> RankingSteps:
    own = post("p", *texts)
    world = EvidenceDataset(
        settings=EvidenceSettings(),
        posts=(own,),
        criteria=(Criterion(id="A", text="sleep sad"), Criterion(id="B", text="fine")),
    )
    subject = subject or SubjectOutputs()
    outputs = Outputs(
        subjects={"m": subject}, endpoint={} if endpoint is None else {KEY: endpoint}
    )
    return RankingSteps(PostPool(world, own, cosines), outputs, subject, seed=7)


def last(of: RankingSteps, config: Config) -> RankingStep:
    return of.at(ranking_chains(config)[-1])


def test_bm25_comes_first_and_the_graph_of_words_after_it() -> None:
    of = steps()
    first = last(of, Config(name="c"))
    assert first.orders[0] == (1, 2, 0, 3)
    assert first.scores[:, 0] == pytest.approx(
        [0.2772588722, 0.6879844596, 0.3150669003, 0.0], abs=1e-10
    )
    graph = last(of, Config(name="c", graph="ppr"))
    weights = of._pool.weights
    for column in (0, 1):
        alone = spread(weights, start(first.scores[:, column].tolist()))
        assert graph.scores[:, column] == pytest.approx(alone, abs=1e-10)


def test_likeness_of_words_is_one_with_itself_and_zero_without_a_word() -> None:
    likeness = lexical_similarity(("a b", "A, b!", "c", "..."))
    assert likeness[0, 1] == pytest.approx(1.0)
    assert likeness[0, 2] == 0.0
    assert likeness[3].tolist() == [0.0] * 4


def test_floors_are_the_document_and_a_seeded_shuffle() -> None:
    of = steps()
    assert last(of, Config(name="c", first_stage=("document",))).orders[0] == (
        0,
        1,
        2,
        3,
    )
    drawn = last(of, Config(name="c", first_stage=("random",))).orders[0]
    assert drawn == tuple(shuffled(4, 7, KEY, 1))


def test_an_embedding_orders_by_cosine_and_makes_the_graph() -> None:
    near = np.array([[0.1, 0.0], [0.9, 0.0], [0.5, 0.0], [0.7, 0.0]])
    of = steps(cosines=Cosines(query=near, between=np.eye(4)))
    assert last(of, Config(name="c", first_stage=("embedding",))).orders[0] == (
        1,
        3,
        2,
        0,
    )
    assert of._pool.weights[0].tolist() == pytest.approx([0.0, 0.3, 0.0, 0.0])


def test_fusion_ties_go_by_place() -> None:
    near = np.array([[0.9, 0.0], [0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    of = steps(cosines=Cosines(query=near, between=np.eye(4)))
    fused = last(of, Config(name="c", first_stage=("document", "embedding")))
    assert fused.orders[0] == (0, 1, 3, 2)  # the second and the last are level


def test_a_ranking_that_no_reply_gives_is_that_of_the_stage_before() -> None:
    of = steps()
    for rerank in ("assess", "llm", "endpoint"):
        step = last(of, Config(name="c", rerank=rerank))
        assert step.orders[0] == (1, 2, 0, 3)
        assert step.answered.tolist() == [False, False]
    start_ = last(of, Config(name="c", first_stage=("assess",)))
    assert start_.orders[0] == (1, 2, 0, 3)


def test_an_assessment_ranks_what_it_lists_and_the_rest_by_bm25() -> None:
    own = SubjectOutputs()
    own.assessed[KEY] = {1: Assessment(probability=0.9, relevance={3: 90})}
    step = last(steps(own), Config(name="c", rerank="assess"))
    assert step.orders[0] == (3, 1, 2, 0)
    assert step.scores[:, 0].tolist() == [0.0, 0.0, 0.0, 0.9]
    assert step.answered.tolist() == [True, False]


def test_reranks_are_merged_and_an_endpoint_puts_what_it_left_out_last() -> None:
    own = SubjectOutputs()
    own.orders[KEY] = {1: (3, 2, 1, 0), 2: (3, 0, 1, 2)}
    assert last(steps(own), Config(name="c", rerank="llm")).orders[0] == (3, 0, 2, 1)
    of = steps(endpoint=(0.5, None, 0.9, None))
    assert last(of, Config(name="c", rerank="endpoint")).orders[0] == (2, 0, 1, 3)


@pytest.mark.parametrize("rerank", ["none", "assess", "llm", "endpoint"])
@pytest.mark.parametrize("graph", ["none", "ppr", "label_propagation"])
@pytest.mark.parametrize("texts", [(), ("only one",), ("...", "!")])
def test_empty_small_and_wordless_pools_go_through_every_stage(
    texts: tuple[str, ...], graph: str, rerank: str
) -> None:
    of = steps(texts=texts)
    for source in ("bm25", "embedding", "assess", "document", "random"):
        config = Config(
            name="c",
            first_stage=(source,),
            rerank=rerank,  # type: ignore[arg-type]  # of the Literal
            graph=graph,  # type: ignore[arg-type]  # of the Literal
        )
        step = last(of, config)
        assert step.orders == (tuple(range(len(texts))),) * 2
        assert step.scores.shape == (len(texts), 2)


def test_a_removed_stage_leaves_nothing_behind() -> None:
    own = SubjectOutputs()
    own.assessed[KEY] = {1: Assessment(probability=0.9, relevance={3: 90})}
    alone = last(steps(), Config(name="first stage", top=24))
    beside = steps(own)
    last(beside, Config(name="full", rerank="assess", graph="ppr"))
    first = last(beside, Config(name="first stage", top=24))
    assert first.orders == alone.orders
    assert first.scores.tobytes() == alone.scores.tobytes()


@pytest.mark.parametrize(
    ("config", "last"),
    [
        (Config(name="c", rerank="assess", graph="ppr"), "assess"),
        (Config(name="c", rerank="endpoint", graph="label_propagation"), "endpoint"),
        (Config(name="c", rerank="llm", graph="ppr"), "none"),
        (Config(name="c", rerank="llm"), "none"),
        (Config(name="c", graph="ppr"), "none"),
    ],
)
def test_a_gate_goes_by_scores_that_say_whether_and_not_only_where(
    config: Config, last: str
) -> None:
    found = gate_chain(ranking_chains(config))
    assert (found.rerank, found.graph) == (last, "none")
