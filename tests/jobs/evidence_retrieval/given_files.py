"""Files of work made elsewhere, written, imported and looked at as a sheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.evidence_retrieval.consistency import check
from jobs.evidence_retrieval.import_predictions import imported_scoring_input
from jobs.evidence_retrieval.importer import importer
from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.queries import ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.testing import MemoryAnswers
from runner.job import ImportedAnswer
from runner.scorecard import Finding
from tests.jobs.kit.metrics.set_a import CRITERIA, SetA

Rows = Sequence[Mapping[str, object]]

SAMPLE = "evidence_pipeline/published/sample_per_query.csv"
SHORT_LISTS = {"k_values": (1, 3)}
"""Cut-offs that lists of four sentences reach."""

COMMON = {"has_evidence_gold": 0, "n_candidates": 4, "gold_sent_uids": ""}

CLEAN: Rows = (
    {
        **COMMON,
        "fold_id": 0,
        "post_id": "p_1",
        "criterion_id": "A.1",
        "p4_prob_raw": 0.8,
        "p4_prob_calibrated": 0.9,
        "has_evidence_gold": 1,
        "state": "POS",
        "tau_neg": 0.1,
        "tau_pos": 0.8,
        "selected_k": 2,
        "evidence_recall_at_k": 1.0,
        "evidence_precision_at_k": 0.5,
        "mrr": 1.0,
        "screening_correct": 1,
        "alert_correct": 1,
        "gold_sent_uids": "p_1_0",
    },
    {
        **COMMON,
        "fold_id": 0,
        "post_id": "p_1",
        "criterion_id": "A.2",
        "p4_prob_raw": 0.1,
        "p4_prob_calibrated": 0.05,
        "state": "NEG",
        "tau_neg": 0.1,
        "tau_pos": 0.8,
        "selected_k": 0,
        "screening_correct": 1,
        "alert_correct": 1,
    },
    {
        **COMMON,
        "fold_id": 1,
        "post_id": "p",
        "criterion_id": "A.1",
        "p4_prob_raw": 0.5,
        "p4_prob_calibrated": 0.5,
        "has_evidence_gold": 1,
        "state": "UNCERTAIN",
        "tau_neg": 0.12,
        "tau_pos": 0.81,
        "selected_k": 3,
        "evidence_recall_at_k": 0.5,
        "evidence_precision_at_k": 0.3333333333333333,
        "mrr": 0.5,
        "screening_correct": 1,
        "alert_correct": 0,
        "gold_sent_uids": "p_1|p_3",
    },
    {
        **COMMON,
        "fold_id": 1,
        "post_id": "p",
        "criterion_id": "A.2",
        "p4_prob_raw": 0.2,
        "p4_prob_calibrated": 0.2,
        "state": "UNCERTAIN",
        "tau_neg": 0.12,
        "tau_pos": 0.81,
        "selected_k": 2,
        "screening_correct": 0,
        "alert_correct": 1,
    },
)
"""Format L without a contradiction; posts p_1 and p, whose sentence p_1 is no post."""


def ranked(rows: Rows) -> Rows:
    """The whole pool of each query in document order."""
    return [
        {
            "post_id": row["post_id"],
            "criterion_id": row["criterion_id"],
            "sent_uids": [f"{row['post_id']}_{n}" for n in range(4)],
        }
        for row in rows
    ]


def changed(place: int, **cells: object) -> Rows:
    """The clean rows with some cells of one row changed."""
    return [{**row, **(cells if i == place else {})} for i, row in enumerate(CLEAN)]


def write_csv(path: Path, rows: Rows, columns: Sequence[str] | None = None) -> Path:
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read(
    *files: Path, settings: EvidenceSettings | None = None, **how: Any
) -> list[ImportedAnswer]:
    chosen: dict[str, Any] = {"model": None, "form": None, "replicates": {}, **how}
    return list(importer.read(files, settings or EvidenceSettings(), **chosen))


def imported(*files: Path, model: str | None = None, **values: Any) -> ScoringInput:
    """The sheet of a run that imported the files."""
    settings = EvidenceSettings.model_validate(values)
    answers = MemoryAnswers.of_import(read(*files, settings=settings, model=model))
    return imported_scoring_input(load(settings), answers)


def found(sheet: ScoringInput, **values: Any) -> list[Finding]:
    """What the checks find in the rows of a sheet."""
    return list(check(sheet, EvidenceSettings.model_validate(values), {}))


def codes(findings: Sequence[Finding]) -> dict[str, int]:
    """How many rows break each rule, over all columns."""
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.code] = counts.get(finding.code, 0) + finding.n
    return counts


def set_a_rows(a: SetA) -> Rows:
    """Set A in format L, with its second model and gold."""
    return [
        {
            "fold_id": a.fold[i],
            "post_id": a.post[i],
            "criterion_id": f"A.{i % CRITERIA + 1}",
            "p4_prob_calibrated": float(a.p[i]),
            "prob_second": float(a.p2[i]),
            "has_evidence_gold": int(a.y[i]),
            "tau_neg": float(a.tau_neg[i]),
            "tau_pos": 0.68,
            "n_candidates": int(a.pool[i]),
            "gold_sent_uids": "|".join(a.gold(i)),
        }
        for i in range(len(a.index))
    ]


def set_a_rankings(a: SetA) -> Rows:
    return [
        {
            "post_id": a.post[i],
            "criterion_id": f"A.{i % CRITERIA + 1}",
            "sent_uids": a.ranked(i),
        }
        for i in range(len(a.index))
    ]
