"""Metrics and tables that cannot be: each is found, and a clean scorecard has none.

The sample's predictions with one planted violation a check, and what is found.

`sample/violations.csv` holds 26 predictions: nine posts in three folds, three criteria.
Rows are as a gate would write them (thresholds 0.1 and 0.7, K 8 for POS, 10 for
UNCERTAIN, 0 for NEG; one gold sentence, found on rank 2) but for what stands in
`PLANTED`, by query, and for two things that belong to no single row: `log_9/C.3` is
missing, and the first rows of all folds have the same thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from jobs.evidence_retrieval.consistency import check
from jobs.evidence_retrieval.import_predictions import imported_scoring_input
from jobs.evidence_retrieval.import_records import read_prediction
from jobs.evidence_retrieval.importer import importer
from jobs.evidence_retrieval.inputs import SAMPLE, load
from jobs.evidence_retrieval.queries import ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.testing import MemoryAnswers
from runner.job import Answer
from runner.messages import Reply
from runner.scorecard import Finding, Metric, Table
from tests.commands import siftlog
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SHORT_LISTS,
    imported,
    write_csv,
)
from tests.replacing import replace

STATES = "states from p and the row's thresholds, edge=lt"

METRICS = (
    Metric(path="n", value=4, n=4, definition="count@1(queries)"),
    Metric(path="positives", value=2, n=2, definition="count@1(with evidence)"),
    Metric(path="negatives", value=2, n=2, definition="count@1(without)"),
    Metric(path="fold.0.positives", value=1, n=1, definition="count@1(with evidence)"),
    Metric(path="fold.1.positives", value=1, n=1, definition="count@1(with evidence)"),
    Metric(path="auprc", value=1.0, n=4, definition="auprc@1(average precision)"),
    Metric(
        path="at_tau.sensitivity", value=0.5, n=4, definition="sensitivity@1(p >= 0.5)"
    ),
    Metric(
        path="screening_sensitivity",
        value=0.5,
        n=4,
        n_defined=2,
        definition=f"screening_sensitivity@1({STATES})",
    ),
    Metric(
        path="screening_fn_per_1000",
        value=250.0,
        n=4,
        definition=f"screening_fn_per_1000@1(per 1000 queries; {STATES})",
    ),
    Metric(
        path="evidence_recall@K",
        value=0.75,
        n=2,
        definition="evidence_recall@1(K=selected by query)",
    ),
    Metric(
        path="recall@1", value=0.25, n=2, definition="recall@1(recall@1; ap over gold)"
    ),
    Metric(path="map@1", value=0.25, n=2, definition="map@1(map@1; ap over gold)"),
    Metric(path="hit@10", value=1.0, n=2, definition="hit@1(hit@10)"),
    Metric(path="ndcg@10", value=0.9, n=2, definition="ndcg@1(ndcg@10)"),
)

COLUMNS = ("metric", "value", "n", "subset", "definition")
GRID = Table(
    name="threshold_grid",
    columns=("tau_neg", "tau_pos", "neg_rate", "deployed"),
    rows=((0.1, 0.8, 0.25, True), (0.2, 0.8, 0.25, False)),
)
OVERALL = Table(
    name="overall",
    columns=COLUMNS,
    rows=(("ndcg@10", 0.9, 2, "has_evidence", "ndcg@1"),),
)


@pytest.fixture
def sheet(tmp_path: Path) -> ScoringInput:
    return imported(write_csv(tmp_path / "l.csv", CLEAN))


def findings(
    sheet: ScoringInput, metrics: Sequence[Metric] = METRICS, *tables: Table
) -> list[Finding]:
    settings = EvidenceSettings.model_validate(SHORT_LISTS)
    return list(check(sheet, settings, {"lab/one": metrics}, tables))


def with_changed(of: str, /, **fields: object) -> list[Metric]:
    return [
        replace(metric, **fields) if metric.path == of else metric  # type: ignore[arg-type]
        for metric in METRICS
    ]


def test_clean_scorecard_has_no_finding(sheet: ScoringInput) -> None:
    assert findings(sheet, METRICS, OVERALL, GRID) == []


@pytest.mark.parametrize(
    ("path", "fields", "code", "values"),
    [
        ("fold.1.positives", {"value": 2}, "parts_do_not_sum", ("is 2", "up to 3")),
        ("negatives", {"value": 3}, "counts_do_not_add_up", ("is 5", "n is 4")),
        (
            "screening_fn_per_1000",
            {"value": 500.0},
            "fn_per_1000_positives",
            ("500.0", "250.0"),
        ),
        ("map@1", {"value": 0.5}, "map_above_recall", ("0.5", "0.25")),
        ("ndcg@10", {"value": 1.01}, "ndcg_above_hit", ("1.01", "1.0")),
        (
            "auprc",
            {"lo": 0.2, "hi": 0.9},
            "outside_interval",
            ("1.0", "[0.2, 0.9]"),
        ),
        (
            "auprc",
            {"note": "chance level 0.5"},
            "auprc_against_half",
            ("1.0", "0.5"),
        ),
        (
            "at_tau.sensitivity",
            {"definition": "sensitivity@1"},
            "threshold_unnamed",
            ("0.5", "'sensitivity@1'"),
        ),
        (
            "evidence_recall@K",
            {"path": "evidence_recall@10"},
            "fixed_name_for_dynamic_k",
            ("evidence_recall@10", "selected by query"),
        ),
    ],
)
def test_planted_figure_is_found_with_both_values(
    sheet: ScoringInput,
    path: str,
    fields: dict[str, object],
    code: str,
    values: tuple[str, str],
) -> None:
    found = [f for f in findings(sheet, with_changed(path, **fields)) if f.code == code]
    assert len(found) == 1
    assert found[0].where.startswith("lab/one ")
    assert all(value in found[0].message for value in values)


def test_one_metric_with_two_values_in_two_tables_is_found(
    sheet: ScoringInput,
) -> None:
    other = replace(
        OVERALL, name="summary", rows=(("ndcg@10", 0.8, 2, "has_evidence", "ndcg@1"),)
    )
    (found,) = findings(sheet, METRICS, OVERALL, other)
    assert found.code == "two_values"
    assert "0.8 in summary and 0.9 in overall" in found.message


def test_headline_of_the_ablation_is_the_overall_value(sheet: ScoringInput) -> None:
    ablation = Table(
        name="ablation",
        columns=("config", *COLUMNS, "p_holm"),
        rows=(
            ("first stage", "ndcg@10", 0.5, 2, "has_evidence", "ndcg@1", None),
            ("given", "ndcg@10", 0.8, 2, "has_evidence", "ndcg@1", 0.01),
        ),
    )
    (found,) = findings(sheet, METRICS, OVERALL, ablation)
    assert (found.code, found.where) == ("two_values", "ablation ndcg@10")


def test_two_values_of_two_subsets_are_no_contradiction(sheet: ScoringInput) -> None:
    other = replace(
        OVERALL, name="summary", rows=(("ndcg@10", 0.1, 4, "all_queries", "ndcg@1"),)
    )
    assert findings(sheet, METRICS, OVERALL, other) == []


def test_grid_of_thresholds_must_mark_the_deployed_pair(sheet: ScoringInput) -> None:
    rows = tuple((*cells[:3], False) for cells in GRID.rows)
    (found,) = findings(sheet, METRICS, replace(GRID, rows=rows))
    assert (found.code, found.where) == ("no_deployed_threshold", "threshold_grid")


def test_a_pair_that_is_deployed_for_the_whole_is_so_for_its_folds(
    sheet: ScoringInput,
) -> None:
    table = Table(
        name="threshold_grid",
        columns=("fold", "tau_neg", "tau_pos", "deployed"),
        rows=(
            ("0", 0.1, 0.8, False),
            ("0", 0.2, 0.8, False),
            (None, "by fold", "by fold", True),
        ),
    )
    assert findings(sheet, METRICS, table) == []


def test_one_pair_of_thresholds_a_fold_needs_no_mark(sheet: ScoringInput) -> None:
    table = Table(
        name="fold_thresholds",
        columns=("fold", "tau_neg", "tau_pos"),
        rows=(("0", 0.1, 0.8), ("1", 0.2, 0.8)),
    )
    assert findings(sheet, METRICS, table) == []


def test_table_that_sets_auprc_beside_a_half_is_found(sheet: ScoringInput) -> None:
    table = Table(
        name="gate",
        columns=("metric", "value", "chance"),
        rows=(("auroc", 0.9, 0.5), ("auprc", 0.4, 0.5)),
    )
    (found,) = findings(sheet, METRICS, table)
    assert (found.code, found.where) == ("auprc_against_half", "gate auprc")


def test_dynamic_k_is_not_printed_as_10_in_a_table_either(sheet: ScoringInput) -> None:
    table = replace(
        OVERALL, rows=(("evidence_recall@10", 0.7, 2, "", "K=selected by query"),)
    )
    (found,) = findings(sheet, METRICS, table)
    assert found.code == "fixed_name_for_dynamic_k"


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
