"""From answers to the sheet: statuses, gates, states, and what nothing may change."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jobs.evidence_retrieval.data import EvidenceDataset, Gold
from jobs.evidence_retrieval.pipeline import STANDARD, Config
from jobs.evidence_retrieval.predictions.fitted_gate import decode
from jobs.evidence_retrieval.predictions.scoring_input import predict
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions, ScoringInput
from jobs.kit.metrics import auroc
from jobs.kit.testing import MemoryAnswers
from tests.jobs.evidence_retrieval.said import codes, fingerprint
from tests.jobs.evidence_retrieval.world import Sayings, answers, dataset, post

FULL = (STANDARD[-1],)


def of(sheet: ScoringInput, config: str, model: str = "m") -> Predictions:
    (found,) = (
        each
        for each in sheet.predictions
        if (each.model, each.config) == (model, config)
    )
    return found


def test_the_standard_configurations_end_to_end() -> None:
    world = dataset(posts=60)
    sheet = predict(world, answers(world))
    assert [found.config for found in sheet.predictions] == [c.name for c in STANDARD]
    assert [found.final for found in sheet.predictions] == [
        *("retriever", "reranked", "graph", "graph", "graph", "graph")
    ]
    assert [found.k_rule for found in sheet.predictions] == [
        *("24", "10", "10", "K", "K", "K")
    ]
    full, before = sheet.predictions[-1], sheet.predictions[-2]
    assert full.prob is not None
    assert before.prob is not None
    assert full.prob.tobytes() == before.prob.tobytes()
    assert (auroc(sheet.queries.y, full.prob) or 0) > 0.8
    assert full.state is not None
    assert set(full.state.tolist()) == {0, 1, 2}
    assert full.k is not None
    assert set(full.k[full.state == 0].tolist()) == {0}
    assert before.state is before.tau_neg is None
    assert sheet.predictions[0].prob is None
    assert len(sheet.gates) == 10
    assert codes(sheet) == []


def test_every_list_is_a_permutation_of_the_pool_and_is_shared() -> None:
    world = dataset(posts=12)
    sheet = predict(world, answers(world))
    uids = [{each.uid for each in own.sentences} for own in world.posts]
    for found in sheet.predictions:
        for name, lists in found.lists.items():
            for i, own in enumerate(lists):
                assert set(own) == uids[sheet.queries.post[i]]
                assert len(own) == sheet.queries.pool[i] == len(found.scores[name][i])
    shared = of(sheet, "with graph").lists["reranked"]
    assert of(sheet, "full").lists["reranked"] is shared


def test_scrambled_test_gold_changes_no_byte_of_the_fold() -> None:
    world = dataset(posts=30)
    stored = answers(world)
    before = predict(world, stored)
    assert world.gold is not None
    for place, fold in enumerate(before.queries.folds):
        inside = np.flatnonzero(before.queries.fold == place).tolist()
        keys = [before.queries.key(i) for i in inside]
        turned = dict(world.gold.evidence)
        for key in keys:
            own, criterion = world.query(key)
            if turned.pop((own.id, criterion.id), None) is None:
                turned[own.id, criterion.id] = (own.sentences[0].uid,)
        gold = Gold(posts=world.gold.posts, evidence=turned)
        after = predict(replace(world, gold=gold), stored)
        assert fingerprint(after, keys) == fingerprint(before, keys)
        assert fingerprint(after) != fingerprint(before), fold


def test_the_order_of_files_changes_nothing() -> None:
    world = dataset(posts=25)
    stored = answers(world)
    assert world.gold is not None
    gold = Gold(
        posts=world.gold.posts, evidence=dict(reversed(world.gold.evidence.items()))
    )
    turned = replace(
        world, posts=world.posts[::-1], criteria=world.criteria[::-1], gold=gold
    )
    backwards = MemoryAnswers(held=stored.held[::-1], models=("m",))
    one, other = predict(world, stored), predict(turned, backwards)
    assert fingerprint(other) == fingerprint(one)
    assert other.gates == one.gates


HASHED = """
import hashlib
from tests.jobs.evidence_retrieval.said import fingerprint
from tests.jobs.evidence_retrieval.world import answers, dataset
from jobs.evidence_retrieval.predictions.scoring_input import predict
world = dataset(posts=15, deep_checks=True)
sheet = predict(world, answers(world))
said = repr((fingerprint(sheet), sheet.gates, sheet.leakage, sheet.findings))
print(hashlib.sha256(said.encode()).hexdigest())
"""


@pytest.mark.timeout(120)
def test_neither_hash_seeds_nor_threads_change_a_byte() -> None:
    digests = set()
    for seed, threads in (("1", "1"), ("2", "2")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
        }
        done = subprocess.run(
            [sys.executable, "-c", HASHED],
            env=environment,
            cwd=Path(__file__).parents[4],
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_a_query_without_a_readable_assessment_is_unscored_and_still_ranked() -> None:
    world = dataset(posts=30, configs=STANDARD)
    say = Sayings(world=world, unreadable=frozenset({"p003/A.2"}))
    sheet = predict(world, answers(world, say))
    i = next(n for n in range(len(sheet.queries)) if sheet.queries.key(n) == "p003/A.2")
    full, first = of(sheet, "full"), of(sheet, "first stage")
    assert (full.status[i], first.status[i]) == ("unscored", "scored")
    assert full.prob is not None
    assert np.isnan(full.prob[i])
    assert full.lists["reranked"][i] == full.lists["retriever"][i]
    assert full.counts["ranked_by_stage_before"] == 1
    assert full.state is not None
    assert full.state[i] == UNKNOWN


def test_an_empty_post_is_skipped_or_has_no_evidence_as_the_settings_say() -> None:
    plain = dataset(posts=30, configs=FULL)
    for choice, status in (("unscored", "skipped:no_sentences"), ("zero", "scored")):
        settings = plain.settings.model_copy(update={"empty_pool": choice})
        assert plain.gold is not None
        world = replace(
            plain,
            settings=settings,
            posts=(*plain.posts, post("void")),
            gold=Gold(posts=plain.gold.posts | {"void"}, evidence=plain.gold.evidence),
        )
        (found,) = predict(world, answers(world)).predictions
        assert found.status[-1] == status
        assert found.lists["graph"][-1] == ()
        assert found.prob is not None
        assert found.prob[-1] == 0.0 or choice == "unscored"
        assert found.k is not None
        assert found.k[-1] == 0


def test_one_sentence_is_ranked_without_a_call_and_is_no_failure() -> None:
    configs = (
        Config(name="llm", rerank="llm"),
        Config(name="endpoint", rerank="endpoint"),
    )
    plain = dataset(posts=12, configs=configs)
    assert plain.gold is not None
    world = replace(
        plain,
        posts=(*plain.posts, post("one", "Only this.")),
        gold=Gold(posts=plain.gold.posts | {"one"}, evidence=plain.gold.evidence),
    )
    sheet = predict(world, answers(world))
    assert [found.lists["reranked"][-1] for found in sheet.predictions] == [
        ("one_0",),
        ("one_0",),
    ]
    assert [found.status[-1] for found in sheet.predictions] == [
        *("scored", "skipped:single_sentence")
    ]
    assert all("ranked_by_stage_before" not in f.counts for f in sheet.predictions)


def test_unjudged_posts_are_predicted_and_left_out() -> None:
    world = dataset(posts=30, configs=FULL)
    assert world.gold is not None
    judged = Gold(posts=world.gold.posts - {"p004"}, evidence=world.gold.evidence)
    sheet = predict(replace(world, gold=judged), answers(world))
    (found,) = sheet.predictions
    own = [i for i in range(len(sheet.queries)) if sheet.queries.key(i)[:4] == "p004"]
    assert {found.status[i] for i in own} == {"unjudged"}
    assert found.prob is not None
    assert np.isfinite(found.prob[own]).all()
    assert all(gate.posts["tune"] + gate.posts["fit"] <= 24 for gate in sheet.gates)


def test_without_gold_everything_is_predicted_and_nothing_fitted() -> None:
    world = dataset(posts=6)
    sheet = predict(replace(world, gold=None), answers(world))
    assert set(of(sheet, "full").status) == {"unjudged"}
    assert (sheet.gates, sheet.queries.folds, sheet.queries.gold) == ((), (), None)
    assert codes(sheet).count("gate_undefined") == 1
    probability = of(sheet, "full").prob
    assert probability is not None
    assert np.isfinite(probability).all()


def test_two_models_of_which_one_lacks_queries() -> None:
    world = dataset(posts=30, configs=FULL)
    whole = answers(world, models=("a", "b"))
    part = MemoryAnswers(
        held=tuple(
            family
            for family in whole.held
            if (family[0].task.model, family[0].task.key[:4]) != ("b", "p007")
        ),
        models=("a", "b"),
    )
    sheet = predict(world, part)
    assert sheet.missing == 3
    assert "unscored" not in of(sheet, "full", "a").status
    assert list(of(sheet, "full", "b").status).count("unscored") == 3
    alone = predict(world, answers(world, models=("a",)))
    mine = {k: v for k, v in fingerprint(sheet).items() if k.startswith("a ")}
    assert mine == fingerprint(alone)


def test_one_class_in_a_fold_leaves_it_without_states() -> None:
    world = dataset(posts=10, configs=FULL, share=0.0)
    sheet = predict(world, answers(world))
    (found,) = sheet.predictions
    assert found.state is not None
    assert set(found.state.tolist()) == {UNKNOWN}
    assert codes(sheet) == ["gate_undefined"] * 5
    assert all(gate.tau_neg is None for gate in sheet.gates)
    assert "no positive" in str(sheet.gates[0].fitted["undefined"])


def test_passthrough_without_calibration_fits_thresholds_only() -> None:
    plain = Config(name="plain", rerank="assess", gate="passthrough")
    stated = plain.model_copy(update={"name": "states", "three_state": True})
    world = dataset(posts=30, configs=(plain, stated))
    sheet = predict(world, answers(world))
    one, other = of(sheet, "plain"), of(sheet, "states")
    assert one.prob is not None
    assert one.prob_raw is not None
    assert other.prob is not None
    assert one.prob.tobytes() == one.prob_raw.tobytes() == other.prob.tobytes()
    assert [gate.config for gate in sheet.gates] == ["states"] * 5
    assert other.tau_neg is not None


def test_a_late_stage_alone_tells_two_configurations_apart() -> None:
    configs = (
        Config(name="a", rerank="assess", graph="ppr"),
        Config(name="b", rerank="assess", graph="label_propagation"),
    )
    world, one = (
        dataset(posts=5, configs=configs),
        dataset(posts=5, configs=configs[:1]),
    )
    both, alone = answers(world), answers(one)
    assert [f[0].task for f in both.held] == [f[0].task for f in alone.held]
    sheet = predict(world, both)
    assert of(sheet, "a").lists["reranked"] is of(sheet, "b").lists["reranked"]


def test_replicates_tell_how_far_they_differ() -> None:
    configs = (Config(name="c", rerank="llm", gate="passthrough"),)
    world = dataset(posts=8, configs=configs)
    once = predict(world, answers(world)).predictions[0]
    assert once.repeat == {"flip_rate": None, "replicate_tau": None}
    thrice = predict(world, answers(world, replicates=3)).predictions[0]
    flip_rate, tau = thrice.repeat["flip_rate"], thrice.repeat["replicate_tau"]
    assert flip_rate is not None
    assert 0 < flip_rate < 0.5
    assert tau is not None
    assert -0.3 < tau < 0.3
    assert thrice.replicates is not None
    assert set(thrice.replicates.tolist()) == {3}


def final(world: EvidenceDataset) -> str:
    settings = world.settings.model_copy(update={"final_gate": True})
    sheet = predict(replace(world, settings=settings), answers(world))
    return sheet.final_gates


def test_a_final_gate_judges_new_posts_and_says_where_they_are_not_new() -> None:
    world = dataset(posts=30, configs=FULL)
    gates = decode(final(world))
    assert [(each.model, each.config) for each in gates] == [("m", "full")]
    fresh = replace(
        world,
        gold=None,
        gates=gates,
        posts=tuple(replace(own, id=f"new-{own.id}") for own in world.posts[:3]),
    )
    (found,) = predict(fresh, answers(fresh)).predictions
    assert found.tau_neg is not None
    assert set(found.tau_neg.tolist()) == {gates[0].gate.thresholds.tau_neg}
    assert found.state is not None
    assert UNKNOWN not in found.state.tolist()
    again = predict(replace(world, gates=gates), answers(world))
    assert codes(again) == ["applied_gate_saw_posts"]
    assert again.gates == ()


def test_a_final_gate_changes_no_reported_number() -> None:
    world = dataset(posts=20, configs=FULL)
    settings = world.settings.model_copy(update={"final_gate": True})
    stored = answers(world)
    with_it = predict(replace(world, settings=settings), stored)
    assert fingerprint(with_it) == fingerprint(predict(world, stored))


def test_a_stored_gate_of_another_model_is_an_error_finding() -> None:
    world = dataset(posts=20, configs=FULL)
    gates = tuple(replace(own, model="other") for own in decode(final(world)))
    sheet = predict(replace(world, gates=gates), answers(world))
    assert codes(sheet) == ["gate_undefined"]
    assert sheet.findings[0].severity == "error"


def test_a_graph_moves_sentences_and_no_probability() -> None:
    """Its scores are shares of the pool: a pool of one has all there is."""
    with_graph = STANDARD[-1].model_copy(update={"name": "with", "graph": "ppr"})
    without = STANDARD[-1].model_copy(update={"name": "without", "graph": "none"})
    world = dataset(posts=30, configs=(with_graph, without))
    one, other = predict(world, answers(world)).predictions
    assert one.prob_raw is not None
    assert other.prob_raw is not None
    assert one.prob_raw.tobytes() == other.prob_raw.tobytes()
    assert one.lists["graph"] != other.lists[other.final]
