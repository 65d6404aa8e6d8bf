"""CSV and TSV files of papers."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.review_benchmark.database.formats import mapped_columns, read_papers
from jobs.review_benchmark.database.papers import (
    ImportedRecord,
    ReadRecord,
    UnreadableRecord,
    paper_format,
)
from runner.errors import DatasetError, UsageError


def found(folder: Path, name: str, text: str, *mapped: str) -> list[ReadRecord]:
    path = folder / name
    path.write_text(text)
    return list(read_papers(path, paper_format(path), mapped_columns(mapped)))


def test_columns_go_by_several_names(tmp_path: Path) -> None:
    text = (
        "\ufeffRecord_ID,PubMed ID,Title,authors,year,label_included\n"
        '5,7.0,"One, and two",A B; C D;,2001.0,1\n'
        ",,Other,,,0\n"
    )
    expected = [
        ImportedRecord(
            source_id="5",
            pmid="7.0",
            title="One, and two",
            authors=("A B", "C D"),
            year=2001,
        ),
        ImportedRecord(source_id="2", title="Other"),
    ]
    assert found(tmp_path, "some.csv", text) == expected
    tabbed = text.replace(", and", " and").replace(",", "\t").replace('"', "")
    first, second = found(tmp_path, "some.tsv", tabbed)
    assert isinstance(first, ImportedRecord)
    assert (first.title, second) == ("One and two", expected[1])


def test_a_mapped_column_takes_the_place_of_a_known_one(tmp_path: Path) -> None:
    text = "title,Name of paper,pubmedID\nlabel,One,7\n"
    assert found(tmp_path, "some.csv", text, "title = Name of paper") == [
        ImportedRecord(source_id="1", pmid="7", title="One")
    ]


def test_a_row_of_another_width_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    one, bad, three = found(tmp_path, "some.csv", "pmid,title\n1,a\n2,b,c\n3,d\n")
    assert isinstance(bad, UnreadableRecord)
    assert (bad.number, bad.reason[:35]) == (2, "3 fields where the header has 2 (qu")
    assert [one, three] == [
        ImportedRecord(source_id="1", pmid="1", title="a"),
        ImportedRecord(source_id="3", pmid="3", title="d"),
    ]


@pytest.mark.parametrize(
    ("text", "mapped", "said"),
    [
        ("", (), "is empty"),
        ("a,b\n1,2\n", (), "row 1: none of pmid, doi and title among a, b .*--map"),
        ("pmid,PubMed ID\n1,2\n", (), "two columns are pmid .*--map pmid=column"),
        ("pmid,pmid\n1,2\n", (), "two columns are pmid"),
        ("pmid\n1\n", ("title=Name",), "no column Name among pmid"),
        ('pmid\n"1\n', (), "not CSV"),
    ],
    ids=["empty", "no key", "alias", "twice", "map", "quote"],
)
def test_a_header_that_does_not_do_is_refused(
    tmp_path: Path, text: str, mapped: tuple[str, ...], said: str
) -> None:
    with pytest.raises(DatasetError, match=said):
        found(tmp_path, "some.csv", text, *mapped)


@pytest.mark.parametrize("text", ["title", "title=", "name=Title"])
def test_what_is_mapped_must_be_said_in_full(text: str) -> None:
    with pytest.raises(UsageError, match="write name=column"):
        mapped_columns([text])
