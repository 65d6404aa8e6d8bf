"""Reading published reviews and the results of agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.matching import pmid_of
from jobs.review_benchmark.result_files import AgentResult, read_results
from jobs.review_benchmark.truth_files import read_truth
from runner.errors import DatasetError
from tests.jobs.review_benchmark.small_review import read_review

GOOD: dict[str, Any] = {
    "cochrane_id": "CD1",
    "title": "Title",
    "research_question": "Does it help?",
    "included_studies": [{"pmid": 12, "authors": None}, {"title": " Only a title "}],
    "pico": None,
    "inclusion_criteria": [],
    "date_range": [1990, 2001],
    "colour": "kept",
}


def test_a_review_is_read_with_what_is_unknown(tmp_path: Path) -> None:
    review = read_review(_written(tmp_path, GOOD, bom=True))
    assert [(study.pmid, study.title) for study in review.studies] == [
        ("12", ""),
        ("", "Only a title"),
    ]
    assert review.date_range == (1990, 2001)
    assert review.further == {"colour": "kept"}


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            {"title": " ", "included_studies": []},
            "cochrane_CD1.json: missing or empty: title, included_studies.",
        ),
        (
            {"included_studies": [{"pmid": "1"}, {"notes": "x", "title": " "}]},
            "cochrane_CD1.json: included_studies[1] has no pmid, doi or title.",
        ),
        ({"included_studies": [{"pmid": True}]}, "included_studies[0]: pmid is true"),
        ({"date_range": [2001, 1990]}, "date_range is [2001, 1990]"),
        ({"inclusion_criteria": "all"}, "inclusion_criteria is a text (a list"),
    ],
)
def test_what_is_wrong_with_a_review_is_said(
    tmp_path: Path, changed: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        read_review(_written(tmp_path, {**GOOD, **changed}))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("written", "pmid"),
    [(12, "12"), (123.0, "123"), (" PMID:00012 ", "12"), (0, ""), ("PMC123", "")],
)
def test_a_pmid_may_be_any_number_and_no_truth_value(
    tmp_path: Path, written: object, pmid: str
) -> None:
    study = {"pmid": written, "title": "Only a title"}
    review = read_review(_written(tmp_path, {**GOOD, "included_studies": [study]}))
    assert [pmid_of(each.pmid) for each in review.studies] == [pmid]
    record = {"cochrane_id": "CD1", "included": [{"pmid": True}]}
    with pytest.raises(DatasetError, match=r"included\[0\]: pmid is true"):
        read_result(_written(tmp_path, record, name="a.json"), InputFindings())


def test_what_may_be_missing_reads_as_nothing(tmp_path: Path) -> None:
    criteria = ("inclusion_criteria", "exclusion_criteria")
    empty: list[dict[str, Any]] = [
        {},
        dict.fromkeys(("pico", "date_range", *criteria)),
        {name: [] for name in criteria},
    ]
    for changed in empty:
        given = {name: GOOD[name] for name in GOOD if name not in (*criteria, "pico")}
        given.pop("date_range")
        review = read_review(_written(tmp_path, {**given, **changed}))
        assert (review.pico, review.date_range) == (None, None)
        assert (review.inclusion, review.exclusion) == ((), ())


@pytest.mark.parametrize("name", ["year", "relevance_score"])
def test_a_number_too_large_to_be_one_is_said(tmp_path: Path, name: str) -> None:
    record = {"document_id": 1, name: 10**400}
    value = {"cochrane_id": "CD1", "included": [record]}
    with pytest.raises(DatasetError, match=rf"included\[0\]: {name} is "):
        read_result(_written(tmp_path, value, name="a.json"), InputFindings())


def test_bad_json_is_named_by_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "cochrane_CD1.json"
    for text, place in (
        ('{"title": "é",\r\n "é": x}', r"line 2, column 7"),
        ("NaN", "line 1, column 1"),
        ('{"cochrane_id": ', "truncated"),
    ):
        path.write_text(text, "utf-8-sig")
        with pytest.raises(DatasetError, match=rf"_CD1\.json: not valid.*{place} \("):
            read_review(path)


def test_templates_are_left_out_and_ids_stand_once(tmp_path: Path) -> None:
    _written(tmp_path, {**GOOD, "included_studies": [{"pmid": "0", "doi": "10.1/a"}]})
    # a template may lack what is to be filled in
    _written(tmp_path, {"cochrane_id": " CD000000"}, name="cochrane_0.json")
    noticed = InputFindings()
    assert [review.id for review in read_truth(tmp_path, noticed)] == ["CD1"]
    codes = [each.code for each in noticed.findings()]
    assert codes == ["template_skipped", "no_pmid"]
    _written(tmp_path, GOOD, name="cochrane_2.json")
    with pytest.raises(DatasetError, match="CD1 is also in"):
        read_truth(tmp_path, noticed)


def test_both_forms_of_a_result_are_read(tmp_path: Path) -> None:
    lists = {
        "cochrane_id": "CD1",
        "included": [{"document_id": 1, "pmid": 7}, {"title": "No id"}],
        "excluded_papers": [{"document_id": "1"}, {"document_id": "2", "pmid": "PMC9"}],
    }
    flagged = {
        "cochrane_id": "CD1",
        "library": "mine",
        "papers": [{"document_id": 2}, {"document_id": 1}],
        "included_document_ids": ["1"],
    }
    noticed = InputFindings()
    first = read_result(_written(tmp_path, lists, name="a__full.json"), noticed)
    assert first.label == "full"
    assert [(each.document, each.included) for each in first.records] == [
        ("1", True),
        ("row:included:1", True),
        ("1", False),
        ("2", False),
    ]
    assert {each.code for each in noticed.findings()} == {
        "in_both_lists",
        "no_document_id",
        "no_pmid",
    }
    second = read_result(_written(tmp_path, flagged, name="b.json"), noticed)
    assert second.label == "mine"
    assert [(each.document, each.included) for each in second.records] == [
        ("1", True),
        ("2", False),
    ]


def test_no_key_of_a_file_sets_what_the_reader_finds_out(tmp_path: Path) -> None:
    record = {"document_id": "1", "@included": True, "@further": 3, "colour": "red"}
    value = {"cochrane_id": "CD1", "excluded": [record], "@records": 3, "@findings": 3}
    result = read_result(_written(tmp_path, value, name="a.json"), InputFindings())
    (only,) = result.records
    assert (only.included, result.findings) == (False, ())
    assert only.further == {"@included": True, "@further": 3, "colour": "red"}


def read_result(path: Path, noticed: InputFindings) -> AgentResult:
    ((_, result),) = read_results(path, noticed)
    return result


def _written(
    folder: Path,
    value: dict[str, Any],
    *,
    name: str = "cochrane_CD1.json",
    bom: bool = False,
) -> Path:
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8-sig" if bom else "utf-8")
    return path
