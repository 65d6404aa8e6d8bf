"""The text that a scoring ends with: as wide as a small terminal, and honest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.leakage import imported_leak_checks
from jobs.evidence_retrieval.predictions.scoring_input import predict
from jobs.evidence_retrieval.queries import ScoringInput
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.scorecard import Finding
from store.document import fitted_lines
from tests.jobs.evidence_retrieval.world import answers, dataset


@pytest.fixture(scope="module")
def world() -> EvidenceDataset:
    return dataset(posts=30, boot_b=20)


@pytest.fixture(scope="module")
def sheet(world: EvidenceDataset) -> ScoringInput:
    return predict(world, answers(world))


def test_rows_stay_rows_in_eighty_columns(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    text = score(world, sheet).summary
    lines = list(fitted_lines(text, 80))
    assert max(map(len, text.splitlines())) > 80
    assert max(map(len, lines)) <= 80
    baselines = lines.index("Over trivial baselines:")
    assert not [line for line in lines[:baselines] if line.startswith(" ")]
    rows = [line for line in lines if line.startswith("AUROC ")]
    assert len(rows) == 2  # once with its numbers, once with subset and target
    assert "[" in rows[0]
    assert ">= 0.85 " in rows[1]


def test_differences_are_a_table_and_an_only_model_is_not_named_in_it(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    lines = score(world, sheet).summary.splitlines()
    (head,) = (n for n, line in enumerate(lines) if line.startswith("of "))
    assert lines[head + 1].split()[:3] == ["reranked", "retriever", "ndcg@10"]


def test_one_of_anything_is_not_told_in_the_plural(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    odd = Finding(code="odd", severity="warn", where="here", message="It is odd.")
    once = replace(sheet, findings=(odd,), leak_checks=sheet.leak_checks[:1])
    (counts,) = (
        line
        for line in score(world, once).summary.splitlines()
        if line.startswith("findings")
    )
    assert counts == "findings  0 errors  1 warning    leakage  0 in 1 of 1 checks"


def test_leakage_that_nobody_looked_for_is_not_zero(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    bare = EvidenceDataset(settings=EvidenceSettings())
    found = replace(sheet.predictions[-1], lists={}, tau_neg=None, tau_pos=None)
    checks = imported_leak_checks(bare, sheet.queries, [found])
    text = score(world, replace(sheet, leak_checks=checks)).summary
    assert "leakage  not checked" in text


def test_every_check_is_in_a_table_with_what_it_found(
    world: EvidenceDataset, sheet: ScoringInput
) -> None:
    (table,) = (own for own in score(world, sheet).tables if own.name == "checks")
    assert table.columns == ("kind", "check", "findings", "not_checked")
    found = {(kind, name): (n, why) for kind, name, n, why in table.rows}
    assert found["leakage", "thresholds chosen on test posts"] == (0, "")
    deep = "predictions under scrambled, removed and shuffled gold"
    assert found["leakage", deep] == (None, "needs --deep-checks")
    assert found["consistency", "state_contradicts_thresholds"] == (0, "")
