"""What is asked of a million papers reads no more than it needs.

A run of our own agent by command: what is asked again, and what is refused. Which
papers become candidates: years, the review itself, and how many.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from jobs.review_benchmark.data import Review, SearchQuery
from jobs.review_benchmark.database import reader
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import (
    SCHEMA,
    SQL,
    PaperDatabase,
    unreadable,
    writer,
)
from jobs.review_benchmark.database.writer import PaperWriter
from jobs.review_benchmark.search import SearchHits, search_database
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.errors import DatasetError
from tests.commands import Done, command
from tests.jobs.review_benchmark.small_review import (
    ENTRIES,
    REVIEW,
    stocked,
    write_truth,
)


@pytest.mark.parametrize(
    ("name", "values", "plan"),
    [
        (
            "search",
            ('"x"', 0, 1, 2, False),
            "SEARCH papers USING COVERING INDEX papers_years",
        ),
        (
            "titles_within",
            (1, 2),
            "SEARCH paper_titles USING COVERING INDEX paper_titles_by_length",
        ),
        ("id_by_doi", ("x",), "SEARCH papers USING COVERING INDEX"),
        ("kept_by_ids", ("[]", "[]"), "MULTI-INDEX OR"),
        (
            "kept_by_title",
            ("x", 1, "s", "1"),
            "SEARCH paper_titles USING COVERING INDEX paper_titles_by_title",
        ),
    ],
)
def test_each_statement_has_its_index(
    name: str, values: tuple[object, ...], plan: str
) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values).fetchall()
    steps = [step for *_, step in rows]
    assert any(step.startswith(plan) for step in steps), steps
    assert not any(
        step.startswith("SCAN paper") for step in steps if "VIRTUAL" not in step
    )
    if name == "titles_within":
        assert len(steps) == 1  # nothing is sorted


def test_a_database_without_an_index_is_made_anew_and_a_busy_one_awaited(
    tmp_path: Path,
) -> None:
    path = tmp_path / "papers.db"
    with closing(writer(path)) as connection, closing(sqlite3.connect(path, 0)) as late:
        connection.execute("DROP INDEX papers_years")
        with (
            closing(PaperDatabase(path)) as papers,
            pytest.raises(DatasetError, match=r"papers_years .* makes a new one"),
        ):
            papers.search('"x"', (1, 2), 1)
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            late.execute(SQL["n_papers"])
        assert "wait until the import has finished" in str(
            unreadable(path, locked.value)
        )


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_truth(tmp_path / "truth")
    write_truth(tmp_path / "truth", replace(REVIEW, id="CD8", conclusion=""))
    return stocked(tmp_path / "papers.db")


def generated(*words: object) -> None:
    options = ("--truth", "truth", "--database", "papers.db", "--run-id", "r", *words)
    done = command("generate", "review-benchmark", *options)
    assert done.code == 0, done.err


def tasks(stage: str) -> list[dict[str, Any]]:
    done = command("tasks", "r", "--json", "--filter", f"stage:{stage}")
    return [json.loads(line) for line in done.out.splitlines()]


def attempts() -> int:
    started: int = json.loads(command("status", "r", "--json").out)["attempts"][
        "started"
    ]
    return started


def scored(*words: object) -> tuple[int, int]:
    """Answers that a scoring has missed, and those that it could not use."""
    done = command("score", "r", "--no-report", "--json", *words)
    assert done.code == 0, done.err
    card = json.loads(done.out)
    missing, stale = card["missing"], card["stale"]
    assert (f"note: {missing} answers that these settings" in done.err) == (missing > 0)
    assert (f"note: {stale} answers of the run are stale" in done.err) == (stale > 0)
    return missing, stale


def resumed(*words: object) -> Done:
    return command("resume", "r", "--no-score", *words)


def test_another_threshold_asks_for_other_conclusions_and_for_nothing_else(
    papers: Path,
) -> None:
    generated("--replicates", 2, "--threshold", 2.5)
    assert [row["state"] for row in tasks("plan")] == ["completed"] * 4
    assert [row["state"] for row in tasks("score")] == ["completed"] * 12
    skips = [row["reason"] for row in tasks("conclude")]
    assert skips == [None, None, "no_truth_conclusion", "no_truth_conclusion"]
    before = attempts()
    assert scored() == (0, 0)
    # CD7 has two replicates; its papers have the scores 2.8, 1.8 and 1.8
    assert scored("--set", "threshold=2.8") == (0, 0)
    assert scored("--set", "threshold=1.8") == (2, 2)
    assert scored("--set", "threshold=5") == (0, 2)
    assert scored("--set", "verdict=off") == (0, 2)
    assert attempts() == before
    assert resumed("--set", "threshold=1.8").code == 0
    assert attempts() == before + 2
    assert [row["state"] for row in tasks("conclude")].count("completed") == 4
    assert scored() == (0, 2)
    assert scored("--set", "threshold=2.5") == (0, 2)
    assert papers.exists()


def test_conclusions_may_be_asked_for_later(papers: Path) -> None:
    generated("--verdict", "off", "--threshold", 2)
    assert tasks("conclude") == []
    before = attempts()
    assert scored("--set", "verdict=tfidf") == (1, 0)
    assert resumed("--set", "verdict=tfidf").code == 0
    assert attempts() == before + 1
    assert papers.exists()


def test_a_run_knows_its_database_by_the_papers_in_it(papers: Path) -> None:
    generated("--review", "CD8")
    before = sha256(papers.read_bytes()).digest()
    added(papers, "again.csv", *ENTRIES)
    assert sha256(papers.read_bytes()).digest() != before
    assert resumed().code == 0
    added(papers, "more.csv", replace(ENTRIES[0], title="One more"))
    refused = resumed()
    assert refused.code == 1
    assert refused.err == (
        f"siftlog: {papers} (database) is not what the run was started with; put the "
        "old content back or add --accept-changes.\n"
    )


def test_a_database_without_papers_is_refused_before_the_run_begins(
    papers: Path,
) -> None:
    with closing(writer(papers.with_name("empty.db"))):
        pass
    done = command(
        *("generate", "review-benchmark", "--truth", "truth"),
        *("--database", "empty.db", "--run-id", "r"),
    )
    assert (done.code, "empty.db: it holds no paper" in done.err) == (1, True)
    assert not Path("runs/r").exists()


def added(path: Path, source: str, *entries: ImportedRecord) -> None:
    """Papers of one more file in a database."""
    with closing(writer(path)) as connection:
        writing = PaperWriter(connection)
        writing.add(source, entries, skip_bad=False)
        writing.sign()


CANDIDATES_ENTRIES = (
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
    path = stocked(tmp_path_factory.mktemp("papers") / "papers.db", *CANDIDATES_ENTRIES)
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
        stocked(path, CANDIDATES_ENTRIES[0])
        with pytest.raises(
            DatasetError, match=r"papers\.db: it was changed by an import"
        ):
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
