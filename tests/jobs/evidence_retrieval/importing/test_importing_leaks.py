"""What leaks can be looked for in work made elsewhere, and what is said of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.leakage import NOT_IN_FILES, imported_leak_checks
from jobs.evidence_retrieval.predictions.gate import targets_of, thresholds
from jobs.evidence_retrieval.predictions.scoring_input import predict
from jobs.evidence_retrieval.queries import LeakCheck, Predictions, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from tests.jobs.evidence_retrieval.world import answers, dataset, post

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
        best = thresholds(
            queries.y[own] == 1, found.prob[own], targets_of(BARE.settings)
        )
        tau_neg[own] = best.tau_neg
    copied = replace(found, tau_neg=tau_neg)
    planted = _by_name(imported_leak_checks(BARE, queries, [copied]))[name]
    assert [own.code for own in planted.findings] == ["threshold_from_test"]
    silent = replace(found, tau_neg=None, tau_pos=None)
    unknown = _by_name(imported_leak_checks(BARE, queries, [silent]))[name]
    assert unknown.not_checked == "no threshold lies above 0 and below infinity"


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
