"""An added stage asks what it is about, and leaves the rest of the run as it was."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.added_stages import extended, original, stages_in
from runner.clients.client import Call, ClientOptions
from runner.clients.offline import FunctionClient
from runner.errors import BadRequest, UsageError
from runner.fingerprint import code_hash
from runner.job import Job
from runner.messages import AnyReply, ChatRequest
from runner.options import RunOptions, options_from
from runner.regress import check
from runner.run import endpoints, launch
from runner.run.add_stage import (
    StageRehearsal,
    StageSource,
    check_addable,
    stage_forecast,
    total_budget,
)
from runner.run.rehearsal import baseline_reply
from runner.score import repeat
from runner.score.repeat import rescorer
from runner.score.scoring import score_run
from runner.workload import Workload, load_workload
from store.clock import SystemClock
from store.control import Command, send_command
from store.database import open_reader
from store.read.tasks import every_task
from store.read.usage import spending
from store.runs import RunFolder
from store.task import TaskRow, TaskState
from store.verify import verify
from tests.runner.run.test_fork import EditedJob, Edits
from tests.runner.run.test_launch import _shell
from tests.runner.toy_jobs import ToySettings

EXAMPLES = 150 if "SIFTLOG_PROVE" in os.environ else 4

FIELDS = """
[fields.fits]
ask = "Does the reply name the prompt's words?"
type = "one-of"
options = ["yes", "no"]
"""

JUDGE = f'name = "support"\njudges = "ask"\n{FIELDS}'

Sent = list[tuple[str, str, str, int]]
"""Stage, key, model and replicate of each call."""


@dataclass(frozen=True)
class World:
    """A folder with one run, beside a deterministic endpoint."""

    path: Path
    job: Job
    settings: ToySettings
    models: tuple[str, ...] = ("m1",)
    replicates: int = 1
    has_failures: bool = False  #: whether some calls are refused

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.path / "r")

    def options(self, **changes: Any) -> RunOptions:
        plain = {
            "model": self.models,
            "replicates": self.replicates,
            "stage_models": ["judge"],
            "base_url": "http://127.0.0.1:9/v1",
            "price": (0.15, 0.6),
            "api": "chat",
        }
        return options_from({**plain, **changes})

    def current(self) -> Job:
        """The job with the stages that the log has."""
        job = self.job
        if self.folder.log.exists():
            with open_reader(self.folder.log) as reader:
                for added in stages_in(reader):
                    job = extended(job, added)
        return job

    def work(self, job: Job) -> Workload:
        return load_workload(job, self.settings)

    async def carried(self, job: Job, sent: Sent, **resumed: Any) -> str:
        """Start the run, or resume it; return the outcome of the process."""

        async def answer(call: Call) -> AnyReply:
            task = call.task
            sent.append((task.stage, task.key, task.model, task.replicate))
            if self.has_failures and task.stage == "ask" and "/x" in task.key:
                raise BadRequest("no")
            return await baseline_reply(job, call.request)

        def opened(_model: str, _options: ClientOptions) -> FunctionClient:
            return FunctionClient(answer)

        budget = resumed.pop("budget", None)
        shell = _shell(self.path)
        with pytest.MonkeyPatch.context() as replaced:
            replaced.setattr(endpoints, "open_client", opened)
            if self.folder.log.exists():
                ended = await launch.resume(
                    self.folder,
                    self.work(job),
                    self.options(budget=budget),
                    shell,
                    accept_changes=False,
                    **resumed,
                )
            else:
                options = self.options(stage_models=None)
                ended = await launch.start(self.folder, self.work(job), options, shell)
        return ended.outcome

    def run(self) -> Sent:
        sent = Sent()
        assert asyncio.run(self.carried(self.job, sent)) == "finished"
        return sent

    def source(self, text: str) -> StageSource:
        file = self.path / "stage.toml"
        file.write_text(text)
        source = StageSource.read(file, "judge")
        file.unlink()
        return source

    def add(
        self, text: str, budget: float | None = None
    ) -> tuple[str, Sent, StageRehearsal]:
        """Add a stage; return outcome, calls and forecast."""
        source, sent = self.source(text), Sent()
        check_addable(self.folder, self.current(), source)
        job, entry = extended(self.current(), source.added), source.entry(budget)

        async def added() -> tuple[str, StageRehearsal]:
            plan = await stage_forecast(
                self.folder, self.work(job), self.options(), _shell(self.path), entry
            )
            total = total_budget(self.folder, budget)
            return await self.carried(job, sent, adding=entry, budget=total), plan

        outcome, plan = asyncio.run(added())
        return outcome, sent, plan

    def resume(self, **options: Any) -> tuple[str, Sent]:
        sent = Sent()
        return asyncio.run(self.carried(self.current(), sent, **options)), sent

    def score(self) -> bytes:
        scored = score_run(
            self.job,
            self.folder,
            self.settings,
            clock=SystemClock(),
            record=True,
            report=False,
        )
        return asyncio.run(scored).content

    def rows(self) -> list[TaskRow]:
        with open_reader(self.folder.log) as reader:
            return [*every_task(reader)]

    def spent(self) -> int:
        with open_reader(self.folder.log) as reader:
            return spending(reader).spent_pico


def _differences(world: World) -> list[str]:
    """What regress finds with the same code."""
    found = []
    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr(repeat, "job_of", lambda _: world.job)
        for part in check.Part:
            unit = check.Unit(folder=world.folder.path, shard="", part=part, size=0)
            report = check.check_unit(unit)
            assert report.problem == ""
            found += [
                f"{step.value}: {tally.first or tally.unchecked}"
                for step, tally in report.steps.items()
                if tally.differs or tally.unchecked
            ]
    return found


def _rescored(world: World, number: int) -> bytes:
    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr(repeat, "job_of", lambda _: world.job)
        with rescorer(world.folder) as run:
            return run.repeated(run.recorded(number)).content


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run and a stage that is added to it."""

    items: int
    models: tuple[str, ...]
    replicates: int
    has_failures: bool
    about: str  #: the judged stage, or "scans"
    stops: bool  #: at its budget, before it has ended


CASES = st.builds(
    Case,
    items=st.integers(1, 4),
    models=st.sampled_from([("m1",), ("m1", "m2")]),
    replicates=st.integers(1, 2),
    has_failures=st.booleans(),
    about=st.sampled_from(["scans", "read", "ask", "sum"]),
    stops=st.booleans(),
)


@pytest.mark.timeout(3600 if EXAMPLES > 100 else 900)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(case=CASES)
def test_an_added_stage_asks_each_answer_or_text_once_and_changes_nothing_else(
    case: Case,
) -> None:
    about = case.about
    with TemporaryDirectory() as room:
        world = World(
            Path(room),
            EditedJob(Edits()),
            ToySettings(items=case.items),
            models=case.models,
            replicates=case.replicates,
            has_failures=case.has_failures,
        )
        world.run()
        first, before, spent = world.score(), world.rows(), world.spent()
        if about == "scans":
            text = f'name = "seen"\nscans = "read"\n{FIELDS}'
            expected = sorted((f"i{i}", 1) for i in range(case.items))
        else:
            text = f'name = "seen"\njudges = "{about}"\n{FIELDS}'
            expected = sorted(
                (f"{row.key}#{row.model}", row.replicate)
                for row in before
                if row.stage == about and row.state is TaskState.COMPLETED
            )
        outcome, sent, plan = world.add(text, budget=0.001 if case.stops else None)
        if case.stops and outcome == "budget":
            assert world.spent() - spent <= 10**9
            assert world.resume()[0] == "budget"
            outcome, more = world.resume(budget=1.0)
            sent += more
        assert outcome == "finished"
        assert sorted((key.rpartition("#")[0] or key, n) for _, key, _, n in sent) == (
            expected
        )
        assert {(stage, model) for stage, _, model, _ in sent} <= {("seen", "judge")}
        assert plan.requests == len(sent)
        assert sum(cost.spend_pico or 0 for cost in plan.costs.values()) == (
            world.spent() - spent
        )
        assert world.rows()[: len(before)] == before
        again = json.loads(world.score())
        for model, values in json.loads(first)["models"].items():
            metrics = again["models"][model]["metrics"]
            assert values["metrics"].items() <= metrics.items()
            assert "seen.fits.yes" in metrics
        assert _rescored(world, 1) == first
        assert _differences(world) == []
        with open_reader(world.folder.log) as reader:
            assert verify(reader).is_sound


def test_a_judge_of_a_judge_and_an_answer_that_was_asked_again(tmp_path: Path) -> None:
    world = World(tmp_path, EditedJob(Edits()), ToySettings(items=2))
    world.run()
    world.add(JUDGE)
    _, sent, _ = world.add(f'name = "second"\njudges = "support"\n{FIELDS}')
    judged = len(sent)
    assert judged == 4
    assert {stage for stage, *_ in sent} == {"second"}
    assert json.loads(world.score())["stale"] == 0

    class Edited(EditedJob):
        def baseline(self, request: ChatRequest) -> str:
            reply = super().baseline(request)
            return reply if reply.startswith("ask i1") else f"{reply} anew"

    again = {"filter": "stage:ask"}
    retry = Command.new("retry", again, at_us=0, expected_state=None)
    send_command(world.folder, retry)
    later = replace(world, job=Edited(Edits()))
    outcome, sent = later.resume()
    assert outcome == "finished"
    stages = [stage for stage, *_ in sent]
    assert stages.count("ask") == 4
    # a new reply is judged, and its judgement too; a repeated one is not
    assert stages.count("support") == 2
    assert stages.count("second") == 2
    card = json.loads(world.score())
    assert card["stale"] == 2
    assert _differences(world) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (JUDGE, "Run r has the added stage support already; continue it with siftlog"),
        (f'name = "ask"\njudges = "read"\n{FIELDS}', "toy has a stage ask of its own"),
        (f'name = "x"\njudges = "aks"\n{FIELDS}', "did you mean 'ask'"),
    ],
)
def test_a_stage_that_cannot_be_added_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    world = World(tmp_path, EditedJob(Edits()), ToySettings(items=1))
    world.run()
    world.add(JUDGE)
    with pytest.raises(UsageError, match=sentence):
        world.add(text)


def test_an_extended_job_has_the_code_of_the_job(tmp_path: Path) -> None:
    world = World(tmp_path, EditedJob(Edits()), ToySettings(items=1))
    longer = extended(world.job, world.source(JUDGE).added)
    longest = extended(longer, world.source(JUDGE.replace("support", "more")).added)
    assert code_hash(longest) == code_hash(world.job)
    assert [stage.name for stage in longest.stages[3:]] == ["support", "more"]
    assert original(longest) is world.job
