"""Planted leaks are caught, and honest data pass.

What leaks can be looked for in work made elsewhere, and what is said of others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jobs.evidence_retrieval.data import EvidenceDataset, Gold
from jobs.evidence_retrieval.inputs import assign_folds
from jobs.evidence_retrieval.leakage import (
    NOT_IN_FILES,
    duplicate_texts,
    foreign_candidates,
    gold_features,
    gold_in_instructions,
    imported_leak_checks,
    shared_posts,
    stated_thresholds,
    thresholds_from_test,
)
from jobs.evidence_retrieval.pipeline import STANDARD
from jobs.evidence_retrieval.predictions.classifier import Split
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows
from jobs.evidence_retrieval.predictions.gate import (
    FoldAssignment,
    GateSpec,
    Nested,
    nested,
    rows_of,
    spec_of,
    thresholds,
)
from jobs.evidence_retrieval.predictions.scoring_input import predict
from jobs.evidence_retrieval.queries import LeakCheck, Predictions, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Ints
from tests.jobs.evidence_retrieval.world import answers, dataset, post

TARGETS = EvidenceSettings(
    target_sensitivity=0.9, target_alert_precision=0.6, min_alerts=2
)


def gate() -> tuple[GateSpec, FeatureRows, Ints, FoldAssignment]:
    chance = np.random.default_rng(2)
    names = [f"p{number:03}" for number in range(40)]
    y = (chance.random(160) < 0.4).astype(np.int64)
    values = chance.normal(size=(160, 2)) + y[:, None]
    rows = FeatureRows(
        names=("a", "b"),
        values=values,
        stated=1 / (1 + np.exp(-values[:, 0])),
        posts=tuple(name for name in names for _ in range(4)),
    )
    of = assign_folds(names, 4, 1)
    spec = spec_of(
        STANDARD[-1].model_copy(update={"calibration": "none"}), EvidenceSettings()
    )
    assert spec is not None
    folds = FoldAssignment(names=("0", "1", "2", "3"), of=of, seed=1, tune_fraction=0.3)
    return replace(spec, settings=TARGETS), rows, y, folds


def test_an_honest_run_has_no_finding_under_all_checks() -> None:
    world = dataset(posts=40, deep_checks=True)
    assert predict(world, answers(world)).leakage == ()


def test_a_post_in_two_parts_or_two_folds_is_caught() -> None:
    honest = Split(fold="0", test=("a",), tune=("b",), fit=("c",))
    assert not [*shared_posts("m", [honest])]
    for planted in (
        replace(honest, tune=("a", "b")),
        replace(honest, fit=("c", "a")),
        replace(honest, fit=("c", "b")),
    ):
        (found,) = shared_posts("m", [planted])
        assert (found.code, found.severity) == ("post_overlap", "error")
    twice = replace(honest, fold="1", test=("a",), tune=("d",))
    (found,) = shared_posts("m", [honest, twice])
    assert (found.code, found.example) == ("post_in_two_folds", "a")


@pytest.mark.parametrize("turned", [False, True])
def test_a_feature_that_equals_gold_is_caught(turned: bool) -> None:
    _, rows, y, _ = gate()
    assert not [*gold_features("m", rows, y)]
    planted = (1 - y if turned else y)[:, None] * 3.0 + 1
    leaking = replace(
        rows, names=("a", "b", "c"), values=np.column_stack([rows.values, planted])
    )
    (found,) = gold_features("m", leaking, y)
    assert (found.code, found.severity) == ("gold_feature", "error")
    assert "feature c" in found.message


def test_a_feature_named_like_gold_is_caught() -> None:
    _, rows, y, _ = gate()
    (found,) = gold_features("m", replace(rows, names=("a", "gold_count")), y)
    assert "gold_count" in found.message


def test_thresholds_taken_from_test_are_caught() -> None:
    spec, rows, y, folds = gate()
    honest = nested(spec, rows, y, folds)
    assert not [*thresholds_from_test("m", spec, rows, y, honest)]
    planted = []
    for own in honest.folds:
        assert own.gate is not None
        test = rows_of(rows, own.split.test)
        best = thresholds(y[test] == 1, honest.probability[test], spec.settings)
        planted.append(replace(own, gate=replace(own.gate, thresholds=best)))
    leaking: Nested = replace(honest, folds=tuple(planted))
    found = [*thresholds_from_test("m", spec, rows, y, leaking)]
    assert {each.where for each in found} == {f"m, fold {name}" for name in "0123"}
    assert {each.code for each in found} == {"threshold_from_test"}


def test_given_thresholds_that_fit_their_own_folds_too_well_are_a_warning() -> None:
    world = dataset(posts=30, configs=(STANDARD[-1],))
    sheet = predict(world, answers(world))
    (found,) = sheet.predictions
    assert found.prob is not None
    assert not [*stated_thresholds(sheet.queries, found, TARGETS)]
    own = thresholds(sheet.queries.y == 1, found.prob, TARGETS)
    everywhere = np.ones(len(found.prob))
    copied = replace(
        found, tau_neg=everywhere * own.tau_neg, tau_pos=everywhere * own.tau_pos
    )
    queries = replace(sheet.queries, folds=("0",), fold=sheet.queries.fold * 0)
    warned = [*stated_thresholds(queries, copied, TARGETS)]
    assert [each.severity for each in warned] == ["warn", "warn"]
    nothing = replace(found, tau_neg=everywhere * 0, tau_pos=everywhere * np.inf)
    assert not [*stated_thresholds(queries, nothing, TARGETS)]


def test_posts_of_one_text_in_two_folds_are_named_in_pairs() -> None:
    posts = (post("a", "One two.", "Three"), post("b", "one", "TWO three!"), post("c"))
    (found,) = duplicate_texts(posts, {"a": "0", "b": "1", "c": "0"})
    assert (found.severity, found.example) == ("warn", "a and b")
    assert not [*duplicate_texts(posts, {"a": "1", "b": "1", "c": "0"})]


def test_a_candidate_of_another_post_is_caught() -> None:
    world = dataset(posts=20, configs=STANDARD[:1])
    sheet = predict(world, answers(world))
    (honest,) = sheet.predictions
    assert not [*foreign_candidates(world.posts, sheet.queries, [honest])]
    lists = [("p001_0",), *honest.lists["retriever"][1:]]
    planted: Predictions = replace(honest, lists={"retriever": lists})
    (found,) = foreign_candidates(world.posts, sheet.queries, [planted])
    assert (found.code, found.n) == ("foreign_candidate", 1)
    assert found.example == "p000/A.1: p001_0"


def test_a_gold_sentence_in_the_instructions_is_caught() -> None:
    own = post(
        "p", "Short one.", "The lamp, by the window, is mine!", "Another one is it"
    )
    gold = Gold(
        posts=frozenset({"p"}), evidence={("p", "A.1"): ("p_0", "p_1"), ("p", "B"): ()}
    )
    world = replace(dataset(posts=1), posts=(own,), gold=gold)
    assert not [*gold_in_instructions(world, world.prompts.instructions())]
    shot = "For example: the lamp by the window is mine. Short one. Another one is it."
    (found,) = gold_in_instructions(world, [shot])
    assert (found.code, found.example) == ("gold_in_prompt", "p_1")


BARE = EvidenceDataset(settings=EvidenceSettings())


def _made() -> tuple[EvidenceDataset, ScoringInput, Predictions]:
    world = dataset(posts=30)
    sheet = predict(world, answers(world))
    return world, sheet, sheet.predictions[-1]


def _by_name(checks: tuple[LeakCheck, ...]) -> dict[str, LeakCheck]:
    return {own.name: own for own in checks}


def test_a_run_and_an_import_name_the_same_checks() -> None:
    world, sheet, found = _made()
    given = imported_leak_checks(world, sheet.queries, [found])
    assert {own.name for own in given} == {own.name for own in sheet.leak_checks}


def test_thresholds_of_an_import_are_compared_with_the_best_of_its_own_rows() -> None:
    _, sheet, found = _made()
    queries = sheet.queries
    assert found.prob is not None
    name = "thresholds chosen on test posts"
    honest = _by_name(imported_leak_checks(BARE, queries, [found]))[name]
    assert (honest.not_checked, honest.findings) == ("", ())
    tau_neg = np.full(len(queries), np.nan)
    for fold in range(len(queries.folds)):
        own = queries.fold == fold
        best = thresholds(queries.y[own] == 1, found.prob[own], BARE.settings)
        tau_neg[own] = best.tau_neg
    copied = replace(found, tau_neg=tau_neg)
    planted = _by_name(imported_leak_checks(BARE, queries, [copied]))[name]
    assert [own.code for own in planted.findings] == ["threshold_from_test"]
    silent = replace(found, tau_neg=None, tau_pos=None)
    unknown = _by_name(imported_leak_checks(BARE, queries, [silent]))[name]
    assert unknown.not_checked == "no threshold is above 0 and finite"


def test_what_needs_texts_is_checked_where_they_are_named() -> None:
    world, sheet, found = _made()
    bare = _by_name(imported_leak_checks(BARE, sheet.queries, [found]))
    assert "--posts" in bare["duplicate post texts across folds"].not_checked
    assert "--posts" in bare["candidates of another post"].not_checked
    first, second, *_ = world.posts
    fold = dict(
        zip(sheet.queries.post.tolist(), sheet.queries.fold.tolist(), strict=True)
    )
    place = next(i for i in fold if fold[i] != fold[0])
    copied = post(world.posts[place].id, *(own.text for own in first.sentences))
    posts = tuple(copied if own.id == copied.id else own for own in world.posts)
    found_there = _by_name(
        imported_leak_checks(replace(world, posts=posts), sheet.queries, [found])
    )
    (twice,) = found_there["duplicate post texts across folds"].findings
    assert twice.code == "duplicate_text"
    lists = {
        **found.lists,
        found.final: [(second.sentences[0].uid,)] * len(found.status),
    }
    foreign = _by_name(
        imported_leak_checks(world, sheet.queries, [replace(found, lists=lists)])
    )["candidates of another post"]
    assert [own.code for own in foreign.findings] == ["foreign_candidate"]


def test_what_no_file_says_is_said_to_be_unchecked_and_not_to_be_fine() -> None:
    _, sheet, found = _made()
    given = imported_leak_checks(BARE, sheet.queries, [found])
    assert sum(own.not_checked == NOT_IN_FILES for own in given) == 4
    no_folds = replace(sheet.queries, folds=(), fold=np.full(len(sheet.queries), -1))
    unfolded = imported_leak_checks(BARE, no_folds, [replace(found, lists={})])
    assert all(own.not_checked for own in unfolded)
