"""A look at a log: what it shows, what it costs, and what is said when it is gone."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from store import database, runs
from store.read.live import AT_WORK
from store.runs import RunFolder
from tests.nobody import as_nobody, open_to_others
from tests.store.logs import COURSE, edit, written
from tests.store.memory_log import FakeClock
from tests.tui.sights import every_state, later, snapshot, with_signs
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, RunSource


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    written(tmp_path / "log.db", *COURSE)
    return RunFolder(tmp_path)


def test_every_state_is_told_with_its_word_and_sentence(tmp_path: Path) -> None:
    from tui.render.sentences import sentence  # noqa: PLC0415

    for word, seen in every_state(tmp_path / "r1"):
        assert seen.state == word
        assert bool(sentence(seen)) == (word != "live")


def test_what_is_shown_belongs_to_one_event(folder: RunFolder) -> None:
    with RunSource(folder, FakeClock()) as source:
        seen = source.poll()
    assert isinstance(seen, RunSnapshot)
    assert seen.status.last_seq > 0
    assert seen.ended == 3
    assert seen.facts.last_failure is not None
    assert seen.facts.last_failure.message == "the endpoint is too busy"
    assert [call.task for call in seen.facts.oldest] == [5]


def test_an_unchanged_log_is_not_read_again(folder: RunFolder) -> None:
    clock = FakeClock()
    with RunSource(folder, clock) as source:
        first = source.poll()
        clock.advance(5)
        second = source.poll()
        edit(folder.log, "UPDATE heartbeat SET pid = 7")
        third = source.poll()
    assert isinstance(first, RunSnapshot)
    assert isinstance(second, RunSnapshot)
    assert isinstance(third, RunSnapshot)
    assert second.facts is first.facts
    assert second.now_us == first.now_us + 5_000_000
    assert third.facts is not first.facts
    assert third.status.heartbeat is not None
    assert third.status.heartbeat.pid == 7


def test_ages_advance_more_slowly_where_no_process_works(tmp_path: Path) -> None:
    for state, seen in every_state(tmp_path / "r1"):
        start = replace(seen, now_us=seen.now_us // 5_000_000 * 5_000_000)
        changed = [
            s
            for s in range(1, 6)
            if not start.is_same_as(replace(start, now_us=start.now_us + s * 1_000_000))
        ]
        assert changed[-1] == 5
        assert (changed[0] == 1) == (state in AT_WORK), state


def test_a_copy_in_place_of_a_log_that_may_not_be_opened_is_made_again(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "open_reader", database._open_copy)
    with RunSource(folder, FakeClock()) as source:
        first, second = source.poll(), source.poll()
        edit(folder.log, "UPDATE heartbeat SET pid = 7")
        third = source.poll()
    assert isinstance(first, RunSnapshot)
    assert isinstance(second, RunSnapshot)
    assert isinstance(third, RunSnapshot)
    assert second.facts is first.facts
    assert third.status.heartbeat is not None
    assert third.status.heartbeat.pid == 7


def test_a_log_that_is_gone_is_told_and_found_again(folder: RunFolder) -> None:
    with RunSource(folder, FakeClock()) as source:
        assert isinstance(source.poll(), RunSnapshot)
        folder.log.rename(folder.path / "away.db")
        gone = source.poll()
        assert isinstance(gone, ReadProblem)
        assert "was deleted or moved" in gone.sentence
        (folder.path / "away.db").rename(folder.log)
        assert isinstance(source.poll(), RunSnapshot)


def test_another_file_in_its_place_is_told_and_not_shown(
    folder: RunFolder, tmp_path: Path
) -> None:
    with RunSource(folder, FakeClock()) as source:
        assert isinstance(source.poll(), RunSnapshot)
        written(tmp_path / "other.db", *COURSE[:2]).rename(folder.log)
        for _ in range(2):
            seen = source.poll()
            assert isinstance(seen, ReadProblem)
            assert "another file" in seen.sentence


def test_a_folder_that_may_not_be_entered_is_told(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("closed") / "r1"
    folder.mkdir()
    open_to_others(folder)
    folder.chmod(0o700 if os.getuid() == 0 else 0)

    def look() -> None:
        with RunSource(RunFolder(folder), FakeClock()) as source:
            seen = source.poll()
        if (
            not isinstance(seen, ReadProblem)
            or "is not accessible" not in seen.sentence
        ):
            raise AssertionError

    try:
        assert as_nobody(look) == 0
    finally:
        folder.chmod(0o755)


def test_what_is_no_log_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_text("no database" * 200)
    with RunSource(RunFolder(tmp_path), FakeClock()) as source:
        seen = source.poll()
    assert isinstance(seen, ReadProblem)
    assert "is not a database" in seen.sentence


def test_a_look_leaves_nothing_open_and_nothing_behind(folder: RunFolder) -> None:
    before = _files(folder.path)
    with RunSource(folder, FakeClock()) as source:
        source.poll()
        assert source._reader is not None
        assert not source._reader.in_transaction
    assert _files(folder.path) == before


def _files(folder: Path) -> dict[Path, bytes]:
    """All that is in the files of a run; SQLite's index of an empty WAL is not."""
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    return {
        path: data for path, data in kept.items() if data and path.suffix != ".db-shm"
    }


def test_a_run_has_ended_when_nobody_works_on_it(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    assert not live.is_ended
    assert not later(live, 60).is_ended  # silent, and yet somebody holds its log
    assert with_signs(live, phase="run_finished").is_ended


def test_a_process_that_lives_on_is_seen_after_its_end(folder: RunFolder) -> None:
    # the second is above all numbers of processes
    for pid, lives in ((os.getpid(), True), (2**22 + 1, False)):
        host = socket.gethostname()
        edit(folder.log, f"UPDATE heartbeat SET pid = {pid}, host = '{host}'")
        with RunSource(folder, FakeClock()) as source:
            seen = source.poll()
        assert isinstance(seen, RunSnapshot)
        assert seen.has_process is lives


def test_a_pace_is_of_whole_minutes_since_work_began(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    assert live.recent_minutes == 0
    assert live.rate is None
    after = later(live, 120)
    assert after.recent_minutes == 1
    assert after.completed_by_minute[-2:] == [1, 0]
    assert after.completed_by_minute[-3] is None
