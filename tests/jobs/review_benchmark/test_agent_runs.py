"""A run of our own agent by command: what is asked again, and what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import writer
from jobs.review_benchmark.database.writer import PaperWriter
from tests.jobs.review_benchmark.small_review import (
    ENTRIES,
    REVIEW,
    stocked,
    write_truth,
)
from tests.jobs.screening.commanded import Done, command


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
