"""Constants from grids: chosen on tuning posts, by fold, and never on test posts."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from jobs.evidence_retrieval import leakage_experiments
from jobs.evidence_retrieval.data import EvidenceDataset, Gold
from jobs.evidence_retrieval.explain import explain
from jobs.evidence_retrieval.explain_query import selections
from jobs.evidence_retrieval.explain_stages import of_model
from jobs.evidence_retrieval.leakage_experiments import choice_checks
from jobs.evidence_retrieval.pipeline import STANDARD, Config
from jobs.evidence_retrieval.predictions.classifier import Split, split
from jobs.evidence_retrieval.predictions.columns import columns, folds_of, queries
from jobs.evidence_retrieval.predictions.fold_gates import (
    FoldChoice,
    Grid,
    GridCandidate,
    choose,
)
from jobs.evidence_retrieval.predictions.outputs import gather
from jobs.evidence_retrieval.predictions.rankings import (
    CONSTANTS,
    Constants,
    constants_of,
    grid_constants,
    ranking_chains,
)
from jobs.evidence_retrieval.predictions.scoring_input import predict
from jobs.evidence_retrieval.queries import Queries, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from tests.jobs.evidence_retrieval.said import codes, fingerprint
from tests.jobs.evidence_retrieval.world import answers, dataset

TRIED = None if "SIFTLOG_PROVE" in os.environ else 2
"""Folds whose gold is changed; each takes a whole prediction."""

GAMMAS, DAMPINGS, FUSIONS = (0.3, 0.95), (0.1, 0.9), (1, 60)
FULL = Config(
    name="fused",
    first_stage=("bm25", "document"),
    graph="ppr",
    dynamic_k="mass",
    gate="classifier",
    calibration="isotonic",
    three_state=True,
)
UNGATED = Config(
    name="ungated", first_stage=FULL.first_stage, graph="ppr", dynamic_k="mass"
)


def grids(**settings: Any) -> dict[str, Any]:
    return {
        "gamma_grid": GAMMAS,
        "damping_grid": DAMPINGS,
        "rrf_k_grid": FUSIONS,
        **settings,
    }


@pytest.fixture(name="world", scope="module")
def _world() -> EvidenceDataset:
    return dataset(posts=40, configs=(UNGATED, FULL), **grids())


@pytest.fixture(name="sheet", scope="module")
def _sheet(world: EvidenceDataset) -> ScoringInput:
    return predict(world, answers(world))


def keys_of(sheet: ScoringInput, fold: str) -> list[str]:
    place = sheet.queries.folds.index(fold)
    return [
        sheet.queries.key(i)
        for i in np.flatnonzero(sheet.queries.fold == place).tolist()
    ]


def test_a_grid_touches_only_configurations_with_its_stage() -> None:
    settings = EvidenceSettings(
        gamma_grid=(0.5, 0.6), damping_grid=(0.2,), rrf_k_grid=(1, 2)
    )
    assert grid_constants(Config(name="c"), settings) == (CONSTANTS,)
    assert grid_constants(STANDARD[2], settings) == (Constants(damping=0.2),)
    assert grid_constants(STANDARD[3], settings) == (
        Constants(damping=0.2, gamma=0.5),
        Constants(damping=0.2, gamma=0.6),
    )
    assert [each.rrf_k for each in grid_constants(FULL, settings)] == [1, 1, 2, 2]
    assert grid_constants(FULL, EvidenceSettings()) == (CONSTANTS,)


def test_grids_of_one_value_replace_the_constants_and_choose_nothing() -> None:
    plain = dataset(posts=12, configs=(UNGATED,))
    stored = answers(plain)

    def with_grids(**values: object) -> ScoringInput:
        settings = plain.settings.model_copy(update=values)
        return predict(replace(plain, settings=settings), stored)

    same = with_grids(damping_grid=(0.3,), rrf_k_grid=(60,), gamma_grid=(0.95,))
    assert fingerprint(same) == fingerprint(predict(plain, stored))
    assert same.gates == ()
    (fewer,) = with_grids(gamma_grid=(0.1,)).predictions
    (before,) = same.predictions
    assert fewer.lists == before.lists
    assert fewer.k is not None
    assert before.k is not None
    assert np.sum(fewer.k) < np.sum(before.k)


def test_each_fold_goes_by_its_choice_as_if_that_had_been_set(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    stored = answers(world)
    choices = set()
    for record in sheet.gates:
        chosen = record.fitted["constants"]
        choices.add(tuple(chosen.values()))
        settings = world.settings.model_copy(
            update={f"{name}_grid": (value,) for name, value in chosen.items()}
        )
        config = next(each for each in world.configs if each.name == record.config)
        alone = predict(replace(world, settings=settings, configs=(config,)), stored)
        keys = keys_of(sheet, record.fold)
        wanted = fingerprint(alone, keys)
        assert {k: v for k, v in fingerprint(sheet, keys).items() if k in wanted} == (
            wanted
        )
        if record.has_gate:
            (own,) = (each for each in alone.gates if each.fold == record.fold)
            assert (record.tau_neg, record.tau_pos) == (own.tau_neg, own.tau_pos)
            assert record.fitted.items() >= own.fitted.items()
    assert len(choices) > 2


def test_the_best_mean_f1_of_the_tuning_queries_is_chosen(
    world: EvidenceDataset,
) -> None:
    configs = (UNGATED.model_copy(update={"graph": "none"}),)
    world = replace(world, configs=configs)
    stored = answers(world)
    sheet = predict(world, stored)
    assert world.gold is not None
    judged = sorted(world.gold.posts)
    by_value = {}
    for rrf_k in FUSIONS:
        for gamma in GAMMAS:
            update = {"rrf_k_grid": (rrf_k,), "gamma_grid": (gamma,)}
            settings = world.settings.model_copy(update=update)
            alone = predict(replace(world, settings=settings), stored)
            by_value[rrf_k, gamma] = alone.predictions[0]
    assert len(sheet.gates) == 5
    for record in sheet.gates:
        tune = split(
            record.fold,
            folds_of(world),
            judged,
            seed=world.settings.seed,
            tune_fraction=0.3,
        ).tune
        reached = {}
        for constants, own in by_value.items():
            scores = []
            assert own.k is not None
            for i, k in enumerate(own.k.tolist()):
                post, criterion = world.query(sheet.queries.key(i))
                golden = world.gold.evidence.get((post.id, criterion.id))
                if golden is None or post.id not in tune:
                    continue
                shown = own.lists["retriever"][i][:k]
                hits = len({*golden} & {*shown})
                scores.append(2 * hits / (len(golden) + len(shown)))
            reached[constants] = round(fmean(scores), 12)
        best = max(reached.values())
        first = next(own for own, value in reached.items() if value == best)
        chosen = record.fitted["constants"]
        assert (chosen["rrf_k"], chosen["gamma"]) == first
        assert record.on_tune["evidence_f1"] == pytest.approx(best, abs=1e-11)
        assert record.on_tune["gamma"] == first[1]
        assert record.posts["tune"] == len(tune)
        assert not record.has_gate


@pytest.mark.parametrize("metric", ["evidence_recall", "evidence_precision", "ndcg@10"])
def test_other_metrics_choose_too(world: EvidenceDataset, metric: str) -> None:
    update: dict[str, object] = {"grid_metric": metric}
    if metric == "ndcg@10":
        update["gamma_grid"] = ()
    settings = EvidenceSettings.model_validate(
        {**world.settings.model_dump(), **update}
    )
    sheet = predict(replace(world, settings=settings), answers(world))
    chosen = [each.fitted["chosen_by"] for each in sheet.gates]
    assert chosen == [metric] * 10
    assert all(0 < (each.on_tune[metric] or 0) <= 1 for each in sheet.gates)


@pytest.mark.parametrize("how", ["scrambled", "removed"])
def test_other_test_gold_changes_no_byte_of_the_fold(
    world: EvidenceDataset, sheet: ScoringInput, how: str
) -> None:
    stored = answers(world)
    gold = world.gold
    assert gold is not None
    for fold in sheet.queries.folds[:TRIED]:
        keys = keys_of(sheet, fold)
        pairs = [(own.id, criterion.id) for own, criterion in map(world.query, keys)]
        turned = {key: uids for key, uids in gold.evidence.items() if key not in pairs}
        posts = gold.posts
        if how == "removed":
            posts -= {post for post, _ in pairs}
        else:
            turned |= {
                key: (f"{key[0]}_0",) for key in pairs if key not in gold.evidence
            }
        changed = replace(world, gold=Gold(posts=posts, evidence=turned))
        after = predict(changed, stored)
        assert fingerprint(after, keys) == fingerprint(sheet, keys)
        for one, other in zip(sheet.gates, after.gates, strict=True):
            if one.fold == fold:
                assert (other.fitted, other.on_tune) == (one.fitted, one.on_tune)
        assert after.gates != sheet.gates


def test_the_order_of_files_changes_no_choice(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    turned = replace(world, posts=world.posts[::-1], criteria=world.criteria[::-1])
    other = predict(turned, answers(world))
    assert fingerprint(other) == fingerprint(sheet)
    assert other.gates == sheet.gates


def test_a_fold_without_a_tuning_positive_keeps_the_constants() -> None:
    world = dataset(posts=20, configs=(UNGATED,), **grids())
    assert world.gold is not None
    evidence = {
        key: uids
        for key, uids in world.gold.evidence.items()
        if key[0] in {"p001", "p002"}
    }
    world = replace(world, gold=Gold(posts=world.gold.posts, evidence=evidence))
    sheet = predict(world, answers(world))
    kept = [each.fold for each in sheet.gates if each.on_tune["evidence_f1"] is None]
    assert 0 < len(kept) < 5
    assert [finding.where for finding in sheet.findings] == [
        f"m, ungated, fold {fold}" for fold in kept
    ]
    assert set(codes(sheet)) == {"grid_without_positive"}
    plain = predict(replace(world, settings=EvidenceSettings()), answers(world))
    for record in sheet.gates:
        keys = keys_of(sheet, record.fold)
        is_plain = fingerprint(sheet, keys) == fingerprint(plain, keys)
        assert is_plain == (record.fold in kept)


def test_without_gold_the_constants_hold_and_it_is_said(world: EvidenceDataset) -> None:
    blind = replace(world, gold=None)
    sheet = predict(blind, answers(world))
    plain = predict(replace(blind, settings=EvidenceSettings()), answers(world))
    assert fingerprint(sheet) == fingerprint(plain)
    assert codes(sheet).count("grid_without_positive") == 2
    assert sheet.gates == ()


def test_one_value_beside_a_grid_holds_where_the_grid_cannot_be_chosen_from(
    world: EvidenceDataset,
) -> None:
    settings = EvidenceSettings(gamma_grid=GAMMAS, damping_grid=(0.9,))
    sheet = predict(replace(world, gold=None, settings=settings), answers(world))
    alone = replace(world, gold=None, settings=EvidenceSettings(damping_grid=(0.9,)))
    assert fingerprint(sheet) == fingerprint(predict(alone, answers(world)))


def test_the_record_tells_what_a_query_went_by(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    plain = Constants(rrf_k=60, damping=0.3, gamma=None)
    for config, record in product(world.configs, sheet.gates):
        if config.name != record.config:
            continue

        chosen = Constants(**record.fitted["constants"])
        assert constants_of(config, world.settings, record) == chosen
        assert constants_of(config, world.settings, None) == plain


def test_a_page_about_a_query_shows_the_ranking_that_its_fold_chose(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    record = next(
        each
        for each in sheet.gates
        if each.config == FULL.name and each.fitted["constants"]["damping"] != 0.3
    )
    key = next(iter(keys_of(sheet, record.fold)))
    place = [sheet.queries.key(i) for i in range(len(sheet.queries))].index(key)
    page = " ".join(explain(world, answers(world), (key,)).split())
    values = record.fitted["constants"]
    chosen = f"damping {values['damping']:g}, gamma {values['gamma']:g}"
    assert f"{chosen} by evidence_f1" in page
    final = next(own for own in sheet.predictions if own.config == FULL.name)
    places = {uid: at for at, uid in enumerate(final.lists["graph"][place], start=1)}
    outputs = gather(replace(world, gold=None), answers(world))
    post, _ = world.query(key)
    (query,) = selections((key,), world, sheet.queries)[0].queries
    stages = of_model(world, query, outputs, FULL, final)
    wanted = [str(places[each.uid]) for each in post.sentences]
    assert wanted in [[str(cell) for cell in cells] for _, cells in stages.columns]


def test_skip_empty_leaves_queries_without_a_k_out_of_the_metric() -> None:
    def reached(*, skip_empty: bool) -> list[float]:
        settings = grids(skip_empty=skip_empty, target_sensitivity=0.6)
        world = dataset(posts=40, configs=(FULL,), **settings)
        sheet = predict(world, answers(world))
        return [each.on_tune["evidence_f1"] or 0 for each in sheet.gates]

    pairs = zip(reached(skip_empty=True), reached(skip_empty=False), strict=True)
    differences = [one - other for one, other in pairs]
    assert min(differences) >= 0
    assert max(differences) > 0


def checked(world: EvidenceDataset) -> set[str]:
    asked = queries(world)
    made = columns(
        world,
        gather(replace(world, gold=None), answers(world)),
        [
            chain
            for own in grid_constants(UNGATED, world.settings)
            for chain in ranking_chains(UNGATED, own)
        ],
    )["m"]
    grid = Grid(
        config=UNGATED,
        settings=world.settings,
        candidates=[
            GridCandidate(
                constants=own,
                last=made.steps[ranking_chains(UNGATED, own)[-1]],
                gated=None,
            )
            for own in grid_constants(UNGATED, world.settings)
        ],
    )
    assert world.gold is not None
    parts = [
        split(name, folds_of(world), world.gold.posts, seed=1, tune_fraction=0.3)
        for name in asked.folds
    ]
    found = choice_checks("m", grid, asked, parts)
    return {finding.code for finding in found}


def test_choosing_on_test_posts_is_caught_and_on_tuning_posts_is_not(
    world: EvidenceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cheat(grid: Grid, asked: Queries, own: Split) -> FoldChoice:
        return replace(
            choose(grid, asked, replace(own, tune=(*own.tune, *own.test))), split=own
        )

    assert checked(world) == set()
    monkeypatch.setattr(leakage_experiments, "choose", cheat)
    assert checked(world) == {"gold_scramble", "test_removal"}


def test_a_leak_free_run_with_grids_survives_the_deep_checks() -> None:
    world = dataset(posts=25, configs=(UNGATED, FULL), **grids(deep_checks=True))
    assert predict(world, answers(world)).leakage == ()


def test_what_gates_have_to_say_is_said_once_for_those_that_share_one() -> None:
    world = dataset(posts=10, share=0.0)
    sheet = predict(world, answers(world))
    assert codes(sheet) == ["gate_undefined"] * 5
    names = " and ".join(config.name for config in STANDARD if config.gate != "none")
    assert [finding.where for finding in sheet.findings] == [
        f"m, {names}, fold {fold}" for fold in range(5)
    ]


def test_settings_that_contradict_grids_are_refused() -> None:
    with pytest.raises(ValidationError, match="which no K changes"):
        EvidenceSettings(gamma_grid=(0.5,), grid_metric="ndcg@10")
    with pytest.raises(ValidationError, match="goes with the constants"):
        EvidenceSettings(damping_grid=(0.5,), final_gate=True)
    for wrong in (
        {"gamma_grid": (0.0,)},
        {"damping_grid": (1.0,)},
        {"rrf_k_grid": (0,)},
    ):
        with pytest.raises(ValidationError):
            EvidenceSettings.model_validate(wrong)
