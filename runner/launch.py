"""Starts a run or takes one up again: from a folder and a job to a driver at work.

Everything that can be wrong is found before the first event is written, so bad input
leaves no half-made run behind.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeAlias

from runner.abandoned import abandoned, abandoned_text
from runner.attempts import Parts
from runner.budget import Budget
from runner.cache import response_cache
from runner.cancelling import REASON
from runner.changes import check_inputs, check_requests, reads_differently
from runner.clients.client import ModelClient
from runner.clients.opening import open_client
from runner.clients.options import ClientOptions, Timeouts
from runner.clients.secret import Secret
from runner.driver import Driver
from runner.effects import lifts
from runner.ending import Ended, Ending
from runner.errors import RunnerError, UsageError
from runner.growth import Growth, Start
from runner.job import Job
from runner.limiter import Endpoint
from runner.listen import Listener, waiting
from runner.options import RunOptions, write_toml
from runner.preview import expected
from runner.prices import Price, prices_of
from runner.roles import assigned, remarks
from runner.scheduler import Scheduler
from runner.signals import obey_signals
from runner.work import Work
from store.clock import Clock
from store.estimates import liveness
from store.events import (
    Expected,
    RunResumed,
    RunStarted,
)
from store.runs import RunFolder
from store.sqlite import SqliteLog
from store.views import Status, open_reader, run_started, spending, status

OPENAI_KEY = "OPENAI_API_KEY"

Clients: TypeAlias = Mapping[str, ModelClient]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TakenUp:
    """How a process found the run that it goes on with; a new run by default."""

    must_catch_up: bool = False
    found: str | None = None  #: its state
    own: Collection[str] = ()  #: limits that this process was given itself


class Watch(Protocol):
    """Shows how a driver gets on, inside an async context."""

    def __call__(
        self, driver: Driver, growth: Growth, before: Status
    ) -> AbstractAsyncContextManager[None]:
        """The context; *before* is how the run stood when the process began."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """What surrounds a run: clock, environment, and who is told of things."""

    clock: Clock
    environment: Mapping[str, str]  #: with what .env adds; holds the keys
    runs_dir: Path
    tell: Callable[[str], None]  #: a sentence for people
    launched: Callable[[], None]  #: told once, before the first call
    watch: Watch  #: shows progress while the driver works


@asynccontextmanager
async def create(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    clock: Clock,
    *,
    imported: bool = False,
    expects: Expected | None = None,
) -> AsyncIterator[SqliteLog]:
    """A new run's log with its first event; the folder must not hold a run yet."""
    if folder.log.exists():
        raise UsageError(
            f"There is a run {folder.run_id!r} already; "
            f"go on with siftlog resume {folder.run_id} or choose another --run-id."
        )
    folder.path.mkdir(parents=True, exist_ok=True)
    # who judged, embedded or ranked elsewhere stands with each task
    roles = (
        {"subject": options.model} if imported else assigned(work.job, options).models
    )
    settings = work.settings.model_dump(mode="json")
    write_toml(folder.config, job=work.job.name, options=options, settings=settings)
    async with await SqliteLog.create(
        folder.log,
        run_id=folder.run_id,
        config_sha256=_config_hash(work, options),
        clock=clock,
        owner=owner(),
    ) as log:
        await log.append(
            RunStarted(
                run_id=folder.run_id,
                job=work.job.name,
                job_version=work.job.version,
                code_sha256=work.code_sha256,
                settings=work.settings_json,
                models={role: list(of_role) for role, of_role in roles.items()},
                replicates=options.replicates,
                inputs=work.inputs,
                siftlog_version=version("siftlog"),
                imported=imported,
                expected=expects,
                budget_usd=options.budget,
            )
        )
        yield log


def owner() -> str:
    """Who writes: host and process, for people who meet a busy log."""
    return f"{os.uname().nodename}:{os.getpid()}"


def _config_hash(work: Work, options: RunOptions) -> bytes:
    """Pins what a run is; what merely paces it may change from resume to resume."""
    pinned = {
        "job": work.job.name,
        "models": assigned(work.job, options).models,
        "replicates": options.replicates,
    }
    return hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).digest()


async def start(
    folder: RunFolder, work: Work, options: RunOptions, shell: Shell
) -> Ended:
    """Run a new run until it ends or is interrupted."""
    prices = prices_of(assigned(work.job, options).all_models, options)
    clients = open_clients(work.job, options, shell)
    expects = expected(work, options, shell.runs_dir, shell.clock)
    for said in remarks(work.job, options):
        shell.tell(said)
    async with create(folder, work, options, shell.clock, expects=expects) as log:
        return await _drive(
            folder,
            log,
            work,
            options,
            shell,
            clients=clients,
            prices=prices,
            taken_up=_TakenUp(),
        )


async def resume(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    accept_changes: bool,
    own: Collection[str] = (),
) -> Ended:
    """Take a run up where its last writer left it.

    Args:
        folder: the run's.
        work: its job, settings and data as they are now.
        options: how calls are sent.
        shell: what surrounds it.
        accept_changes: whether inputs and prompts may differ from what they were.
        own: names of the limits that were given for this process; what was asked of
            earlier ones about them does not hold for it.

    Raises:
        UsageError: there is nothing to go on with.
        RunChanged: inputs or prompts differ.
    """
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        if options.budget is None:
            cap_usd = spending(reader).cap_usd
            options = options.model_copy(update={"budget": cap_usd})
        before = status(reader)
    found = liveness(before.signs, shell.clock.now_us(), is_alive=False)
    if first.imported:
        raise UsageError(
            f"Run {folder.run_id} was imported: its answers were made elsewhere and "
            f"nothing is sent for it; score it with siftlog score {folder.run_id}."
        )
    if found == "cancelled" and "retry" not in {c.kind for c in waiting(folder)}:
        raise UsageError(
            f"Run {folder.run_id} was cancelled; bring its tasks back with siftlog "
            f"retry {folder.run_id} --reason {REASON}, then resume it."
        )
    if not accept_changes:
        check_inputs(first, work)
    prices = prices_of(assigned(work.job, options).all_models, options)
    clients = open_clients(work.job, options, shell)
    async with await SqliteLog.open(
        folder.log, clock=shell.clock, owner=owner()
    ) as log:
        if not accept_changes:
            await check_requests(log, work, options)
        must_catch_up = await reads_differently(log, work)
        unknown = await abandoned(log, hold=options.unknown == "hold")
        if unknown is not None:
            await log.append(unknown)
            shell.tell(abandoned_text(folder.run_id, unknown))
        await log.append(
            RunResumed(
                code_sha256=work.code_sha256,
                settings=work.settings_json,
                unknown=len(unknown.attempts) if unknown is not None else 0,
                budget_usd=options.budget,
            ),
            *lifts(before.pauses, by="resume"),
        )
        if before.pauses:
            paused = ", ".join(map(str, before.pauses))
            shell.tell(f"Paused was {paused}; resuming has lifted it.")
        return await _drive(
            folder,
            log,
            work,
            options,
            shell,
            clients=clients,
            prices=prices,
            taken_up=_TakenUp(must_catch_up=must_catch_up, found=found, own=own),
        )


def open_clients(job: Job, options: RunOptions, shell: Shell) -> Clients:
    """A client for each model; raise `UsageError` for one that cannot be served."""
    return {
        model: open_client(model, _client_options(job, options, model, shell))
        for model in assigned(job, options).all_models
    }


def _client_options(
    job: Job, options: RunOptions, model: str, shell: Shell
) -> ClientOptions:
    own = options.of(model)
    # a key goes nowhere it was not meant for: the default only to openai/...
    default = OPENAI_KEY if model.startswith("openai/") else None
    variable = own.api_key_env or default
    key = shell.environment.get(variable) if variable is not None else None
    if key is None and (own.api_key_env or (default and own.base_url is None)):
        raise UsageError(
            f"{model} needs a key: set {variable} in the environment or in .env."
        )
    return ClientOptions(
        base_url=own.base_url,
        api_key=Secret(key) if key else None,
        timeouts=Timeouts(total_s=options.timeout_s),
        environment=shell.environment,
        job=job,
        runs_dir=shell.runs_dir,
        clock=shell.clock,
    )


async def _drive(
    folder: RunFolder,
    log: SqliteLog,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    clients: Clients,
    prices: Mapping[str, Price | None],
    taken_up: _TakenUp,
) -> Ended:
    async with AsyncExitStack() as stack:
        for client in clients.values():
            stack.push_async_callback(client.close)
        growth = Growth(
            job=work.job,
            dataset=work.dataset,
            log=log,
            roles=assigned(work.job, options),
            start=Start(
                planning=await log.planning(), must_catch_up=taken_up.must_catch_up
            ),
        )
        cache = await stack.enter_async_context(
            response_cache(
                options,
                {m: _client_options(work.job, options, m, shell) for m in clients},
                run=folder.run_id,
                clock=shell.clock,
                tell=shell.tell,
            )
        )
        with open_reader(folder.log) as reader:
            money = spending(reader)
        if money.cap_pico is not None and not money.is_whole:
            shell.tell(
                "Answers of this run have no known price: the budget counts without "
                "them."
            )
        driver = Driver(
            Parts(
                job=work.job,
                dataset=work.dataset,
                log=log,
                clock=shell.clock,
                clients=clients,
                scheduler=_scheduler(
                    work.job,
                    options,
                    Budget(
                        money.cap_pico,
                        spent_pico=money.spent_pico,
                        possible_pico=money.possible_pico,
                    ),
                ),
                growth=growth,
                tell=shell.tell,
                seed=options.seed,
                reask=getattr(work.settings, "reask", 0),
                grace_s=options.grace_s,
                frees_held=options.unknown == "retry",
                cache=cache,
                prices=prices,
            )
        )
        listener = Listener(
            folder=folder,
            log=log,
            driver=driver,
            clock=shell.clock,
            stages=tuple(stage.name for stage in work.job.stages),
            models=tuple(clients),
            found=taken_up.found,
            own=taken_up.own,
        )
        obey_signals(driver, shell.tell)
        shell.launched()
        async with listener.listening():
            # after what was waiting: a retry changes what is left to do
            with open_reader(folder.log) as reader:
                before = status(reader)
            async with shell.watch(driver, growth, before):
                outcome = await driver.run()
        ending = Ending(
            folder=folder,
            log=log,
            clock=shell.clock,
            growth=growth,
            driver=driver,
            listener=listener,
        )
        return await ending.conclude(outcome)


def _scheduler(job: Job, options: RunOptions, budget: Budget) -> Scheduler:
    endpoints: dict[str, Endpoint] = {}
    roles = assigned(job, options)
    lanes = []
    for model in roles.all_models:
        name = options.of(model).base_url or model
        endpoint = endpoints.setdefault(name, Endpoint(name))
        stages = roles.stages_of(job, model)
        lanes.append((model, stages, options.limits_of(model), endpoint))
    return Scheduler(lanes, deadline_s=options.deadline_s, budget=budget)


def check_alive(folder: RunFolder) -> None:
    """Raise where another process is writing the run."""
    if folder.is_alive():
        raise RunnerError(
            f"Run {folder.run_id} is being written by another process; "
            f"watch it with siftlog status {folder.run_id}."
        )
