"""People decide on the papers that a search found, and a run is scored against them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.labels.source import label_source
from jobs.review_benchmark.inputs import SAMPLE
from store.runs import RunFolder
from tests.commands import command

QUESTION = ("--question", "Does music help sleep?", "--database", SAMPLE / "papers.db")
FAST = ("--no-report", "--boot-b", "0")


@pytest.fixture
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The candidates of a question that has no published answer."""
    monkeypatch.chdir(tmp_path)
    words = ("--run-id", "r", *FAST, "--max-candidates", 6)
    done = command("run", "review-benchmark", *QUESTION, *words)
    assert done.code == 0, done.err
    with label_source(RunFolder(Path("runs/r"))) as source:
        return source.items


def labelled(*rows: tuple[str, str]) -> None:
    lines = [f"{item},{value}" for item, value in rows]
    Path("labels.csv").write_text("\n".join(["item,value", *lines]) + "\n")
    assert command("labels", "import", "r", "labels.csv", "--author", "ann").code == 0


def scored() -> dict[str, Any]:
    done = command("score", "r", "--gold", "labels", "--json", *FAST)
    assert done.code == 0, done.err
    (model,) = json.loads(done.out)["models"].values()
    values: dict[str, Any] = model["metrics"]
    return {path: metric["value"] for path, metric in values.items()}


def test_a_question_of_ones_own_gets_its_truth_from_people(
    items: tuple[str, ...],
) -> None:
    assert len(items) == 6
    labelled(*((item, "include") for item in items[:5]))
    done = command("score", "r", "--gold", "labels", *FAST)
    assert "No item of r has a gold value in each field that counts" in done.err
    with label_source(RunFolder(Path("runs/r"))) as source:
        replied = {
            about.item: replies[0].value for about, replies in source.replies.items()
        }
    labelled(*((item, str(replied[item])) for item in items))
    values = scored()
    assert (values["macro.recall"], values["macro.precision"]) == (1, 1)
    included = [item for item in items if replied[item] == "include"]
    labelled((included[0], "exclude"))
    assert scored()["macro.precision"] == pytest.approx(1 - 1 / len(included))
