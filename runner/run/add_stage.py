"""Adds a stage to a finished run: checks it, forecasts its cost, records it.

The run continues by `runner.run.launch.resume`, so its own answers stay as they are:
each of its tasks is final. Only the event `StageAdded` is new; the plan grows by the
tasks of the stage as it grows by those that a changed parser makes necessary.

The forecast is a rehearsal on a copy of the log, by the engine that continues the run:
the number of requests is exact, and their cost as good as the length of the baseline's
replies.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runner.added_stages import AddedStage, stage_reader
from runner.clients.client import Call, is_offline
from runner.clients.offline import FunctionClient
from runner.errors import UsageError
from runner.fingerprint import source_hash
from runner.installed import version
from runner.job import Job
from runner.messages import AnyReply
from runner.options import RunOptions, options_from
from runner.plan import stage_of
from runner.run.context import RunContext
from runner.run.folder import owner
from runner.run.launch import ResumeState
from runner.run.rehearsal import act_out, baseline_reply, rehearsal_room
from runner.workload import Workload
from store.database import copy_log, open_reader
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Entry,
    TaskFailed,
)
from store.lineage import StageAdded
from store.log.sqlite import SqliteLog
from store.nearest import did_you_mean
from store.read.status import added_stages, run_started, status
from store.read.tasks import events, every_task
from store.read.usage import spending
from store.runs import RunFolder
from store.tables import last_seq
from store.task import pico, usd

PAGE: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSource:
    """A declaration that was read, with the model of its tasks."""

    file: Path
    content: bytes
    model: str
    added: AddedStage

    @classmethod
    def read(cls, file: Path, model: str) -> StageSource:
        """Read a declaration.

        Raises:
            UsageError: the file cannot be read, or nothing reads its form.
            DatasetError: a table or key of it is wrong.
        """
        reader = stage_reader(file.suffix.removeprefix("."))
        try:
            content = file.read_bytes()
            text = content.decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise UsageError(
                f"{file} cannot be read ({reason}); name the file that declares the "
                "stage."
            ) from error
        return cls(
            file=file,
            content=content,
            model=model,
            added=reader(text, str(file), model),
        )

    def entry(self, budget_usd: float | None) -> Entry:
        """Return the event that adds the stage."""
        module = sys.modules[type(self.added).__module__]
        event = StageAdded(
            stage=self.added.stage.name,
            model=self.model,
            form=self.file.suffix.removeprefix("."),
            file=str(self.file.resolve()),
            sha256=hashlib.sha256(self.content).hexdigest(),
            code_sha256=source_hash(module),
            siftlog_version=version("siftlog"),
            budget_usd=budget_usd,
        )
        return Entry(event=event, payload=self.content)


def check_addable(folder: RunFolder, job: Job, source: StageSource) -> None:
    """Refuse a stage that cannot be added to a run.

    Args:
        folder: the run's.
        job: its job, with the stages that were added before.
        source: the stage.

    Raises:
        UsageError: the run has not ended, is split or of a group, has the stage
            already, or lacks the one that it is about.
    """
    run, name, after = folder.run_id, source.added.stage.name, source.added.after
    with open_reader(folder.log) as reader:
        first, state, before = run_started(reader), status(reader), added_stages(reader)
    if first.shard is not None:
        raise UsageError(
            f"Run {run} is split, and a stage is added to a run with one log: make one "
            f"that adopts its answers with siftlog fork {run} --as NEW, and add the "
            "stage to NEW."
        )
    if first.group is not None:
        raise UsageError(
            f"Run {run} shares its budget with the group {first.group}; continue it "
            f"on its own first: siftlog fork {run} --as NEW."
        )
    if any(name == event.stage for event, _ in before):
        raise UsageError(
            f"Run {run} has the added stage {name} already; continue it with siftlog "
            f"resume {run}, or give the new one another name in {source.file}."
        )
    stages = [stage.name for stage in job.stages]
    if name in stages:
        raise UsageError(
            f"{job.name} has a stage {name} of its own; give the new one another name "
            f"in {source.file}."
        )
    if after not in stages:
        hint = did_you_mean(after, stages, f"it has {', '.join(stages)}.")
        raise UsageError(f"{source.file}: {job.name} has no stage {after!r}; {hint}")
    judged = stage_of(job, after)
    if (
        first.imported
        and source.added.follows_answers
        and judged.role != "subject"
        and not judged.models
    ):
        # the log lists only its subjects
        raise UsageError(
            f"Run {run} was imported, and only stages of models under test can be "
            f"judged there: name another one than {after} in {source.file}."
        )
    if folder.is_alive() or state.tasks.open or not state.planning_exhausted:
        raise UsageError(
            f"Run {run} has open tasks: finish it with siftlog resume {run}, or "
            "cancel it, before you add a stage."
        )


def options_with(
    file: Mapping[str, Any], typed: Mapping[str, Any], model: str
) -> dict[str, Any]:
    """Return the options of a run, with those of the stage's model in its own table.

    Args:
        file: the options of the run, as its `run.toml` has them.
        typed: options of the stage's model.
        model: the model.
    """
    of_model = dict(file.get("models", {}).get(model, {}))
    of_model |= {name: value for name, value in typed.items() if name != "price"}
    if "price" in typed:
        prices = options_from({"price": typed["price"]}).price or ()
        of_model |= dict(zip(PRICES, prices, strict=False))
    models = dict(file.get("models", {}))
    if of_model:
        models[model] = of_model
    stage_models = dict.fromkeys((*file.get("stage_models", ()), model))
    return {**file, "models": models, "stage_models": list(stage_models)}


PRICES: Final = ("usd_per_mtok_in", "usd_per_mtok_out", "usd_per_mtok_cached")


def total_budget(folder: RunFolder, usd_of_stage: float | None) -> float | None:
    """Return the cap of the whole run that leaves the stage its budget.

    All other tasks have ended, so what may be spent beyond the present is the stage's.
    None: the run's cap stays.
    """
    if usd_of_stage is None:
        return None
    with open_reader(folder.log) as reader:
        money = spending(reader)
    return usd(money.spent_pico + money.possible_pico) + usd_of_stage


@dataclass(slots=True, kw_only=True)
class StageCost:
    """Requests of a stage and model, and what they cost in pico-dollars."""

    requests: int = 0
    spend_pico: int | None = 0  #: forecast; None: the price is unknown
    most_pico: int | None = 0  #: worst case without retries; None: likewise

    def add(self, spend_usd: float | None, most_usd: float | None) -> None:
        """Count a request."""
        self.requests += 1
        self.spend_pico = _sum(self.spend_pico, spend_usd)
        self.most_pico = _sum(self.most_pico, most_usd)


def _sum(before: int | None, dollars: float | None) -> int | None:
    return None if before is None or dollars is None else before + pico(dollars)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRehearsal:
    """Requests that a stage will send."""

    tasks: int  #: of the stage, offline ones included
    costs: Mapping[tuple[str, str], StageCost]
    """By stage and model, of online models. Of another stage only if its code has
    changed, so that a resume would ask more of it too."""

    @property
    def requests(self) -> int:
        """Return the number of requests to online models."""
        return sum(cost.requests for cost in self.costs.values())


async def stage_forecast(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    entry: Entry,
) -> StageRehearsal:
    """Carry out the continued run offline on a copy, and return what it would ask.

    Args:
        folder: the run's.
        work: its job with the stage, settings and data.
        options: how its calls are sent.
        context: its context.
        entry: the event that adds the stage.

    Raises:
        UsageError: there is nothing to ask, or the prompts cannot be built.
    """

    async def reply(call: Call) -> AnyReply:
        return await baseline_reply(work.job, call.request)

    with rehearsal_room() as room:
        copy = RunFolder(room / folder.run_id)
        copy.path.mkdir()
        copy_log(folder.log, copy.log, lambda _: None)
        with open_reader(copy.log) as reader:
            before = last_seq(reader)
        async with await SqliteLog.open(
            copy.log, clock=context.clock, owner=owner()
        ) as log:
            await log.serve_forked_bodies()  # of a fork, the copy has them as parts
            await log.append(entry)
            await act_out(
                copy,
                log,
                work,
                options,
                context,
                client=FunctionClient(reply),
                resume_state=ResumeState(must_catch_up=True),
            )
        return StageRehearsal(
            tasks=_tasks(copy, work.job.stages[-1].name, before),
            costs=_costs(copy.log, before),
        )


def _tasks(copy: RunFolder, stage: str, after: int) -> int:
    """Count the tasks of a stage; refuse one without any, or without requests."""
    with open_reader(copy.log) as reader:
        tasks = sum(row.stage == stage for row in every_task(reader))
        is_imported = run_started(reader).imported
        faults = events(reader, after=after, limit=1, kinds=["task_failed"])
    if not tasks:
        raise UsageError(
            f"There is nothing to ask: run {copy.run_id} has no text or reply that "
            f"the stage {stage} is about."
        )
    for event in (row.event for row in faults):
        if isinstance(event, TaskFailed) and event.fault is not None:
            if is_imported:
                raise UsageError(
                    f"The stage {stage} cannot be asked: the data of run "
                    f"{copy.run_id}, which was imported, do not hold every prompt "
                    f"({event.fault}); import it with the data of its prompts, or by "
                    "the job replies."
                )
            raise UsageError(
                f"The stage {stage} cannot be asked: {event.fault}; correct its file."
            )
    return tasks


def _costs(log: Path, after: int) -> dict[tuple[str, str], StageCost]:
    """Return the requests to online models after an event."""
    most: dict[int, float | None] = {}
    spend: dict[int, float | None] = {}
    kinds = ["attempt_started", "attempt_answered"]
    costs: dict[tuple[str, str], StageCost] = {}
    with open_reader(log) as reader:
        while page := events(reader, after=after, limit=PAGE, kinds=kinds):
            after = page[-1].seq
            for event in (row.event for row in page):
                if isinstance(event, AttemptStarted):
                    most[event.task] = event.worst_usd
                elif isinstance(event, AttemptAnswered):
                    spend[event.task] = event.cost_usd
        for row in every_task(reader):
            if row.task in most and not is_offline(row.model):
                cost = costs.setdefault((row.stage, row.model), StageCost())
                cost.add(spend.get(row.task), most[row.task])
    return costs
