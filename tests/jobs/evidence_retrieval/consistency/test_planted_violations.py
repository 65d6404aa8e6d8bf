"""The sample's predictions with one planted violation a check, and what is found.

`sample/violations.csv` holds 26 predictions: nine posts in three folds, three criteria.
Rows are as a gate would write them (thresholds 0.1 and 0.7, K 8 for POS, 10 for
UNCERTAIN, 0 for NEG; one gold sentence, found on rank 2) but for what stands in
`PLANTED`, by query, and for two things that belong to no single row: `log_9/C.3` is
missing, and the first rows of all folds have the same thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.evidence_retrieval.consistency import check
from jobs.evidence_retrieval.import_predictions import imported_scoring_input
from jobs.evidence_retrieval.import_records import read_prediction
from jobs.evidence_retrieval.importer import importer
from jobs.evidence_retrieval.inputs import SAMPLE, load
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.testing import MemoryAnswers
from runner.job import Answer
from runner.messages import Reply
from runner.scorecard import Finding
from tests.processes import siftlog

PLANTED: Mapping[str, tuple[str, str]] = {
    # a recall of 0.4 with two gold sentences: 0.8 of a sentence
    "log_1/C.1": ("recall_no_share_of_gold", "error"),
    # NEG, yet three sentences are selected
    "log_1/C.2": ("neg_with_k", "warn"),
    # UNCERTAIN, yet none is
    "log_1/C.3": ("shown_without_k", "warn"),
    # p 0.4536 between the thresholds, called POS
    "log_2/C.1": ("state_contradicts_thresholds", "error"),
    # a reciprocal rank of nothing
    "log_2/C.2": ("filled_on_negatives", "warn"),
    # NEG without evidence, called wrong by screening_correct
    "log_2/C.3": ("decision_wrongly_judged", "error"),
    # 25 sentences of 20
    "log_3/C.1": ("k_above_pool", "warn"),
    # all evidence within 8 sentences, the first of it on rank 20; log_4/C.2 has none
    # within 8, and the first on rank 2
    "log_3/C.2": ("rank_contradicts_recall", "error"),
    # no evidence, and a gold sentence
    "log_3/C.3": ("negative_with_gold", "error"),
    # evidence, and no gold sentence
    "log_5/C.1": ("positive_without_gold", "warn"),
    # NEG without evidence, called wrong by alert_correct
    "log_5/C.2": ("decision_wrongly_judged", "error"),
    # 1.12 sentences of 8; 0.13 would be one of them, rounded
    "log_6/C.1": ("precision_no_share_of_k", "error"),
    # calibrated below a row with a smaller raw probability
    "log_6/C.2": ("calibration_not_monotone", "error"),
    # the first hit on rank 2.5
    "log_7/C.2": ("mrr_no_reciprocal", "error"),
    # 1/3 in three digits
    "log_8/C.1": ("mrr_rounded", "info"),
    # 0.72 where the fold has 0.7
    "log_8/C.2": ("thresholds_vary_in_fold", "error"),
    # the post whose third criterion is missing
    "log_9/C.1": ("incomplete_posts", "warn"),
}


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Finding]:
    """Findings by the query of their example and by code."""
    dataset = load(EvidenceSettings.model_validate({}))
    answers = MemoryAnswers.of_import(
        importer.read(
            (SAMPLE / "violations.csv",),
            dataset.settings,
            model=None,
            form=None,
            replicates={},
        )
    )

    def parsed(answer: Answer) -> Answer:
        assert isinstance(answer.reply, Reply)
        return replace(
            answer, parsed=read_prediction(dataset, answer.task, answer.reply)
        )

    held = tuple(tuple(map(parsed, family)) for family in answers.held)
    sheet = imported_scoring_input(dataset, replace(answers, held=held))
    findings = (*sheet.findings, *check(sheet, dataset.settings, {}))
    return {(each.example.partition(":")[0], each.code): each for each in findings}


@pytest.mark.parametrize("query", PLANTED)
def test_each_planted_violation_is_found_in_its_row(
    found: dict[tuple[str, str], Finding], query: str
) -> None:
    code, severity = PLANTED[query]
    finding = found[query, code]
    assert finding.severity == severity
    assert finding.n == (2 if code == "rank_contradicts_recall" else 1)


def test_besides_only_the_thresholds_are_found_to_be_the_same_in_all_folds(
    found: dict[tuple[str, str], Finding],
) -> None:
    planted = {(query, code) for query, (code, _) in PLANTED.items()}
    (other,) = found.keys() - planted
    assert other == ("log_1/C.1", "same_thresholds_in_all_folds")
    assert found[other].severity == "warn"


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--strict",), 6)])
def test_an_import_ends_with_6_where_it_is_asked_to(
    tmp_path: Path, flags: tuple[str, ...], code: int
) -> None:
    words = ("import", "evidence-retrieval", SAMPLE / "violations.csv", "--boot-b=0")
    done = siftlog(*words, *flags, cwd=tmp_path, check=False)
    assert done.returncode == code, done.stderr
    assert ("findings are errors: " in done.stderr) == bool(code)
