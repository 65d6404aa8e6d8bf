"""A file of decisions: what is accepted, and which row is to blame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.kit.testing import MemoryAnswers
from jobs.screening.decisions import UNPARSED, ScreeningPredictions, screened_records
from jobs.screening.importer import UNREAD, importer
from jobs.screening.inputs import RECORDS, ScreeningDataset, load
from jobs.screening.parsing import parse_screen
from jobs.screening.predictions import collect_predictions
from jobs.screening.replies import read_answers
from jobs.screening.score import score
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer
from runner.messages import ParseFailure
from tests.csv_files import write_csv
from tests.jobs.screening.told_decisions import COLUMNS, imported

GOOD: Mapping[str, object] = {
    "review_pmid": "7",
    "paper_pmid": "01",
    "label": 1,
    "decision": "include",
    "confidence": 0.5,
}


def gathered(dataset: ScreeningDataset, answers: MemoryAnswers) -> ScreeningPredictions:
    columns = read_answers(answers)
    return collect_predictions(dataset, columns, screened_records(dataset, columns))


def a_set(folder: Path) -> Path:
    """A folder as prepare writes it: one review, two papers."""
    write_csv(
        folder / "validation_set.csv",
        RECORDS,
        [
            ("7", "01", 1, "included", 0, "", "", 0, 0, ""),
            ("7", "1", 0, "random", 0, "", "", 0, 0, ""),
        ],
    )
    (folder / "reviews.jsonl").write_text('{"review_pmid": "7", "title": "a"}\n')
    (folder / "papers.jsonl").write_text(
        '{"pmid": "01", "title": "b"}\n{"pmid": "1", "title": "c"}\n'
    )
    (folder / "summary.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"paper_pmid": "2", "label": 2}, "row 3: label is '2'"),
        ({}, "row 3: 7:01 has a decision of imported already"),
        ({"paper_pmid": " "}, "row 3: paper_pmid is missing"),
        ({"paper_pmid": "2", "decision": "often"}, "row 3: decision is 'often'"),
        ({"paper_pmid": "2", "confidence": 40}, "row 3: confidence is '40'"),
        ({"paper_pmid": "2", "kind": "random"}, "row 3: label 1 contradicts the kind"),
        ({"model": "b", "label": 0}, "row 3: label or kind of 7:01 contradicts"),
        ({"model": "b", "replicate": 0}, "row 3: replicate is 0"),
        ({"model": "b", "stage": "guess"}, "row 3: stage is 'guess'"),
        ({"paper_pmid": "2", "reason_code": "taste"}, "row 3: reason_code is 'taste'"),
        (
            {"paper_pmid": "2", "stage": "fulltext", "status": "failed"},
            "row 3: status is failed although fulltext decides",
        ),
        (
            {"paper_pmid": "2", "decision": "", "status": "failed"},
            "row 3: status is failed, and there is a confidence",
        ),
    ],
)
def test_a_row_that_is_off_is_named(
    tmp_path: Path, row: Mapping[str, object], sentence: str
) -> None:
    with pytest.raises(DatasetError, match=sentence.replace("(", r"\(")):
        imported(tmp_path, [dict(GOOD), {**GOOD, **row}])


def test_a_set_is_not_contradicted_nor_added_to(tmp_path: Path) -> None:
    known = a_set(tmp_path / "set")
    for row, sentence in (
        ({"paper_pmid": "1"}, "row 2: label contradicts the validation set"),
        ({"paper_pmid": "001"}, "row 2: 7:001 is not in the validation set"),
        ({"review_pmid": "8"}, "row 2: 8:01 is not in the validation set"),
    ):
        with pytest.raises(DatasetError, match=sentence):
            imported(tmp_path, [{**GOOD, **row}], validation_set=known)
    _, answers = imported(tmp_path, [{**GOOD, "label": ""}], validation_set=known)
    assert len(answers.held) == 1
    # whoever decided elsewhere was told by nobody here
    dataset = load(ScreeningSettings(validation_set=known, boot_b=0))
    assert [own.code for own in dataset.findings] == ["criteria_from_title"]
    codes = {own.code for own in score(dataset, answers).findings}
    assert "criteria_from_title" not in codes


def test_ids_stay_texts_and_empty_decisions_are_unparsed(tmp_path: Path) -> None:
    blank = {**GOOD, "label": 0, "decision": "", "confidence": ""}
    lines = [
        dict(GOOD),
        {**blank, "paper_pmid": "1"},
        {**blank, "paper_pmid": "2", "status": "failed"},
        {**blank, "paper_pmid": "3", "status": "missing"},
    ]
    found = gathered(*imported(tmp_path, lines))
    assert found.records.papers == ("01", "1", "2", "3")
    assert found.records.kinds == ("included", "unspecified")
    (own,) = found.decisions
    assert own.outcome.tolist() == [0, 3, 4, 6]


def test_a_status_beside_a_decision_is_that_of_the_stage_after_it(
    tmp_path: Path,
) -> None:
    lines: list[dict[str, object]] = [
        {**GOOD, "paper_pmid": "1", "decision": "exclude", "stage": "title"},
        *(
            {
                **GOOD,
                "paper_pmid": str(at),
                "decision": "exclude",
                "stage": "title",
                "status": status,
            }
            for at, status in enumerate(("failed", "unparsed", "missing"), start=2)
        ),
        {**GOOD, "paper_pmid": "5", "decision": "exclude", "stage": "abstract"},
    ]
    (own,) = gathered(*imported(tmp_path, lines)).decisions
    assert own.outcome.tolist() == [1, 1, 1, 1, 1]
    # the first ended at its title; the others are alive, or went all the way
    assert own.ended.tolist() == [0, 1, 1, 1, 1]
    assert own.latest.tolist() == [1, 4, 3, 6, 1]


def test_confidence_in_the_decision_becomes_that_of_inclusion(tmp_path: Path) -> None:
    lines = [
        {**GOOD, "paper_pmid": str(at), "decision": decision, "confidence": 0.5}
        for at, decision in enumerate(("include", "exclude", "unclear"))
    ]
    found = gathered(*imported(tmp_path, lines, confidence_kind="decision"))
    assert [str(p) for p in found.decisions[0].p] == ["0.75", "0.25", "nan"]


def metrics_of(dataset: ScreeningDataset, answers: MemoryAnswers) -> dict[str, object]:
    (found,) = score(dataset, answers).models.values()
    return {own.path: own.value for own in found}


def test_a_score_without_a_decision_ranks(tmp_path: Path) -> None:
    lines = [
        {**GOOD, "paper_pmid": str(at), "label": label, "decision": "", "confidence": p}
        for at, (label, p) in enumerate(((1, 0.9), (0, 0.8), (1, 0.7), (0, 0.1)))
    ]
    dataset, answers = imported(tmp_path, lines, boot_b=0)
    (own,) = gathered(dataset, answers).decisions
    assert own.outcome.tolist() == [UNPARSED] * 4
    assert own.p.tolist() == [0.9, 0.7, 0.8, 0.1]  # included papers come first
    assert own.counts == {"parse.score_only": 4}
    values = metrics_of(dataset, answers)
    assert values["all.macro.auroc"] == 0.75
    again = {**dict(dataset.settings), "threshold": 0.75}
    decided = ScreeningDataset(settings=ScreeningSettings.model_validate(again))
    values = metrics_of(decided, answers)
    assert values["all.micro.coverage"] == 1.0
    assert values["all.micro.sensitivity"] == 0.5
    with pytest.raises(DatasetError, match="confidence is that of a decision"):
        imported(tmp_path, lines, confidence_kind="decision")


def notes(path: Path, **settings: Any) -> tuple[list[ImportedAnswer], str]:
    """The answers of a file, and what is printed about it."""
    given = ScreeningSettings(decisions=path, **settings)
    read = importer.read((), given, model=None, form=None, replicates={})
    answers = list(read)
    return answers, " ".join(note for own in answers for note in own.notes)


def test_a_ranking_of_one_review_is_a_file_of_scores(tmp_path: Path) -> None:
    """The columns that ASReview exports, under the names that it uses."""
    path = write_csv(
        tmp_path / "CD1.csv",
        ("record_id", "title", "label_included", "asreview_ranking"),
        [("11", "a", 1, 1), ("12", "b", 0, 2), ("13", "c", 1, 3), ("14", "d", 0, "")],
    )
    answers, said = notes(path)
    keys = [own.spec.key for own in answers]
    assert keys == ["CD1:11", "CD1:12", "CD1:13", "CD1:14"]
    assert "rank is column asreview_ranking" in said
    assert "the file's name CD1 is the review's id" in said
    held = MemoryAnswers.of_import(answers)
    (own,) = gathered(ScreeningDataset(settings=ScreeningSettings()), held).decisions
    assert own.p.tolist()[:3] == pytest.approx([5 / 6, 1 / 6, 3 / 6])
    assert np.isnan(own.p[3])


def test_columns_called_otherwise_are_mapped_or_refused(tmp_path: Path) -> None:
    names = ("review_pmid", "Study", "truth", "proba")
    path = write_csv(tmp_path / "s.csv", names, [("7", "1", 1, 0.25)])
    with pytest.raises(DatasetError, match="found: review_pmid, Study, truth, proba"):
        notes(path)
    (own,), _ = notes(path, map=("Study=paper_pmid", "truth=label"))
    assert (own.spec.key, own.text) == ("7:1", '{"p_include":0.25}')
    with pytest.raises(
        UsageError, match=r"no file has a column Studi .*nearest: Study"
    ):
        notes(path, map=("Studi=paper_pmid",))
    two = write_csv(tmp_path / "t.csv", ("pmid", "record_id", "score"), [("1", "2", 1)])
    with pytest.raises(DatasetError, match="record_id, pmid could each be paper_pmid"):
        notes(two)


@pytest.mark.parametrize("form", ["semicolons", "tabs", "jsonl", "list"])
def test_a_file_of_decisions_may_have_other_delimiters_or_be_json(
    tmp_path: Path, form: str
) -> None:
    row = {**{name: str(cell) for name, cell in GOOD.items()}, "confidence": "0.5"}
    between = {"semicolons": ";", "tabs": "\t"}.get(form, "")
    text = f"{between.join(row)}\n{between.join(row.values())}\n"
    if form == "semicolons":
        text = text.replace("0.5", "0,5")
    if form == "jsonl":
        text = json.dumps(row) + "\n"
    if form == "list":
        text = json.dumps([GOOD], indent=1)
    path = tmp_path / "d.csv"
    path.write_text(text, "utf-8")
    (own,), _ = notes(path)
    assert own.spec.key == "7:01"
    assert '"p_include":0.5' in str(own.text)


def test_what_is_no_file_of_decisions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="it has no decisions"):
        imported(tmp_path, [])
    with pytest.raises(UsageError, match="Name the file"):
        next(
            importer.read((), ScreeningSettings(), model=None, form=None, replicates={})
        )
    short = write_csv(tmp_path / "short.csv", COLUMNS[:2], [])
    with pytest.raises(DatasetError, match=r"short.csv: fits no known format"):
        next(
            importer.read(
                (short,), ScreeningSettings(), model=None, form=None, replicates={}
            )
        )


@pytest.mark.parametrize("word", UNREAD)
def test_a_noted_reason_makes_a_reply_that_is_unreadable_for_it(word: str) -> None:
    parsed = parse_screen(UNREAD[word])
    assert isinstance(parsed, ParseFailure)
    assert f"parse.{parsed.reason}" == word
