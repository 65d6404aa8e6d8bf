"""Whole runs over real logs: start, interrupt, resume, refuse what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runner.engine.driver import Driver
from runner.errors import RunChanged, RunnerError, UsageError
from runner.job import InputFile, Task
from runner.messages import ChatRequest
from runner.options import RunOptions, options_from
from runner.run import launch
from runner.run.context import RunContext
from runner.score.scoring import effective_settings, score_run
from runner.workload import load_workload
from store.clock import SystemClock
from store.control import Command, send_command
from store.database import open_reader
from store.events import CommandApplied, CommandRejected
from store.log.sqlite import SqliteLog
from store.read.status import Status, run_started, status
from store.read.tasks import events
from store.runs import RunFolder
from tests.replacing import replace
from tests.runner.toy_jobs import ToyJob, ToySettings


@asynccontextmanager
async def _unwatched(driver: Driver, log: Path, before: Status) -> AsyncIterator[None]:
    del driver, log, before
    yield


def _shell(tmp_path: Path, told: list[str] | None = None) -> RunContext:
    return RunContext(
        clock=SystemClock(),
        environment={},
        runs_dir=tmp_path,
        notify=(told if told is not None else []).append,
        launched=lambda: None,
        watch=_unwatched,
    )


class Run:
    """A run of the toy job in a temporary folder."""

    def __init__(self, tmp_path: Path, job: ToyJob | None = None) -> None:
        self.folder = RunFolder(tmp_path / "r1")
        self.job = job or ToyJob()
        self.options: RunOptions = options_from({"model": ["baseline/lexical"]})
        self.shell = _shell(tmp_path)
        self.settings = ToySettings(items=4)

    def start(self) -> launch.RunOutcome:
        work = load_workload(self.job, self.settings)
        return asyncio.run(launch.start(self.folder, work, self.options, self.shell))

    def resume(self, **options: bool) -> launch.RunOutcome:
        work = load_workload(self.job, self.settings)
        return asyncio.run(
            launch.resume(
                self.folder,
                work,
                self.options,
                self.shell,
                accept_changes=options.get("accept_changes", False),
            )
        )

    def status(self) -> Status:
        with open_reader(self.folder.log) as reader:
            return status(reader)

    def score(self, *, record: bool = True) -> object:
        settings = effective_settings(self.job, self.folder, {})
        return asyncio.run(
            score_run(
                self.job, self.folder, settings, clock=SystemClock(), record=record
            )
        )


def test_a_run_is_carried_to_its_end_and_scored(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.start().outcome == "finished"
    state = run.status()
    assert (state.tasks.completed, state.tasks.open) == (4 + 8 + 4, 0)
    assert state.attempts.started == state.attempts.answered == 16
    scoring = run.score()
    assert scoring.number == 1
    assert scoring.scorecard.summary == "16 answers"
    assert (run.folder.scores / "1" / "scorecard.json").read_bytes() == scoring.content
    assert run.status().scorings == (1,)


@pytest.mark.parametrize("model", ["baseline/lexical", "recorded:answers.jsonl"])
def test_a_run_that_costs_nothing_records_no_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers.jsonl").write_text('{"key": "i0", "response": "x"}\n')
    run = Run(tmp_path)
    run.options = options_from({"model": [model]})
    run.start()
    with open_reader(run.folder.log) as reader:
        assert run_started(reader).expected is None


def _files(folder: Path) -> dict[str, bytes]:
    """Every file with its content, what SQLite's readers leave beside a log apart."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("log.db-")
    }


def test_scoring_twice_gives_the_same_bytes_and_no_record_leaves_no_trace(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()
    first = run.score()
    files = _files(tmp_path)
    silent = run.score(record=False)
    assert silent.number is None
    assert _files(tmp_path) == files
    assert first.content == silent.content == run.score().content


def test_resuming_a_finished_run_sends_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.start()
    assert run.resume().outcome == "finished"
    assert run.status().attempts.started == 16


def test_a_second_run_under_the_same_name_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.start()
    with pytest.raises(UsageError, match="siftlog resume r1"):
        run.start()


class Asking(ToyJob):
    """A job whose prompt was edited."""

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        request = super().request(dataset, task)
        (message,) = request.messages
        (part,) = message.parts
        edited = replace(part, text=part.text + " please")
        return replace(request, messages=(replace(message, parts=(edited,)),))


def test_a_resume_that_would_send_other_prompts_asks_first(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.start()
    run.job = Asking()
    with pytest.raises(RunChanged, match="--accept-changes"):
        run.resume()
    assert run.resume(accept_changes=True).outcome == "finished"
    assert run.status().attempts.started == 16


class Filed(ToyJob):
    """A job with an input file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def inputs(self, settings: ToySettings) -> tuple[InputFile, ...]:
        del settings
        return (InputFile(setting="bench", path=self.path),)


def test_a_resume_with_other_data_asks_first_and_says_which_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bench.jsonl"
    path.write_text("one")
    run = Run(tmp_path, Filed(path))
    run.start()
    path.write_text("other")
    with pytest.raises(RunChanged, match=r"bench\.jsonl \(bench\)"):
        run.resume()


def test_an_input_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    run = Run(tmp_path, Filed(tmp_path / "nowhere.jsonl"))
    with pytest.raises(RunnerError, match=r"nowhere\.jsonl cannot be read: No such"):
        run.start()
    assert not run.folder.path.exists()


def test_a_finished_run_takes_up_a_retry_that_waited_in_its_file(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()
    for kind, payload in (
        ("retry", {"filter": "stage:read"}),
        ("retry", {"filter": "latency>>"}),
        ("dance", {}),
    ):
        send_command(
            run.folder,
            Command(
                id=f"{kind} {payload}",
                author="someone",
                host="somewhere",
                at_us=1,
                kind=kind,
                payload=payload,
            ),
        )
    assert run.resume().outcome == "finished"
    assert run.resume().outcome == "finished"
    with open_reader(run.folder.log) as reader:
        answered = events(reader, kinds=["command_applied", "command_rejected"])
    said = [
        recorded.event.effect
        if isinstance(recorded.event, CommandApplied)
        else recorded.event.reason
        for recorded in answered
        if isinstance(recorded.event, CommandApplied | CommandRejected)
    ]
    assert said[0] == "4 tasks reopened"
    assert said[2] == "this siftlog cannot dance"
    assert len(said) == 3
    state = run.status()
    assert state.tasks.planned == 16
    assert state.attempts.started == 16 + 4


def test_while_another_process_writes_a_scoring_is_partial_and_unrecorded(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()

    async def main() -> object:
        settings = effective_settings(run.job, run.folder, {})
        async with await SqliteLog.open(
            run.folder.log, clock=SystemClock(), owner="somebody"
        ):
            with pytest.raises(RunnerError, match="written by another process"):
                launch.check_alive(run.folder)
            return await score_run(
                run.job, run.folder, settings, clock=SystemClock(), record=True
            )

    scoring = asyncio.run(main())
    assert scoring.number is None
    assert not run.folder.scores.exists()
