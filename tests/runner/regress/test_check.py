"""Regress on runs of toy jobs: a changed method is found at its step."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from runner.engine.driver import Driver
from runner.errors import RunnerError
from runner.fingerprint import Input, input_hashes
from runner.job import (
    Answer,
    Answers,
    InputFile,
    Job,
    ReplyParser,
    Stage,
    Task,
    TaskSpec,
    parsed_families,
)
from runner.messages import ChatRequest, ParseFailure, Reply
from runner.options import options_from
from runner.regress import check
from runner.regress.report import CheckedStep, RunReport
from runner.run import launch
from runner.run.context import RunContext
from runner.score.scoring import effective_settings, score_run
from runner.scorecard import Scorecard, Verdict
from runner.workload import load_workload
from store.clock import SystemClock
from store.read.status import Status
from store.runs import RunFolder
from tests.replacing import replace
from tests.runner.toy_jobs import PanelJob, PanelSettings, ToyJob, ToySettings


@asynccontextmanager
async def _unwatched(driver: Driver, log: Path, before: Status) -> AsyncIterator[None]:
    del driver, log, before
    yield


class Recorded:
    """A finished run of a job, and its check with another one."""

    def __init__(
        self, folder: Path, job: Job, settings: BaseModel, *, finishes: bool = True
    ) -> None:
        self.folder = RunFolder(folder / "r1")
        self.job = job
        options = options_from({"model": ["baseline/lexical"]})
        context = RunContext(
            clock=SystemClock(),
            environment={},
            runs_dir=folder,
            notify=lambda _: None,
            launched=lambda: None,
            watch=_unwatched,
        )
        self._launching = (options, context)
        work = load_workload(job, settings)
        asyncio.run(launch.start(self.folder, work, options, context))
        if finishes:
            self.score()

    def resume(self, settings: BaseModel) -> None:
        """Go on under other settings."""
        work = load_workload(self.job, settings)
        asyncio.run(
            launch.resume(self.folder, work, *self._launching, accept_changes=True)
        )

    def score(self) -> None:
        """Record a scoring."""
        settings = effective_settings(self.job, self.folder, {})
        scored = score_run(
            self.job, self.folder, settings, clock=SystemClock(), record=True,
            report=False,
        )  # fmt: skip
        asyncio.run(scored)

    def checked(self, monkeypatch: pytest.MonkeyPatch, job: Job) -> RunReport:
        """Check the run as if *job* were installed today."""
        monkeypatch.setattr("runner.score.repeat.job_of", lambda _: job)
        (report,) = check.check_runs(
            [self.folder],
            processes=1,
            progress=lambda _: None,
        )
        return report


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("toy"), ToyJob(), ToySettings(items=4))


def counts(report: RunReport) -> dict[str, int]:
    """The steps that differ, and how many results of each."""
    assert not report.problem
    return {
        step.value: tally.differs
        for step, tally in report.steps.items()
        if tally.differs
    }


def test_the_same_code_changes_nothing_and_writes_nothing(
    toy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for path in toy.folder.path.rglob("*")
            if path.is_file() and not path.name.startswith("log.db-")
        }

    before = files()
    report = toy.checked(monkeypatch, ToyJob())
    assert files() == before
    assert counts(report) == {}
    compared = {step: tally.compared for step, tally in report.steps.items()}
    assert compared == {
        CheckedStep.PLAN: 16,
        CheckedStep.REQUESTS: 16,
        CheckedStep.PARSE: 16,
        CheckedStep.SCORES: 0,
        CheckedStep.SCORECARD: 1,
    }
    assert not any(tally.unchecked for tally in report.steps.values())


class Fewer(ToyJob):
    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield from (spec for spec in super().plan(dataset) if spec.key != "i1")


class More(ToyJob):
    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield TaskSpec(stage="read", key="new")
        yield from super().plan(dataset)


class Backwards(ToyJob):
    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield from reversed([*super().plan(dataset)])


class WithContext(ToyJob):
    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield from (replace(spec, context="{}") for spec in super().plan(dataset))


class RaisingPlan(ToyJob):
    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        raise KeyError(dataset)
        yield


class OneWord(ToyJob):
    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        yield from super().follow_up(replace_words(dataset, 1), group)


def replace_words(dataset: ToySettings, words: int) -> ToySettings:
    """The settings with another number of words."""
    return dataset.model_copy(update={"words": words})


class NoSum(ToyJob):
    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        if group[0].task.stage != "ask":
            yield from super().follow_up(dataset, group)


class RaisingFollowUp(ToyJob):
    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        if group[0].task.key == "i2":
            raise KeyError(dataset)
        yield from super().follow_up(dataset, group)


class LongerReplies(ToyJob):
    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        return replace(super().request(dataset, task), max_tokens=17)


class RaisingRequest(ToyJob):
    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        if task.stage == "sum":
            raise KeyError(dataset)
        return super().request(dataset, task)


class Unreadable(ToyJob):
    def __init__(self) -> None:
        super().__init__()
        last = Stage(name="sum", parse=unreadable, follows=False)
        self.stages = (*self.stages[:2], last)


def unreadable(dataset: ToySettings, task: Task, reply: Reply) -> ParseFailure:
    """Read nothing."""
    del dataset, task, reply
    return ParseFailure(reason="no_sum", detail="at the end")


class OtherSummary(ToyJob):
    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        card = super().score(dataset, answers)
        (metric,) = card.models["baseline/lexical"]
        better = replace(metric, value=99)
        return replace(card, models={"baseline/lexical": (better,)})


class RaisingScore(ToyJob):
    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        raise ZeroDivisionError(dataset, answers)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (Fewer, {"plan": 1}),
        (More, {"plan": 1}),
        (Backwards, {"plan": 1}),
        (WithContext, {"plan": 4}),
        (OneWord, {"plan": 4}),
        (NoSum, {"plan": 4}),
        (RaisingFollowUp, {"plan": 3}),  # itself, and its two words
        (LongerReplies, {"requests": 16}),
        (RaisingRequest, {"requests": 4}),
        (Unreadable, {"parse": 4}),
        (OtherSummary, {"scorecard": 1}),
        (RaisingScore, {"scorecard": 1}),
    ],
)
def test_a_change_is_found_at_the_step_that_it_changes(
    toy: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    job: type[ToyJob],
    expected: dict[str, int],
) -> None:
    assert counts(toy.checked(monkeypatch, job())) == expected


def test_the_first_event_and_both_results_are_named(
    toy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = toy.checked(monkeypatch, Fewer()).first
    assert first is not None
    assert (first.seq, first.where) == (3, "i1")
    assert (first.recorded, first.now) == ("read, baseline/lexical", "not planned")
    parse = toy.checked(monkeypatch, Unreadable()).steps[CheckedStep.PARSE].first
    assert parse is not None
    assert (parse.recorded, parse.now) == ("parsed", "no_sum (at the end)")
    request = toy.checked(monkeypatch, LongerReplies()).steps[CheckedStep.REQUESTS]
    assert request.first is not None
    assert request.first.now.endswith("(max_tokens)")
    card = toy.checked(monkeypatch, OtherSummary()).first
    assert card is not None
    path = "models.baseline/lexical.metrics.answers.value"
    assert (card.recorded, card.now) == (f"{path} 16", "99")


def test_what_the_code_refuses_to_plan_differs(
    toy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = toy.checked(monkeypatch, RaisingPlan())
    assert counts(report) == {"plan": 1}
    first = report.first
    assert first is not None
    assert "KeyError" in first.now


class Strict(ToyJob):
    class Settings(BaseModel):
        """Settings without the number of words."""

        model_config = ConfigDict(extra="forbid")
        items: int = 3
        reask: int = 0


def test_a_setting_that_is_gone_is_a_difference(
    toy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = toy.checked(monkeypatch, Strict())
    assert counts(report) == {"plan": 1, "scorecard": 1}
    assert "words" in report.steps[CheckedStep.REQUESTS].unchecked


def test_a_new_scoring_accepts_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Recorded(tmp_path, ToyJob(), ToySettings(items=1))
    run.job = OtherSummary()
    assert counts(run.checked(monkeypatch, run.job)) == {"scorecard": 1}
    run.score()
    assert counts(run.checked(monkeypatch, run.job)) == {}
    assert counts(run.checked(monkeypatch, ToyJob())) == {"scorecard": 1}


def test_each_event_is_compared_under_the_settings_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Recorded(tmp_path, ToyJob(), ToySettings(items=2))
    run.resume(ToySettings(items=3, words=1))
    report = run.checked(monkeypatch, ToyJob())
    assert counts(report) == {}
    assert report.steps[CheckedStep.PLAN].compared == 2 + 4 + 2 + 1 + 1 + 1
    assert counts(run.checked(monkeypatch, Fewer())) == {"plan": 1}


def test_runs_of_other_roles_are_planned_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Recorded(tmp_path, PanelJob(), PanelSettings())
    assert counts(run.checked(monkeypatch, PanelJob())) == {}


class FileJob(ToyJob):
    class Settings(ToySettings):
        """Settings with a file."""

        file: Path

    def inputs(self, settings: Any) -> tuple[InputFile, ...]:
        return (InputFile(setting="file", path=settings.file),)


def test_an_input_that_is_gone_is_not_checked_unless_the_log_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.txt"
    path.write_text("1")
    settings = FileJob.Settings(file=path)
    unscored = Recorded(tmp_path / "a", FileJob(), settings, finishes=False)
    scored = Recorded(tmp_path / "b", FileJob(), settings)
    path.write_text("2")
    report = unscored.checked(monkeypatch, FileJob())
    assert counts(report) == {}
    assert "data.txt" in report.steps[CheckedStep.PLAN].unchecked
    report = scored.checked(monkeypatch, FileJob())
    assert counts(report) == {}
    assert report.steps[CheckedStep.PLAN].compared == 12
    assert report.steps[CheckedStep.SCORECARD].compared == 1


def test_an_input_is_hashed_once_for_all_parts_of_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.txt"
    path.write_text("1")
    run = Recorded(tmp_path / "a", FileJob(), FileJob.Settings(file=path))
    hashed: list[Path] = []

    def hashes(files: list[InputFile]) -> list[Input]:
        hashed.extend(file.path for file in files)
        return input_hashes(files)

    monkeypatch.setattr("runner.score.repeat.input_hashes", hashes)
    assert counts(run.checked(monkeypatch, FileJob())) == {}
    assert hashed == [path]


def test_without_the_options_of_a_run_its_requests_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Recorded(tmp_path, ToyJob(), ToySettings(items=1))
    run.folder.config.unlink()
    report = run.checked(monkeypatch, LongerReplies())
    assert counts(report) == {}
    assert report.steps[CheckedStep.REQUESTS].unchecked == "run.toml is missing"


def first_word(stage: str, reply: Reply) -> str:
    """The first word of a reply."""
    del stage
    return reply.text.split()[0]


def length(stage: str, reply: Reply) -> str:
    """The length of a reply, but of one that is short its word."""
    return str(len(reply.text)) if len(reply.text) > 6 else first_word(stage, reply)


class Keeping(ToyJob):
    """Keeps parsed values that no verdict or metric shows."""

    read = staticmethod(first_word)

    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        parser = ReplyParser(name="toy", result=str, parse=self.read)
        for _ in parsed_families(answers, parser):
            pass
        return super().score(dataset, answers)


class KeepingOther(Keeping):
    read = staticmethod(length)


def test_a_value_that_only_the_kept_parses_have_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Recorded(tmp_path, Keeping(), ToySettings(items=2))
    report = run.checked(monkeypatch, Keeping())
    assert counts(report) == {}
    # reasons in the log, and values
    assert report.steps[CheckedStep.PARSE].compared == 8 + 8
    report = run.checked(monkeypatch, KeepingOther())
    assert counts(report) == {"parse": 4}
    first = report.first
    assert first is not None
    assert (first.where, first.recorded, first.now) == ("i0/a", "ask", "8")
    (run.folder.path / "parsed" / "toy").unlink()
    assert counts(run.checked(monkeypatch, KeepingOther())) == {}


class Judging(ToyJob):
    """Has two verdicts of each reply."""

    read = staticmethod(first_word)

    def score(self, dataset: ToySettings, answers: Answers) -> Scorecard:
        verdicts = tuple(
            Verdict(
                task=answer.task.number, model=answer.task.model,
                stage=answer.task.stage, key=answer.task.key, part=part,
                value=self.read(answer.task.stage, answer.reply),
                expected="", correct=None, rule="",
            )
            for family in answers.families()
            for answer in family
            if isinstance(answer.reply, Reply)
            for part in ("a", "b")
        )  # fmt: skip
        return replace(super().score(dataset, answers), details=verdicts)


class JudgingOther(Judging):
    read = staticmethod(length)


def test_a_reply_that_several_scorings_read_differently_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ToySettings(items=2)
    run = Recorded(tmp_path, Judging(), settings)
    for _ in range(2):
        run.resume(settings)
        run.score()
    assert counts(run.checked(monkeypatch, Judging())) == {}
    report = run.checked(monkeypatch, JudgingOther())
    assert counts(report) == {"parse": 4}
    # the replies in the log, and the verdicts of those that are read differently
    assert report.steps[CheckedStep.PARSE].compared == 8 + 4


def test_two_processes_find_what_one_does(
    toy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.score.repeat.job_of", lambda _: Unreadable())
    lines: list[str] = []
    (report,) = check.check_runs([toy.folder], processes=2, progress=lines.append)
    assert counts(report) == {"parse": 4}
    assert lines == ["1 of 2 checks of 1 runs", "2 of 2 checks of 1 runs"]


def test_a_killed_process_is_a_sentence(
    toy: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "check_unit", lambda _: os.kill(os.getpid(), SIGKILL))
    with pytest.raises(RunnerError, match="try again with --processes 1"):
        check.check_runs([toy.folder], processes=2, progress=lambda _: None)
