"""Files that a scoring writes can be imported, and say what they said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.queries import Predictions, ScoringInput
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.testing import artifact_texts, table_rows
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    imported,
    ranked,
    write_csv,
    write_jsonl,
)


@pytest.fixture
def first(tmp_path: Path) -> ScoringInput:
    """Clean predictions with an unjudged and an unscored query."""
    rows = [dict(row) for row in CLEAN]
    rows[1] |= {"has_evidence_gold": "", "gold_sent_uids": ""}
    rows[3] |= {"p4_prob_calibrated": ""}
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    return imported(write_csv(tmp_path / "l.csv", rows), lists)


@pytest.fixture
def files(tmp_path: Path, first: ScoringInput) -> dict[str, Path]:
    """What its scoring writes."""
    card = score(load(EvidenceSettings(boot_b=0)), first)
    folder = tmp_path / "scores"
    folder.mkdir()
    paths = {name: folder / name for name in ("qrels.txt", "rankings.jsonl")}
    paths["run.txt"] = folder / "run.txt"
    texts = artifact_texts(card)
    for name, path in paths.items():
        path.write_text(texts["run.ranking.txt" if name == "run.txt" else name])
    for name in ("per_query", "per_query_lists"):
        rows = [
            {k: "" if cell is None else cell for k, cell in row.items()}
            for row in table_rows(card, name)
        ]
        paths[name] = write_csv(folder / f"{name}.csv", rows)
    return paths


def same_lists(one: Predictions, other: Predictions) -> bool:
    def columns(of: Predictions) -> list[list[Sequence[str]]]:
        return [list(column) for column in of.lists.values()]

    return columns(one) == columns(other)


def test_predictions_and_rankings_come_back(
    first: ScoringInput, files: dict[str, Path]
) -> None:
    again = imported(files["per_query"], files["rankings.jsonl"])
    (one,), (other,) = first.predictions, again.predictions
    for name in ("prob", "prob_raw", "tau_neg", "tau_pos", "k", "state"):
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name))
    assert list(other.status) == list(one.status)
    assert same_lists(one, other)
    np.testing.assert_array_equal(again.queries.y, first.queries.y)
    assert again.queries.gold == first.queries.gold
    assert again.findings == ()


def test_lists_come_back_in_both_forms(
    first: ScoringInput, files: dict[str, Path]
) -> None:
    (one,) = first.predictions
    for again in (
        imported(files["per_query_lists"]),
        imported(files["run.txt"], files["qrels.txt"], escape_ids=True),
    ):
        assert same_lists(one, again.predictions[0])
        assert again.queries.gold == first.queries.gold
