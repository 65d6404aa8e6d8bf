"""When a run was worked on: what a kill or a pause in between leaves out."""

from __future__ import annotations

from pathlib import Path

from store.database import open_reader
from store.events import AttemptsAbandoned
from store.read.course import course
from tests.store.logs import (
    FINISHED,
    RESUMED,
    SCORED,
    lived,
    taken_up_again,
    written,
)
from tests.store.samples import RUN_STARTED, plan, started, task


def test_the_time_between_two_sessions_is_not_worked(tmp_path: Path) -> None:
    with open_reader(taken_up_again(tmp_path / "log.db")) as reader:
        past = course(reader)
    assert past.sessions == 2
    # 30 s up to the last event before the kill, and 60 s after the resume
    assert past.worked_s == 90.0
    assert past.ended_us == past.started_us + 170_000_000


def test_what_a_later_process_records_is_no_work_of_a_killed_one(
    tmp_path: Path,
) -> None:
    unknown = AttemptsAbandoned(attempts=[(1, 1)])
    log = lived(
        tmp_path / "log.db",
        (0, ((RUN_STARTED, 10), (plan([task(1)]), 20), (started(1), 0))),
        (80, ((SCORED, 0),)),
        (80, ((unknown, 1), (RESUMED, 60), (started(1, 2), 0))),
        (80, ((SCORED, 0),)),
    )
    with open_reader(log) as reader:
        assert course(reader).worked_s == 90.0
        assert course(reader, 7).worked_s == 90.0
        assert course(reader, 4).worked_s == 30.0


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
