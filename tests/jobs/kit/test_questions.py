"""Jobs that ask one question about each row, in memory and as a real process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.kit.inputs import cells
from jobs.kit.inputs.rows import RowModel
from jobs.kit.questions import QuestionJob, QuestionSettings
from jobs.kit.testing import MemoryAnswers, table_rows
from runner.errors import DatasetError, UsageError
from runner.scorecard import Scorecard
from tests.jobs.kit.sixth_job import Treatment, Treatments
from tests.plugging import plugged
from tests.processes import siftlog

ROWS = """id,paper,text,drug,dose
a1,p1,Warfarin 5 mg daily.,warfarin,5
a2,p1,Given aspirin at 100 mg.,aspirin,100
b1,p2,They received insulin.,insulin,
b2,p2,No treatment.,,
"""


class Colour(RowModel):
    id: cells.Filled
    text: cells.Filled
    colour: cells.Filled | None = None


class Colours(QuestionJob):
    name, version, Row = "colours", "1", Colour
    question = "Which colour?"
    show, truth = ("text",), "colour"

    def read(self, text: str) -> str | None:
        return text or None

    def offline(self, texts: Mapping[str, str]) -> str:
        return texts["text"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def settings(rows: Path) -> QuestionSettings:
    return QuestionSettings(rows=rows, boot_b=50)


def test_a_prompt_shows_the_named_fields_and_never_the_truth(rows: Path) -> None:
    job = Treatments()
    dataset = job.load(settings(rows))
    held = MemoryAnswers.of_run(job, dataset, lambda _: "x").held
    prompts = [
        "".join(message.text for message in job.request(dataset, first.task).messages)
        for first, *_ in held
    ]
    texts = [row.text for row in dataset.rows.values() if isinstance(row, Treatment)]
    assert [[text in prompt for prompt in prompts] for text in texts] == [
        [i == j for j in range(4)] for i in range(4)
    ]
    assert "warfarin" not in prompts[0], "the truth is in lower case"


def test_the_truth_may_not_be_shown() -> None:
    class Leaking(Colours):
        show = ("text", "colour")

    with pytest.raises(TypeError, match="show names the truth, 'colour'"):
        Leaking()


def test_a_field_that_the_row_lacks_is_named() -> None:
    class Wrong(Colours):
        truth = "color"

    with pytest.raises(TypeError, match="Colour has no field 'color'"):
        Wrong()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id,text\na,x\na,y\n", "rows.csv row 3: id 'a' occurs twice"),
        ("id,text\n", "rows.csv: it has no rows"),
        ("id,colour\na,red\n", "text"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(DatasetError, match=sentence):
        Colours().load(settings(path))


def answered(rows: Path, replies: Mapping[str, str], replicates: int = 1) -> Scorecard:
    job = Treatments()
    dataset = job.load(settings(rows))
    answers = MemoryAnswers.of_run(
        job,
        dataset,
        lambda task: replies.get(f"{task.key}/{task.replicate}", replies.get(task.key)),
        replicates=replicates,
    )
    return job.score(dataset, answers)


def values(card: Scorecard) -> dict[str, float | None]:
    (listed,) = card.models.values()
    return {metric.path: metric.value for metric in listed}


def test_unread_replies_are_wrong_and_rows_without_truth_are_not_judged(
    rows: Path,
) -> None:
    card = answered(rows, {"a1": "warfarin", "a2": "7 drugs", "b1": "x", "b2": "y"})
    found = values(card)
    assert found["accuracy"] == pytest.approx(1 / 3)
    assert found["parse_failure_rate"] == 0.25
    assert found["accuracy~majority"] == pytest.approx(1 / 3)


def test_replicates_of_a_row_are_averaged(rows: Path) -> None:
    replies = {"a1/1": "warfarin", "a1/2": "x", "a2": "aspirin", "b1": "x"}
    found = values(answered(rows, replies, replicates=2))
    assert found["accuracy"] == pytest.approx((0.5 + 1 + 0) / 3)


def test_models_can_be_compared_and_their_labels_agree(rows: Path) -> None:
    card = answered(rows, {"a1": "warfarin", "a2": "warfarin"})
    (of,) = card.comparable.values()
    items = of["accuracy"]()
    assert dict(zip(items.items, items.first, strict=True)) == {"a1": 1.0, "a2": 0.0}
    assert list(items.clusters) == ["p1", "p1"]
    (make,) = card.labelled.values()
    assert list(make().assigned) == ["warfarin", "warfarin"]
    assert table_rows(card, "confusion")[0]["n"] == 1


def test_explain_names_the_nearest_row(rows: Path) -> None:
    job = Treatments()
    with pytest.raises(UsageError, match="There is no row 'a11'; the nearest"):
        job.explain(job.load(settings(rows)), None, ("a11",))


@pytest.mark.timeout(180)
def test_the_sixth_job_runs_scores_explains_and_imports(
    rows: Path, tmp_path: Path
) -> None:
    env = plugged(tmp_path / "installed", treatments="tests.jobs.kit.sixth_job:job")
    data = ("--rows", str(rows), "--boot-b", "50")

    def run(*words: str) -> str:
        return siftlog(*words, cwd=tmp_path, env=env).stdout

    run("run", "treatments", *data, "--run-id", "floor")
    whole = run("score", "floor", "--no-record")
    assert "treatments  4 rows, 3 with a known truth" in whole
    scores = tmp_path / "runs/floor/scores/1"
    assert "report.html" in run("report", "floor")
    assert (scores / "figures/accuracy.svg").is_file()
    assert "dose.accuracy" in (scores / "metrics.csv").read_text()
    page = run("explain", "floor", "a1")
    assert "read     warfarin: right" in page
    answers = tmp_path / "answers.csv"
    answers.write_text("id,answer\na1,warfarin\nb1,insulin\n")
    assert "Accuracy              1.000" in run(
        "import", "treatments", str(answers), *data, "--run-id", "given"
    )
    assert "accuracy" in run("compare", "floor", "given")
