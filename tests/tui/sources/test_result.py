"""What a scoring found, read from its folder, whole, partial or damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.runs import RunFolder
from tests.tui.sights import HOSTILE
from tui.sources.result import ResultReader, ShareOf, read_result

CARD: dict[str, Any] = {
    "job": "sample-job",
    "models": {
        model: {
            "metrics": {
                "score": {"name": "Score", "value": 0.5, "n": 8, "lo": 0.4, "hi": 0.6},
                "all.grounded": {"value": 0.75, "n": 40, "lo": None, "hi": None},
                "detail": {"value": 1, "n": 1, "lo": None, "hi": None},
            }
        }
        for model in ("m-large", "m-small")
    },
    "settings": {"level": 0.95},
    "findings": [
        {"severity": "info", "where": "papers", "message": "a note", "n": 2},
        {"severity": "error", "where": "gold", "message": HOSTILE, "n": 1},
        {"severity": "warn", "where": "m-large", "message": "many refused", "n": 6},
    ],
}
COURSE = {"partial": False, "tasks": {"completed": 11, "failed": 1}}
RESULT = {"text": "", "headlines": ["score", "absent"]}


def scored(
    folder: Path,
    *,
    card: Any = CARD,
    course: Any = COURSE,
    result: Any = RESULT,
    number: int = 1,
) -> Path:
    """A run's folder of scorings."""
    scores = folder / "scores"
    target = scores / str(number)
    target.mkdir(parents=True)
    (target / "scorecard.json").write_text(json.dumps(card), "utf-8")
    (target / "operations.json").write_text(json.dumps(course), "utf-8")
    (target / "result.json").write_text(json.dumps(result), "utf-8")
    return scores


def test_headlines_findings_and_grounding_are_read(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    (scores / "1" / "report.html").touch()
    found = read_result(scores, 1)
    assert found is not None
    assert found.headline is not None
    assert [(m.path, m.model, m.name) for m in found.headline.metrics] == [
        ("score", "m-large", "Score"),
        ("score", "m-small", "Score"),
    ]
    assert (found.headline.level, found.headline.ended) == (0.95, 12)
    assert [finding.severity for finding in found.findings] == ["error", "warn", "info"]
    assert [finding.severity for finding in found.notable] == ["error", "warn"]
    assert found.ungrounded["m-large"] == ShareOf(value=0.25, n=40)
    assert found.has_report
    assert found.answers is None


@pytest.mark.parametrize("result", [{}, {"text": "", "headlines": []}, [], "{"])
def test_headlines_of_an_older_scoring_are_in_its_operations(
    tmp_path: Path, result: Any
) -> None:
    course = COURSE | {"headlines": ["score"]}
    found = read_result(scored(tmp_path, course=course, result=result), 1)
    assert found is not None
    assert found.headline is not None
    assert {metric.path for metric in found.headline.metrics} == {"score"}


def test_shares_of_classes_are_joined_by_their_numbers(tmp_path: Path) -> None:
    metrics = {
        "grounding.predicted.rsID": {"value": 1.0, "n": 30},
        "grounding.predicted.HLA": {"value": 0.0, "n": 10},
        "grounding.truth.HLA": {"value": 0.0, "n": 10},
    }
    card = {"models": {"m": {"metrics": metrics}}}
    found = read_result(scored(tmp_path, card=card), 1)
    assert found is not None
    assert found.headline is None
    assert found.ungrounded == {"m": ShareOf(value=0.25, n=40)}


def test_answers_are_shown_where_no_gold_values_measure_them(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    answers = scores / "1" / "answers.csv"
    answers.write_text(
        "id,model,dose,dose_quote,dose_unparsed,error\n"
        'p1,m,900,"said, ""900""",,\n'
        "p2,m\n",
        "utf-8",
    )
    found = read_result(scores, 1)
    assert found is not None
    assert found.answers is not None
    assert found.answers.columns == ("id", "model", "dose")
    assert found.answers.rows == (("p1", "m", "900"), ("p2", "m", ""))
    answers.write_text("id,model,dose,dose_unparsed,dose_gold\np1,m,1,,2\n", "utf-8")
    again = read_result(scores, 1)
    assert again is not None
    assert again.answers is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"models": 7}', '{"models": {"m": {}}}']
)
def test_a_damaged_scoring_is_none_and_no_error(tmp_path: Path, text: str) -> None:
    scores = scored(tmp_path)
    (scores / "1" / "scorecard.json").write_text(text, "utf-8")
    assert read_result(scores, 1) is None
    assert read_result(scores, 2) is None


def test_a_scoring_is_read_once_in_a_thread(tmp_path: Path) -> None:
    scores = scored(tmp_path)
    reader = ResultReader(RunFolder(tmp_path))
    assert reader.poll(None) is None
    reader.poll(1)
    reader.join()
    found = reader.poll(1)
    assert found is not None
    (scores / "1" / "scorecard.json").unlink()
    assert reader.poll(1) is found
    reader.poll(2)
    reader.join()
    assert reader.poll(2) is None
