"""Results of agents become answers, and what is odd about them is said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.review_benchmark.result_files import importer
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer

TRUTH = {
    "cochrane_id": "CD1",
    "title": "Title",
    "research_question": "Does it help?",
    "included_studies": [{"pmid": 7}],
}
RESULT = {"cochrane_id": "CD1", "included_papers": [{"document_id": 1, "pmid": "7"}]}


def test_an_agent_is_named_by_its_library_then_by_its_file(tmp_path: Path) -> None:
    results = _files(
        tmp_path,
        {
            "a.json": {**RESULT, "library": "mine"},
            "CD9__full.json": RESULT,
            "b.json": RESULT,
        },
    )
    found = _read(tmp_path, results)
    # the review is the one that a file names inside, whatever the file is called
    assert {each.spec.key for each in found} == {"CD1"}
    assert {each.model for each in found} == {"mine", "full", "imported"}
    (one,) = _read(tmp_path, results[:1], model="gpt")
    assert one.model == "gpt"
    assert json.loads(one.text or "") == {**RESULT, "library": "mine"}


def test_results_of_reviews_that_are_not_asked_for_are_left_out(
    tmp_path: Path,
) -> None:
    other = {**RESULT, "cochrane_id": "CD2"}
    one, two = _files(tmp_path, {"a.json": RESULT, "b.json": other})
    truth = tmp_path / "truth"
    truth.mkdir()
    (truth / "cochrane_CD2.json").write_text(
        json.dumps({**TRUTH, "cochrane_id": "CD2"})
    )
    found = _read(tmp_path, [one, two], review=("CD2",))
    assert [each.spec.key for each in found] == ["CD2"]
    with pytest.raises(DatasetError, match="No result belongs to a selected review"):
        _read(tmp_path, [one], review=("CD2",))


def test_results_may_stand_in_a_list_or_one_a_line(tmp_path: Path) -> None:
    both = [RESULT, {**RESULT, "library": "mine"}]
    (listed,) = _files(tmp_path, {"a.json": both})
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in both))
    for path in (listed, lines):
        found = _read(tmp_path, [path])
        assert [each.model for each in found] == ["imported", "mine"]
        assert [json.loads(each.text or "") for each in found] == both


def test_keys_called_otherwise_are_mapped_at_every_depth(tmp_path: Path) -> None:
    value = {"review": "CD1", "hits": [{"id": 1, "pubmed": "7", "title": "a"}]}
    files = _files(tmp_path, {"a.json": value})
    with pytest.raises(DatasetError, match=r"cochrane_id is missing \(found: review,"):
        _read(tmp_path, files)
    pairs = (
        *("review=cochrane_id", "hits=included_papers"),
        *("id=document_id", "pubmed=pmid"),
    )
    (one,) = _read(tmp_path, files, pairs=pairs)
    paper = {"document_id": 1, "pmid": "7", "title": "a"}
    assert json.loads(one.text or "") == {
        "cochrane_id": "CD1",
        "included_papers": [paper],
    }
    with pytest.raises(UsageError, match=r"a column pubmd .*nearest: pubmed"):
        _read(tmp_path, files, pairs=("pubmd=pmid",))


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (
            {"a.json": {**RESULT, "cochrane_id": "CD2"}},
            r"a\.json: there is no ground truth of CD2 \(add cochrane_CD2\.json",
        ),
        (
            {"a__x.json": RESULT, "b__x.json": RESULT},
            r"b__x\.json: a__x\.json holds CD1 of x too",
        ),
        ({"a.json": [3]}, r"a\.json: not an object"),
        ({"a.json": {"included": []}}, r"a\.json: cochrane_id is missing"),
        ({"a.json": {"cochrane_id": "CD1"}}, "neither included_papers nor papers"),
        (
            {"a.json": {**RESULT, "papers": [], "included_document_ids": [3]}},
            "included_document_ids names 3",
        ),
    ],
)
def test_what_cannot_be_imported_is_said(
    tmp_path: Path, files: Mapping[str, Any], complaint: str
) -> None:
    with pytest.raises(DatasetError, match=complaint):
        _read(tmp_path, _files(tmp_path, files))


def test_replicates_are_told_apart_and_need_ids(tmp_path: Path) -> None:
    unnamed = {"cochrane_id": "CD1", "included": [{"pmid": "7"}]}
    one, two, bad = _files(
        tmp_path, {"a__x.json": RESULT, "b__x.json": RESULT, "c__x.json": unnamed}
    )
    found = _read(tmp_path, [one, two], replicates={one: 1, two: 2})
    assert [each.replicate for each in found] == [1, 2]
    with pytest.raises(DatasetError, match=r"c__x\.json: papers have no document_id"):
        _read(tmp_path, [one, bad], replicates={one: 1, bad: 2})


def _files(folder: Path, files: Mapping[str, Any]) -> list[Path]:
    made = []
    for name, value in files.items():
        path = folder / name
        path.write_text(json.dumps(value))
        made.append(path)
    return made


def _read(
    folder: Path,
    paths: Sequence[Path],
    *,
    model: str | None = None,
    review: tuple[str, ...] = (),
    pairs: tuple[str, ...] = (),
    replicates: Mapping[Path, int] | None = None,
) -> list[ImportedAnswer]:
    truth = folder / "truth"
    truth.mkdir(exist_ok=True)
    (truth / "cochrane_CD1.json").write_text(json.dumps(TRUTH))
    return list(
        importer.read(
            tuple(paths),
            ReviewBenchmarkSettings(truth=truth, review=review, map=pairs),
            model=model,
            form=None,
            replicates=replicates or {},
        )
    )
