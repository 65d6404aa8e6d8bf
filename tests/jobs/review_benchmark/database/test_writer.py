"""Records that are one paper, and records that are not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.review_benchmark.database import writer as writing_module
from jobs.review_benchmark.database.papers import (
    DatabasePaper,
    ImportedRecord,
    UnreadableRecord,
)
from jobs.review_benchmark.database.reader import SCHEMA, PaperDatabase, writer
from jobs.review_benchmark.database.writer import FileCounts, PaperWriter
from runner.errors import DatasetError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "papers.db"


@pytest.fixture
def writing(path: Path) -> Iterator[PaperWriter]:
    with closing(writer(path)) as connection:
        yield PaperWriter(connection)


def test_a_pmid_joins_records_and_blanks_are_filled(
    writing: PaperWriter, path: Path
) -> None:
    added = _add(
        writing,
        ImportedRecord(source_id="1", pmid="PMID 7", title="First", year=1999),
        ImportedRecord(
            source_id="2", pmid="007", title="Second", doi="10.1/A", abstract="Text"
        ),
    )
    assert (added.papers, added.merged, added.titles) == (1, {"pmid": 1}, 1)
    expected = DatabasePaper(
        id=1, pmid="7", doi="10.1/a", title="First", abstract="Text", year=1999
    )
    assert _papers(path) == [expected]
    with closing(PaperDatabase(path)) as database:
        (titles,) = database.titles_within(0, 99, 5)
        assert titles == [(1, "first"), (1, "second")]
        assert database.search('"text"', (0, 9999), 5) == [1]


def test_a_doi_of_two_pmids_is_left_with_the_first(
    writing: PaperWriter, path: Path
) -> None:
    added = _add(
        writing,
        ImportedRecord(source_id="1", pmid="7", doi="10.1/a"),
        ImportedRecord(source_id="2", pmid="8", doi="10.1/A"),
    )
    assert (added.papers, added.conflicts) == (2, 1)
    assert [paper.doi for paper in _papers(path)] == ["10.1/a", ""]


def test_a_doi_joins_records_of_which_one_has_no_pmid(
    writing: PaperWriter, path: Path
) -> None:
    added = _add(
        writing,
        ImportedRecord(source_id="1", doi="10.1/a"),
        ImportedRecord(source_id="2", pmid="8", doi="doi:10.1/a"),
    )
    assert added.merged == {"doi": 1}
    assert _papers(path) == [DatabasePaper(id=1, pmid="8", doi="10.1/a")]


def test_a_title_and_its_year_join_only_a_record_without_ids(
    writing: PaperWriter, path: Path
) -> None:
    added = _add(
        writing,
        ImportedRecord(source_id="1", pmid="7", title="One title", year=2001),
        ImportedRecord(source_id="2", title="ONE title.", year=2001),
        ImportedRecord(source_id="3", title="One title", year=2002),
        ImportedRecord(source_id="4", title="One title"),
        ImportedRecord(source_id="5", title="One title"),
        ImportedRecord(source_id="6", pmid="9", title="One title", year=2001),
        ImportedRecord(source_id="7", title="?"),
        ImportedRecord(source_id="8", title="?"),
    )
    assert added.merged == {"title": 2}
    assert [paper.year for paper in _papers(path)] == [
        2001,
        2002,
        None,
        2001,
        None,
        None,
    ]


def test_a_record_finds_the_paper_it_was_made_part_of_again(
    writing: PaperWriter, path: Path
) -> None:
    entries = (
        ImportedRecord(source_id="1", pmid="7", title="One"),
        ImportedRecord(source_id="2", title="One"),
        ImportedRecord(
            source_id="3", pmid="7", year=2001
        ),  # and 2 is no more of that year
        ImportedRecord(source_id="4", title="Two", year=2001, abstract="Text"),
        ImportedRecord(
            source_id="5", pmid="7", title="Two"
        ),  # and 4 is like the first paper
    )
    _add(writing, *entries)
    before = _papers(path)
    assert len(before) == 2
    assert _add(writing, *entries).papers == 0
    assert _papers(path) == before


def test_importing_a_file_twice_changes_nothing(
    writing: PaperWriter, path: Path
) -> None:
    entries = (
        ImportedRecord(source_id="1", pmid="7", title="One", doi="10.1/a"),
        ImportedRecord(source_id="2", pmid="7", title="Other"),
        ImportedRecord(source_id="3", title="Third"),
    )
    _add(writing, *entries)
    before, papers = writing.sign(), _papers(path)
    added = _add(writing, *entries)
    assert (added.papers, added.titles) == (0, 0)
    assert (writing.sign(), _papers(path)) == (before, papers)


def test_an_import_that_was_cut_off_leaves_no_old_hash(
    writing: PaperWriter, path: Path
) -> None:
    _add(writing, ImportedRecord(source_id="1", pmid="7"))
    signed = writing.sign()
    _add(writing, ImportedRecord(source_id="2", pmid="8"))
    with closing(PaperDatabase(path)) as database:
        assert database.content_hash != signed
        assert database.content_hash == writing.sign()


def test_a_bad_record_takes_its_whole_file_back(
    writing: PaperWriter, path: Path
) -> None:
    entries = (
        ImportedRecord(source_id="1", pmid="7"),
        UnreadableRecord(2, "year is 'x'"),
    )
    with pytest.raises(
        DatasetError, match=r"refs\.ris record 2: year is 'x'; .*skip-bad"
    ):
        writing.add("refs.ris", entries, skip_bad=False)
    assert _papers(path) == []
    added = writing.add("refs.ris", entries, skip_bad=True)
    assert (added.papers, added.bad) == (1, entries[1:])


def test_a_file_that_is_no_paper_database_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_text("something else")
    with pytest.raises(DatasetError, match=r"other\.db: .*--database"):
        writer(other)
    with pytest.raises(DatasetError, match="not a paper database"):
        PaperDatabase(other)
    with pytest.raises(DatasetError, match="no such file"):
        PaperDatabase(tmp_path / "none.db")


def _add(writing: PaperWriter, *entries: ImportedRecord) -> FileCounts:
    return writing.add("papers.csv", entries, skip_bad=False)


def _papers(path: Path) -> list[DatabasePaper]:
    with closing(PaperDatabase(path)) as database:
        return list(database.papers())


records = st.lists(
    st.builds(
        ImportedRecord,
        source_id=st.just(""),
        pmid=st.sampled_from(("", "", "1", "2")),
        doi=st.sampled_from(("", "", "10.1/a", "10.1/b")),
        title=st.sampled_from(("One", "ONE.", "Two", "")),
        abstract=st.sampled_from(("", "some text", "more")),
        year=st.sampled_from((None, 2000, 2001)),
    ).filter(lambda entry: entry.pmid or entry.doi or entry.title),
    max_size=9,
)


@settings(max_examples=60, deadline=None)
@given(records, st.integers(1, 3))
def test_neither_the_batch_nor_a_second_import_makes_a_difference(
    entries: list[ImportedRecord], size: int
) -> None:
    numbered = [replace(each, source_id=str(n)) for n, each in enumerate(entries)]
    with closing(_in_memory()) as one, closing(_in_memory()) as other:
        first = _add(PaperWriter(one), *numbered)
        whole = PaperWriter(one).sign()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing_module, "BATCH", size)
            assert _add(PaperWriter(other), *numbered) == first
        assert PaperWriter(other).sign() == whole
        again = _add(PaperWriter(one), *numbered)
        assert (again.papers, again.titles) == (0, 0)
        assert PaperWriter(one).sign() == whole
        one.execute("INSERT INTO papers_fts (papers_fts) VALUES ('integrity-check')")


def _in_memory() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(SCHEMA)
    return made
