"""Reading what people say of conclusions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.inputs import ConclusionLabel, inputs, load, read_labels
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.errors import DatasetError
from runner.job import InputFile

HEADER = "cochrane_id,model,note,similar\n"


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def test_labels_are_read_and_rows_without_one_passed_over(tmp_path: Path) -> None:
    noticed = InputFindings()
    path = written(tmp_path, "CD1,a,x,1", "CD1,b,,0", "CD2,a,,", "CD9,a,,")
    assert read_labels(path, {"CD1", "CD2"}, noticed) == (
        ConclusionLabel(review="CD1", model="a", similar=True),
        ConclusionLabel(review="CD1", model="b", similar=False),
    )
    assert [(each.code, each.example) for each in noticed.findings()] == [
        ("unknown_column", "note")
    ]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            ["CD3,a,,1"],
            "labels.csv line 2: cochrane_id is 'CD3', which has no ground truth (corr",
        ),
        (
            ["CD1,a,,1", "CD1,a,,1"],
            "labels.csv line 3: CD1 of a has a label already (remove one).",
        ),
        (["CD1,a,,yes"], "labels.csv line 2: similar is 'yes' (0 or 1 is expected)."),
        (["CD1,,,1"], "labels.csv line 2: model is missing (fill it in or remove"),
    ],
)
def test_what_is_wrong_with_a_label_is_said(
    tmp_path: Path, lines: list[str], complaint: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        read_labels(written(tmp_path, *lines), {"CD1"}, InputFindings())
    assert complaint in str(caught.value)


def test_labels_of_reviews_that_are_not_asked_for_are_left_out(tmp_path: Path) -> None:
    for review in ("CD1", "CD2"):
        value = {
            "cochrane_id": review,
            "title": "Title",
            "research_question": "Does it help?",
            "included_studies": [{"title": "A study"}],
        }
        (tmp_path / f"cochrane_{review}.json").write_text(json.dumps(value))
    path = written(tmp_path, "CD1,a,,1", "CD2,a,,0")
    settings = ReviewBenchmarkSettings(
        truth=tmp_path, verdict_labels=path, review=("CD2",)
    )
    assert load(settings).labels == (
        ConclusionLabel(review="CD2", model="a", similar=False),
    )
    # they are part of what a scoring goes by
    assert inputs(settings)[1:] == (InputFile(setting="verdict_labels", path=path),)
