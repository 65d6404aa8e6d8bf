"""When a run was worked on: what a kill or a pause in between leaves out."""

from __future__ import annotations

from pathlib import Path

from store.database import open_reader
from store.read.course import course
from tests.store.logs import FINISHED, taken_up_again, written
from tests.store.samples import RUN_STARTED, plan, started, task


def test_the_time_between_two_sessions_is_not_worked(tmp_path: Path) -> None:
    with open_reader(taken_up_again(tmp_path / "log.db")) as reader:
        past = course(reader)
    assert past.sessions == 2
    # 30 s up to the last event before the kill, and 60 s after the resume
    assert past.worked_s == 90.0
    assert past.ended_us == past.started_us + 170_000_000


def test_a_run_that_works_has_no_end(tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", [RUN_STARTED], [plan([task(1)]), started(1)])
    with open_reader(log) as reader:
        past = course(reader)
    assert (past.ended_us, past.sessions) == (None, 1)


def test_an_end_is_that_of_the_last_session(tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", [RUN_STARTED], [FINISHED])
    with open_reader(log) as reader:
        past = course(reader)
    assert past.ended_us is not None
    assert past.worked_us == past.ended_us - past.started_us
