"""People label the evidence of posts, and a run is scored against it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of the sample, and labels of two posts, of one in part."""
    monkeypatch.chdir(tmp_path)
    words = ("--run-id", "e", "--no-report", "--boot-b", "0")
    assert command("run", "evidence-retrieval", *words).code == 0
    _import("A.1,3", "A.2,4", "A.3,6", "A.10,none")
    return tmp_path


def _import(*rows: str, post: str = "post_01") -> None:
    lines = [
        f'{post},{row.partition(",")[0]},"{row.partition(",")[2]}"' for row in rows
    ]
    Path("labels.csv").write_text("\n".join(["item,field,value", *lines]) + "\n")
    assert command("labels", "import", "e", "labels.csv", "--author", "ann").code == 0


def _scored(*words: str) -> dict[str, object]:
    done = command(
        "score", "e", "--gold", "labels", "--no-report", "--json", "--boot-b=0", *words
    )
    assert done.code == 0, done.err
    card: dict[str, object] = json.loads(done.out)
    return card


def _positives(card: dict[str, object]) -> int:
    """Queries with evidence: those that have a recall."""
    (model,) = json.loads(json.dumps(card["models"])).values()
    n: int = model["metrics"]["recall@10"]["n"]
    return n


@pytest.mark.usefixtures("runs")
def test_a_post_counts_once_each_criterion_has_a_value() -> None:
    _import("A.1,2", post="post_02")
    assert _positives(_scored()) == 3
    _import("A.2,none", "A.3,none", "A.10,1 2", post="post_02")
    assert _positives(_scored()) == 5


@pytest.mark.usefixtures("runs")
def test_a_changed_label_is_the_cause_of_another_score() -> None:
    before = _scored()
    _import("A.10,2, 5")
    after = _scored()
    assert (_positives(before), _positives(after)) == (3, 4)
    difference = command("diff", "e", "--json").out
    assert '"kind": "label"' in difference


@pytest.mark.usefixtures("runs")
def test_what_is_no_number_of_a_sentence_is_a_sentence() -> None:
    _import("A.1,99")
    done = command("score", "e", "--gold", "labels", "--no-report")
    assert done.code != 0
    assert (
        "The label of post_01/A.1 is '99': label it again with numbers of its"
        in done.err
    )


@pytest.mark.usefixtures("runs")
def test_models_labels_are_their_relevant_sentences() -> None:
    done = command("estimate-quality", "e", "--json")
    assert done.code == 0, done.err
    fields = json.loads(done.out)["fields"]
    assert [field["field"] for field in fields] == ["A.1", "A.2", "A.3", "A.10"]
