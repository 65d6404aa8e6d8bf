"""Which papers become candidates: years, the review itself, and how many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.review_benchmark.data import Review, SearchQuery
from jobs.review_benchmark.database import reader
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.search import SearchHits, search_database
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.errors import DatasetError
from tests.jobs.review_benchmark.small_review import REVIEW, stocked

ENTRIES = (
    ImportedRecord(source_id="1", title="Walking early", year=1989),
    ImportedRecord(source_id="2", title="Walking on time", year=1990),
    ImportedRecord(source_id="3", title="Walking, nobody knows when"),
    ImportedRecord(source_id="4", title="Walking late", year=2002),
    ImportedRecord(source_id="5", title="Walking for SLEEP!", year=2000),
    ImportedRecord(
        source_id="6",
        title="Walking, another review",
        doi="https://doi.org/10.1002/14651858.CD000001.PUB2",
        year=2000,
    ),
    ImportedRecord(
        source_id="7", title="Walking walking walking", year=2001, doi="10.5555/7"
    ),
)
WALKING = SearchQuery(label="w", all_of=(("walking",),))
LATE = SearchQuery(label="l", all_of=(("late", "early"),))
DATED = replace(REVIEW, date_range=(1990, 2001))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperDatabase]:
    path = stocked(tmp_path_factory.mktemp("papers") / "papers.db", *ENTRIES)
    with closing(PaperDatabase(path)) as opened:
        yield opened


def searched(
    database: PaperDatabase,
    *queries: SearchQuery,
    review: Review = REVIEW,
    **settings: Any,
) -> SearchHits:
    return search_database(
        review, queries or (WALKING,), database, ReviewBenchmarkSettings(**settings)
    )


def test_a_paper_without_a_year_fits_any_range_of_dates(
    database: PaperDatabase,
) -> None:
    ranged = searched(database, review=DATED)
    assert sorted(ranged.candidates) == [2, 3, 7]
    for same in (
        searched(database, review=DATED, use_date_range=False),
        searched(database),
    ):
        assert sorted(same.candidates) == [1, 2, 3, 4, 7]


def test_the_review_itself_is_no_candidate_unless_it_is_asked_for(
    database: PaperDatabase,
) -> None:
    assert not {5, 6} & {*searched(database).candidates}
    assert {5, 6} <= {*searched(database, exclude_reviews=False).candidates}
    # those left out take nobody's place
    assert len(searched(database, top_k=5).candidates) == 5
    other = replace(REVIEW, title="Walking late")
    assert {5, 4} - {*searched(database, review=other).candidates} == {4}


def test_what_is_beyond_the_limits_is_counted(database: PaperDatabase) -> None:
    one = searched(database, top_k=2, max_candidates=9)
    assert one.candidates == one.rankings[0]
    assert (len(one.candidates), one.candidates[0], one.cut) == (2, 7, 0)
    two = searched(database, WALKING, LATE, max_candidates=3)
    assert two.rankings[1] == (1, 4)
    # found by both, then by the first alone
    assert two.candidates == (1, 4, 7)
    assert (len(two.ranked), two.cut) == (5, 2)
    nothing = searched(database, SearchQuery(label="n", all_of=(("flying",),)))
    assert (nothing.rankings, nothing.candidates, nothing.cut) == (((),), (), 0)


def test_a_database_that_changes_meanwhile_is_searched_no_further(
    tmp_path: Path,
) -> None:
    path = stocked(tmp_path / "papers.db")
    with closing(PaperDatabase(path)) as opened:
        assert searched(opened).candidates
        stocked(path, ENTRIES[0])
        with pytest.raises(DatasetError, match=r"papers\.db: somebody imported"):
            searched(opened)
    with closing(PaperDatabase(path)) as opened:
        assert searched(opened).candidates


def test_a_database_that_is_being_written_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "TIMEOUT_S", 0.0)
    path = stocked(tmp_path / "papers.db")
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        closing(PaperDatabase(path)) as opened,
    ):
        other.execute("BEGIN EXCLUSIVE")
        for read in (lambda: opened.paper(1), lambda: PaperDatabase(path)):
            with pytest.raises(DatasetError, match=r"papers\.db: database is locked"):
                read()
