"""The books notice what they are there to notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from runner.simulate.billing import LedgerLine
from store.runs import RunFolder
from tests.crash.books import Books
from tests.crash.survey.job import SurveySettings
from tests.crash.survey.job import job as survey
from tests.ledgers import read_ledger
from tests.plugging import plugged
from tests.processes import siftlog, simulated

ITEMS = 4


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Path]:
    """A run that nobody disturbed, and the ledger of its endpoint."""
    cwd = tmp_path_factory.mktemp("books")
    env = plugged(cwd / "plugged", survey="tests.crash.survey.job:job")
    ledger = cwd / "ledger.jsonl"
    server = ("--job", "survey", "--seed", 5, "--ledger", ledger)
    with simulated(*server, cwd=cwd, env=env) as url:
        siftlog(
            *("run", "survey", f"--items={ITEMS}", "--run-id=r", "--replicates=2"),
            *("--model=tested", f"--base-url={url}"),
            cwd=cwd,
            env=env,
        )
    return RunFolder(cwd / "runs" / "r"), ledger


def _books(ran: tuple[RunFolder, Path], lines: list[LedgerLine], to: Path) -> Books:
    """The run's books against a ledger of *lines*."""
    ledger = to / "ledger.jsonl"
    numbered = [replace(line, n=n) for n, line in enumerate(lines)]
    ledger.write_bytes(b"".join(msgspec.json.encode(x) + b"\n" for x in numbered))
    books = Books(ran[0], ledger, survey, SurveySettings(items=ITEMS))
    books.read()
    return books


def test_books_of_an_undisturbed_run_agree(
    ran: tuple[RunFolder, Path], tmp_path: Path
) -> None:
    lines = read_ledger(ran[1])
    books = _books(ran, lines, tmp_path)
    books.check()
    assert books.answered.total() == len(lines)
    assert books.answered.keys() == {line.request for line in lines}
    assert set(books.answered.values()) == {2}, "replicates ask the same"


def test_an_answer_that_was_paid_for_twice_is_noticed(
    ran: tuple[RunFolder, Path], tmp_path: Path
) -> None:
    lines = read_ledger(ran[1])
    with pytest.raises(AssertionError, match="1 answers in the log were paid for"):
        _books(ran, [*lines, lines[3]], tmp_path).check()


def test_a_request_that_stands_in_no_log_is_noticed(
    ran: tuple[RunFolder, Path], tmp_path: Path
) -> None:
    lines = read_ledger(ran[1])
    stray = replace(lines[0], request="0" * 64, outcome="gone")
    with pytest.raises(AssertionError, match="1 requests stand in no log"):
        _books(ran, [*lines, stray], tmp_path).check()


def test_an_answer_that_nobody_gave_is_noticed(
    ran: tuple[RunFolder, Path], tmp_path: Path
) -> None:
    lines = read_ledger(ran[1])
    with pytest.raises(AssertionError, match="1 answers were never given"):
        _books(ran, lines[1:], tmp_path).check()
