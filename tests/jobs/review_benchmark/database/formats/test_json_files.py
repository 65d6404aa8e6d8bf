"""JSON and JSONL files of papers, and results of agents as files of papers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.review_benchmark.database.formats import read_papers
from jobs.review_benchmark.database.papers import (
    ImportedRecord,
    ReadRecord,
    UnreadableRecord,
    paper_format,
)
from runner.errors import DatasetError, UsageError

PAPER = {"pmid": 7, "title": " One ", "year": 1999.0, "authors": ["A", " ", "B"]}
ENTRY = ImportedRecord(
    source_id="1", pmid="7", title="One", year=1999, authors=("A", "B")
)


def found(folder: Path, name: str, text: str) -> list[ReadRecord]:
    path = folder / name
    path.write_text(text)
    return list(read_papers(path, paper_format(path), {}))


def bad(folder: Path, text: str) -> UnreadableRecord:
    """The last record of a JSONL file, which is bad."""
    *_, last = found(folder, "some.jsonl", text)
    assert isinstance(last, UnreadableRecord)
    return last


@pytest.mark.parametrize(
    "value",
    [
        [PAPER],
        {"papers": [PAPER], "included_document_ids": [1]},
        {"cochrane_id": "CD1", "included_papers": [PAPER], "excluded_papers": []},
        {"included": [], "excluded": [PAPER]},
    ],
    ids=["list", "papers", "lists", "aliases"],
)
def test_papers_are_a_list_or_an_agents_result(tmp_path: Path, value: object) -> None:
    text = json.dumps(value)
    assert found(tmp_path, "some.json", text) == [ENTRY]
    if isinstance(value, dict):
        assert found(tmp_path, "some.jsonl", f"\n{text}\n") == [ENTRY]


def test_included_papers_come_first_and_records_are_numbered_through(
    tmp_path: Path,
) -> None:
    value = {
        "excluded_papers": [{"title": "b"}, {"title": "c", "document_id": 9}],
        "included_papers": [{"title": "a"}],
    }
    entries = found(tmp_path, "some.json", json.dumps(value))
    assert entries == [
        ImportedRecord(source_id="1", title="a"),
        ImportedRecord(source_id="2", title="b"),
        ImportedRecord(source_id="9", title="c"),
    ]


def test_a_table_with_gaps_has_numbers_for_ids(tmp_path: Path) -> None:
    lines = (
        '{"pmid": 123.0, "year": "1999.0"}\n{"pmid": null, "title": "x", "year": ""}'
    )
    first, second = found(tmp_path, "some.jsonl", lines)
    assert first == ImportedRecord(source_id="1", pmid="123.0", year=1999)
    assert second == ImportedRecord(source_id="2", title="x")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("3", "a number instead of an object"),
        ('{"papers": [[]]}', "a list instead of an object"),
        ('{"pmid": true}', "pmid is true or false"),
        ('{"title": ["x"]}', "title is a list"),
        ('{"pmid": 1, "year": "soon"}', "year is 'soon'"),
        ('{"pmid": 1, "year": 20001}', "year is 20001 (four digits"),
        ('{"pmid": 1, "year": {}}', "year is an object"),
        ('{"pmid": 1, "authors": [1]}', "authors is something else"),
        ('{"pmid": "PMC1", "title": "?", "abstract": "x"}', "neither PMID nor DOI"),
    ],
)
def test_a_bad_record_says_what_is_wrong(
    tmp_path: Path, line: str, reason: str
) -> None:
    last = bad(tmp_path, '{"pmid": 1}\n' + line)
    assert last.number == 2
    assert reason in last.reason


@pytest.mark.parametrize("text", ["{}", "3", '{"papers": 3}', "[", "[" * 100_000])
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DatasetError, match=r"some\.json: (neither|not valid JSON)"):
        found(tmp_path, "some.json", text)


def test_a_name_that_says_no_format_needs_it_said() -> None:
    assert paper_format(Path("some.XML.gz")) == "pubmed"
    with pytest.raises(UsageError, match="--format"):
        paper_format(Path("some.txt"))
