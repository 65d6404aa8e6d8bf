"""People answer the questions about papers, and a run is scored against them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.labels.source import label_source
from jobs.paper_investigation.labelling import LETTER, P_VALUE, SIGNIFICANCE
from store.runs import RunFolder
from tests.commands import command

FAST = ("--no-report", "--boot-b", "0")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: object) -> None:
    done = command("run", "paper-investigation", "--run-id", "r", *FAST, *words)
    assert done.code == 0, done.err


def imported(*rows: tuple[str, str, str]) -> None:
    lines = [f'{item},{field},"{value}"' for item, field, value in rows]
    Path("labels.csv").write_text("\n".join(["item,field,value", *lines]) + "\n")
    assert command("labels", "import", "r", "labels.csv", "--author", "ann").code == 0


def scored(*words: object) -> dict[str, Any]:
    """The metrics of the only model."""
    done = command("score", "r", "--json", *FAST, *words)
    assert done.code == 0, done.err
    card = json.loads(done.out)
    assert (card["missing"], card["stale"]) == (0, 0)
    (model,) = card["models"].values()
    metrics: dict[str, Any] = model["metrics"]
    return metrics


def keys() -> list[tuple[str, str, str]]:
    """The published keys of all questions that people are asked."""
    rows = []
    with label_source(RunFolder(Path("runs/r"))) as source:
        for item in source.items:
            pmcid, _, key = item.partition("/")
            question = source.dataset.question(pmcid, key)
            if question.is_mcq:
                rows.append((item, LETTER, question.correct))
            else:
                rows.append((item, P_VALUE, question.expected_p_value))
                rows.append((item, SIGNIFICANCE, question.expected_significance))
    return rows


def test_labels_that_are_the_published_keys_give_the_published_metrics() -> None:
    run("--limit", 2)
    imported(*keys())
    assert scored("--gold", "labels") == scored()


@pytest.mark.parametrize("words", [(), ("--batch-questions",), ("--mode", "questions")])
def test_questions_without_a_label_are_not_judged(words: tuple[str, ...]) -> None:
    run(*words)
    first = next(row for row in keys() if row[1] == LETTER)
    study = next(row for row in keys() if row[1] == P_VALUE)
    imported(first, study)  # without a significance, it is no answer
    metrics = scored("--gold", "labels")
    assert metrics["pipeline.TOTAL.accuracy"]["n"] == 1
    if "--mode" not in words:
        assert metrics["papers_scored"]["value"] < scored()["papers_scored"]["value"]
