"""Whole runs where a person, another process or a closed terminal gets in the way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.cli.console import print_json, print_note
from runner.errors import UsageError
from runner.imported_answers import write_answers
from runner.job import ImportedAnswer, TaskSpec
from runner.options import options_from
from runner.run.folder import create
from runner.score.scoring import effective_settings, score_run
from runner.workload import load_workload
from store.clock import SystemClock
from store.control import Command, send_command
from store.database import open_reader
from store.events import AttemptStarted, CommandRejected, TasksReopened
from store.log.sqlite import SqliteLog
from store.read.status import scorings
from store.read.tasks import events
from tests.processes import siftlog
from tests.replacing import replace
from tests.runner.run.late import late
from tests.runner.run.test_launch import Run, _unwatched
from tests.runner.toy_jobs import ToyJob, ToySettings


async def _break_off(run: Run) -> None:
    """Leave one call of the finished run unknown, as a kill -9 does."""
    async with await SqliteLog.open(
        run.folder.log, clock=SystemClock(), owner="somebody"
    ) as log:
        await log.append(TasksReopened(tasks=[1], by="somebody"))
        sent = await log.started(1)
        assert sent is not None
        await log.append(AttemptStarted(task=1, attempt=2, request_sha256=sent))


def test_a_held_call_is_sent_again_once_a_person_says_so(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.start()
    asyncio.run(_break_off(run))
    run.options = options_from({"unknown": "hold"})
    for _ in range(2):
        ended = run.resume()
        assert ended.outcome == "held"
        assert "--unknown retry" in (ended.reason or "")
    assert run.status().attempts.unknown == 1
    run.options = options_from({"unknown": "retry"})
    assert run.resume().outcome == "finished"
    state = run.status()
    assert (state.tasks.open, state.attempts.started) == (0, 16 + 2)


def test_an_imported_run_is_never_sent_to_a_model(tmp_path: Path) -> None:
    run = Run(tmp_path)
    work = load_workload(run.job, ToySettings(items=1, words=1))

    async def import_() -> None:
        async with create(
            run.folder, work, run.options, SystemClock(), imported=True
        ) as log:
            spec = TaskSpec(stage="read", key="i0")
            answer = ImportedAnswer(spec=spec, model="m", replicate=1, text="a b")
            await write_answers(log, work, [answer])

    asyncio.run(import_())
    run.settings = ToySettings(items=1, words=2)
    with pytest.raises(UsageError, match="r1 was imported"):
        run.resume()
    assert run.status().attempts.started == 0


def _ask(run: Run, kind: str, payload: dict[str, str] | None = None) -> None:
    command = Command(
        id=kind,
        author="somebody",
        host="here",
        at_us=1,
        kind=kind,
        payload=payload or {},
    )
    send_command(run.folder, command)


def test_a_drain_that_came_too_late_does_not_end_the_next_process(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()
    _ask(run, "drain")
    assert run.resume().outcome == "finished"
    with open_reader(run.folder.log) as reader:
        (refused,) = events(reader, kinds=["command_rejected"])
    assert isinstance(refused.event, CommandRejected)
    assert "had ended" in refused.event.reason


def test_a_run_that_was_given_more_to_do_as_it_ended_is_not_called_finished(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)

    def is_reopened() -> bool:
        with open_reader(run.folder.log) as reader:
            return bool(events(reader, kinds=["tasks_reopened"]))

    watch = late(
        lambda: _ask(run, "retry", {"filter": "stage:sum"}), is_seen=is_reopened
    )
    run.shell = replace(run.shell, watch=watch)
    ended = run.start()
    assert ended.outcome == "drained"
    assert "siftlog resume r1" in (ended.reason or "")
    with open_reader(run.folder.log) as reader:
        assert events(reader, kinds=["run_finished"]) == []
    run.shell = replace(run.shell, watch=_unwatched)
    assert run.resume().outcome == "finished"
    assert run.status().attempts.started == 16 + 4


def test_a_scoring_reads_with_the_settings_that_the_run_last_went_on_with(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()
    run.settings = ToySettings(items=4, words=1)
    run.resume()
    assert effective_settings(run.job, run.folder, {}) == run.settings


def test_scorings_at_the_same_time_get_numbers_and_folders_of_their_own(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()

    class Interrupted(ToyJob):
        """A job during whose scoring somebody else scores too."""

        def score(self, dataset: ToySettings, answers: object) -> object:
            card = super().score(dataset, answers)
            if not run.folder.scores.exists():
                with ThreadPoolExecutor(1) as other:
                    other.submit(asyncio.run, _score(run, ToyJob())).result()
            return replace(card, summary="the second one")

    made = asyncio.run(_score(run, Interrupted()))
    assert made.number == 2
    with open_reader(run.folder.log) as reader:
        assert [scoring.number for scoring in scorings(reader)] == [1, 2]
    assert sorted(path.name for path in run.folder.scores.iterdir()) == ["1", "2"]


async def _score(run: Run, job: ToyJob) -> object:
    settings = effective_settings(job, run.folder, {})
    return await score_run(job, run.folder, settings, clock=SystemClock(), record=True)


def test_nobody_listening_is_no_reason_to_give_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write_ = os.pipe()
    os.close(read)
    with os.fdopen(write_, "w") as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        print_note("one sentence")
        print_note("and another one")


def test_a_line_of_json_is_one_line_and_harmless_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = "a\u009b31m\u2028b\u202ec\x85d\ud800"
    print_json("siftlog.form/1", {"key": key})
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1
    assert out.isascii()
    assert json.loads(out) == {"schema": "siftlog.form/1", "key": key}


def test_a_recording_with_gaps_answers_what_it_holds_and_fails_the_rest(
    tmp_path: Path,
) -> None:
    recording = tmp_path / "answers.jsonl"
    lines = [{"key": f"i{i}", "response": "a"} for i in range(60, 70)]
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = Run(tmp_path)
    run.settings = ToySettings(items=70, words=0)
    run.options = options_from({"model": [f"recorded:{recording}"]})
    assert run.start().outcome == "finished"
    tasks = run.status().tasks
    assert (tasks.completed, tasks.failed) == (10, 60)


def test_doctor_refuses_an_address_it_cannot_read(tmp_path: Path) -> None:
    for url in ("http://[::1", "http://me:password@127.0.0.1:9"):
        done = siftlog("doctor", "--base-url", url, cwd=tmp_path, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "password@" not in done.stdout + done.stderr
