"""Replicates of one query made into one.

How many sentences a configuration shows. What is read from a run's answers.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.parsing import Assessment
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.outputs import gather
from jobs.evidence_retrieval.predictions.rankings import merge, merged_order
from jobs.evidence_retrieval.predictions.scoring_input import sweep_findings
from jobs.evidence_retrieval.predictions.stages import RRF, reciprocal_ranks, selection
from jobs.evidence_retrieval.queries import Predictions
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import fuse_rrf
from jobs.kit.testing import MemoryAnswers
from runner.job import Task
from runner.messages import AnyReply, Reply, Vectors
from tests.jobs.evidence_retrieval.world import Sayings, answers, dataset
from tests.replacing import replace

LEXICAL = [0.0, 2.0, 1.0, 2.0]


def test_probability_and_relevance_are_means_and_unlisted_counts_zero() -> None:
    found, orders = merge(
        {
            2: Assessment(probability=0.5, relevance={0: 60}),
            1: Assessment(probability=0.9, relevance={0: 80, 2: 40}),
        },
        LEXICAL,
    )
    assert found.probability == pytest.approx(0.7)
    assert found.deviation == pytest.approx(np.std([0.9, 0.5], ddof=1))
    assert found.relevance.tolist() == [0.7, 0.0, 0.2, 0.0]
    assert (found.listed, found.largest, found.replicates) == (2, 0.7, 2)
    assert orders == [(0, 2, 1, 3), (0, 1, 3, 2)]


def test_one_replicate_orders_by_relevance_then_bm25_then_place() -> None:
    found, _ = merge({1: Assessment(probability=0.1, relevance={2: 5})}, LEXICAL)
    assert found.order == (2, 1, 3, 0)
    assert found.deviation is None


def test_orders_merge_by_mean_reciprocal_rank_with_ties_by_place() -> None:
    assert merged_order([(2, 1, 0), (0, 1, 2)]) == (0, 2, 1)
    assert merged_order([(1, 0), (0, 1)]) == (0, 1)


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=4))
def test_a_merge_is_a_permutation_that_agrees_with_reciprocal_rank_fusion(
    orders: list[list[int]],
) -> None:
    given_orders = [tuple(order) for order in orders]
    assert sorted(merged_order(given_orders)) == list(range(6))
    scores = reciprocal_ranks(given_orders, RRF)
    fused = fuse_rrf([[str(place) for place in order] for order in orders])
    assert [scores[int(name)] for name in fused] == sorted(scores, reverse=True)


LEVEL = [np.ones(11), np.ones(4), np.empty(0)]


def test_what_is_fixed_is_named_by_its_number() -> None:
    found = selection(Config(name="c", top=24), EvidenceSettings(), LEVEL, None)
    assert (found.rule, found.k.tolist()) == ("24", [24, 24, 24])
    found = selection(
        Config(name="c", dynamic_k="fixed:7"), EvidenceSettings(), LEVEL, None
    )
    assert (found.rule, found.k.tolist(), dict(found.sweep)) == ("7", [7, 7, 7], {})


def test_the_mass_rule_goes_by_state_and_by_that_of_uncertain_without_one() -> None:
    config = Config(name="c", dynamic_k="mass")
    scores = [np.ones(11)] * 4
    states = np.array([0, 1, 2, -1], dtype=np.int8)
    found = selection(config, EvidenceSettings(), scores, states)
    assert (found.rule, found.k.tolist()) == ("K", [0, 8, 7, 8])
    assert selection(config, EvidenceSettings(), LEVEL, None).k.tolist() == [8, 3, 0]


def test_a_sweep_replaces_gamma_and_keeps_the_bounds() -> None:
    config = Config(name="c", dynamic_k="mass")
    settings = EvidenceSettings(gammas=(0.95, 0.7), k_scale="raw")
    falling = [np.arange(20) * -0.25]
    found = selection(config, settings, falling, None)
    assert {gamma: k.tolist() for gamma, k in found.sweep.items()} == {
        0.7: [5],
        0.95: [12],
    }


def test_a_gamma_without_effect_is_said() -> None:
    def with_sweep(*ks: int) -> Predictions:
        sweep = {0.5 + i / 10: np.array([k]) for i, k in enumerate(ks)}
        return Predictions(model="m", config="c", status=["scored"], sweep=sweep)

    assert [each.code for each in sweep_findings(with_sweep(5, 5))] == [
        "gamma_without_effect"
    ]
    assert not [*sweep_findings(with_sweep(5, 6))]
    assert not [*sweep_findings(with_sweep(5))]


PLAIN = (Config(name="c", rerank="assess"),)


def test_replicates_and_models_are_kept_apart() -> None:
    world = dataset(posts=2, criteria=2, configs=PLAIN)
    found = gather(world, answers(world, models=("a", "b"), replicates=3))
    assert set(found.subjects) == {"a", "b"}
    for subject in found.subjects.values():
        assert {*subject.assessed} == {f"p00{n}/A.{c}" for n in (0, 1) for c in (1, 2)}
        assert all({*own} == {1, 2, 3} for own in subject.assessed.values())
    assert (found.missing, found.stale) == (0, 0)


def test_what_cannot_be_read_is_counted_by_its_reason() -> None:
    world = dataset(posts=2, criteria=1, configs=PLAIN)
    say = Sayings(world=world, unreadable=frozenset({"p000/A.1"}))
    found = gather(world, answers(world, say)).subjects["m"]
    assert {*found.assessed} == {"p001/A.1"}
    assert found.counts["no_json"] == 1

    def fails(task: Task) -> AnyReply | None:
        return None if task.key == "p000/A.1" else say(task)

    failed = gather(world, answers(world, fails)).subjects["m"]
    assert failed.counts == {"error.ServerError": 1}


def test_skips_are_kept_with_their_reason() -> None:
    world = dataset(posts=2, criteria=1, configs=PLAIN, max_sentences=1)
    found = gather(world, answers(world)).subjects["m"]
    assert found.skipped == {"p000/A.1": "too_long", "p001/A.1": "too_long"}


def test_a_batch_is_read_by_criterion_and_a_gap_in_it_from_the_answer_alone() -> None:
    world = dataset(posts=1, criteria=3, configs=PLAIN, batch="post")

    def say(task: Task) -> AnyReply:
        if "/" in task.key:
            return Reply(text='{"evidence_probability": 7, "sentences": []}')
        said = [
            {"id": "A.1", "evidence_probability": 60, "sentences": [1]},
            {"id": "A.9", "evidence_probability": 60, "sentences": [1]},
            {"id": "A.3", "evidence_probability": 700, "sentences": []},
        ]
        return Reply(text=json.dumps({"criteria": said}))

    found = gather(world, answers(world, say)).subjects["m"]
    probabilities = {key: own[1].probability for key, own in found.assessed.items()}
    assert probabilities == {
        "p000/A.1": pytest.approx(0.6),
        "p000/A.2": pytest.approx(0.07),
        "p000/A.3": pytest.approx(0.07),
    }
    assert found.counts["probability_out_of_range"] == 1


def test_windows_end_in_one_order_of_the_whole_pool() -> None:
    world = dataset(
        posts=3,
        criteria=2,
        configs=(Config(name="c", rerank="llm"),),
        rerank_window=3,
        rerank_stride=2,
    )

    def backwards(task: Task) -> AnyReply | None:
        if task.stage != "rerank":
            return Sayings(world=world)(task)
        return Reply(text="3 > 2 > 1")

    found = gather(world, answers(world, backwards, replicates=2)).subjects["m"]
    assert len(found.orders) == 6
    for key, by_replicate in found.orders.items():
        own, _ = world.query(key)
        for order in by_replicate.values():
            assert sorted(order) == list(range(len(own.sentences)))


def test_vectors_stay_as_cosines_and_bad_ones_not_at_all() -> None:
    world = dataset(
        posts=2, criteria=2, configs=(Config(name="c", first_stage=("embedding",)),)
    )

    def say(task: Task) -> AnyReply | None:
        if task.stage == "embed" and task.key == "p001":
            return Vectors.of([[1.0, 0.0], [1.0]])
        return Sayings(world=world)(task)

    found = gather(world, answers(world, say))
    assert {*found.cosines} == {"p000"}
    n = len(world.posts[0].sentences)
    assert found.cosines["p000"].query.shape == (n, 2)
    assert found.cosines["p000"].between.diagonal().tolist() == pytest.approx([1.0] * n)


def test_an_endpoint_serves_every_subject() -> None:
    world = dataset(posts=1, criteria=1, configs=(Config(name="c", rerank="endpoint"),))
    found = gather(world, answers(world, models=("a", "b")))
    assert len(found.endpoint["p000/A.1"]) == len(world.posts[0].sentences)


def test_missing_and_stale_tasks_are_counted() -> None:
    world = dataset(posts=4, criteria=2, configs=PLAIN)
    whole = answers(world, models=("a", "b"))
    part = MemoryAnswers(held=whole.held[3:], models=("a", "b"))
    assert gather(world, part).missing == 3
    fewer = replace(world, posts=world.posts[:3])
    found = gather(fewer, whole)
    assert (found.missing, found.stale) == (0, 4)
    opened = replace(whole.held[0][0], reply=None, is_open=True)
    unfinished = MemoryAnswers(held=((opened,), *whole.held[1:]), models=("a", "b"))
    assert gather(world, unfinished).missing == 1
