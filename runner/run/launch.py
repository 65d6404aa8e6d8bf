"""Starts a run or resumes one: from a folder and a job to a running driver."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner.added_stages import plans_added_only
from runner.clients.client import ModelClient, is_offline
from runner.engine.answer_cache import response_cache
from runner.engine.attempt_events import abandoned_attempts, abandoned_text
from runner.engine.config import (
    AnswerSources,
    CostBounds,
    DrainOptions,
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
    SharedWithRuns,
    TakeoverOptions,
)
from runner.engine.driver import Driver
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.errors import RunnerError, UsageError
from runner.estimate.estimate import expected
from runner.fingerprint import code_fingerprint
from runner.job_faults import JobFaults
from runner.money.budget import WHOLE, Budget
from runner.money.prices import Price, bounds_of, prices_of
from runner.money.tokens import TokenBounds
from runner.options import RunOptions
from runner.roles import assigned, remarks
from runner.run.context import RunContext
from runner.run.control import Listener, lifts, waiting
from runner.run.earlier_limits import reached_concurrency
from runner.run.early_stopping import Decider, DecisionContext, check, load_decide
from runner.run.end import REASON, RunEnding, RunOutcome
from runner.run.endpoints import (
    Connections,
    SharedEndpoints,
    batch_clients,
    carried,
    check_addresses,
    client_options,
    connect,
    with_room,
)
from runner.run.folder import create, elsewhere, lock_group, owner
from runner.run.fork import ParentAnswers, parent_answers
from runner.run.resume_checks import (
    changed_inputs,
    check_inputs,
    check_requests,
    reads_differently,
)
from runner.workload import Workload
from store.database import open_reader
from store.events import AttemptStarted, Entry, RunResumed
from store.lineage import ForkOrigin
from store.log.integrity import check_end
from store.log.sqlite import SqliteLog
from store.read.status import liveness, run_started, status
from store.read.usage import spending
from store.results import StoppingRule
from store.runs import RunFolder
from store.task import TaskState

if TYPE_CHECKING:
    from runner.shards.parts import ShardPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeState:
    """State in which a process found a resumed run; by default a new run."""

    must_catch_up: bool = False
    group: str | None = None  #: the group whose budget it shares
    initial_state: str | None = None  #: the state of the run; None: new
    startup_limits: Collection[str] = ()  #: names of limits given for this process
    stopping: StoppingRule | None = None  #: rule that ends the run early, if any
    part: ShardPart | None = None  #: its part of the run; None: all
    carried: Sequence[AttemptStarted] = ()  #: attempts of earlier processes in batches
    parent: ParentAnswers | None = None  #: of a fork: the answers it may adopt


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSession:
    """A prepared run of a process, with its resources."""

    folder: RunFolder
    log: SqliteLog  #: open for writing; the start or resume is recorded
    work: Workload
    options: RunOptions
    context: RunContext
    connections: Connections
    prices: Mapping[str, Price | None]  #: by model
    resume_state: ResumeState

    async def carry_out(self, shared_endpoints: SharedEndpoints | None) -> RunOutcome:
        """Work until the run ends or is interrupted.

        Args:
            shared_endpoints: the runs that share endpoints and budget with it; None: it
                is alone, and handles the process's signals itself.
        """
        context, part = self.context, self.resume_state.part
        lease_client = None
        if part is not None:
            from runner.shards.lease_client import lease_client_of  # noqa: PLC0415 - only split runs need shards

            lease_client = lease_client_of(self.folder, part, context)
        shared = shared_endpoints or SharedEndpoints(
            holder=None if lease_client is None else lease_client.holder
        )
        leaving = asyncio.Event()
        async with AsyncExitStack() as stack:
            clients = self._clients(leaving)
            for client in clients.values():
                stack.push_async_callback(client.close)
            planner = await self._open_planner()
            driver = Driver(
                await self._engine_config(stack, shared, clients, planner, leaving)
            )
            listener = self._listener(driver, tuple(clients))
            decider = self._decider(driver)
            if shared_endpoints is None:
                context.obey(driver, context.notify)
            stack.enter_context(shared.joined(driver))
            context.launched()
            shipper = None
            if part is not None:
                from runner.shards.shipping import shipping_log  # noqa: PLC0415 - as above

                shipper = await stack.enter_async_context(
                    shipping_log(self.folder, part, driver, context)
                )
            if lease_client is not None:
                await stack.enter_async_context(lease_client.leasing(driver))
            async with listener.listening():
                # after pending commands: a retry changes what is left to do
                with open_reader(self.folder.log) as reader:
                    before = status(reader)
                deciding = nullcontext() if decider is None else decider.deciding()
                async with context.watch(driver, self.folder.log, before), deciding:
                    outcome = await driver.run()
                    if outcome == "finished" and decider is not None:
                        await decider.poll()
            ending = RunEnding(
                folder=self.folder,
                log=self.log,
                clock=context.clock,
                planner=planner,
                driver=driver,
                listener=listener,
                decided=None if decider is None else decider.decided,
                endpoints=self.connections.endpoints,
                settle_s=self.options.batch_settle_s,
                is_fenced=lease_client is not None and lease_client.is_fenced,
            )
            ended = await ending.conclude(outcome)
            if shipper is not None:
                ended = await shipper.conclude(ended)
            return ended

    def _clients(self, leaving: asyncio.Event) -> dict[str, ModelClient]:
        """Return a client per model; *leaving* is set before the process ends."""
        in_batches = batch_clients(
            self.folder,
            self.log,
            self.options,
            self.context,
            endpoints=self.connections.endpoints,
            starts=self.resume_state.carried,
            leaving=leaving,
        )
        return {**self.connections.clients, **in_batches}

    async def _open_planner(self) -> Planner:
        """Return the planner, continuing from the log."""
        job, dataset, part = self.work.job, self.work.dataset, self.resume_state.part
        takes = None
        if part is not None:
            from runner.shards.parts import takes_spec  # noqa: PLC0415 - as above

            takes = takes_spec(part.shard, job, dataset)
        return Planner(
            job=job,
            dataset=dataset,
            log=self.log,
            roles=assigned(job, self.options),
            start=PlanStart(
                planning=await self.log.planning(),
                must_catch_up=self.resume_state.must_catch_up,
                is_shuffled=self.resume_state.stopping is not None,
                takes=takes,
            ),
            faults=JobFaults(self.context.notify),
        )

    def _budget(self) -> Budget:
        """Return the budget, with what this run and others that share it have spent."""
        part = self.resume_state.part
        with open_reader(self.folder.log) as reader:
            money = spending(reader)
        if money.cap_pico is not None and not money.is_whole:
            self.context.notify(
                "Answers of this run have no known price: the budget counts without "
                "them."
            )
        if part is None:
            runs_dir, group = self.context.runs_dir, self.resume_state.group
            others = elsewhere(runs_dir, group, but=self.folder)
        else:
            others = part.others.spent
        return Budget(
            money.cap_pico,
            spent_pico=money.spent_pico + others.spent_pico,
            possible_pico=money.possible_pico + others.possible_pico,
            share=WHOLE if part is None else part.share,
        )

    def _reached(self, options: RunOptions) -> dict[str, int]:
        """Return the calls at a time to start with; shards divide theirs anew."""
        models = assigned(self.work.job, options).all_models
        endpoints = {m: options.endpoint_of(m) for m in models if not is_offline(m)}
        if not endpoints or self.resume_state.part is not None:
            return {}
        now_us = self.context.clock.now_us()
        return reached_concurrency(self.folder, endpoints, now_us)

    async def _engine_config(
        self,
        stack: AsyncExitStack,
        shared: SharedEndpoints,
        clients: Mapping[str, ModelClient],
        planner: Planner,
        leaving: asyncio.Event,
    ) -> EngineConfig:
        """Return the engine's configuration; the cache is closed with *stack*."""
        job, options, context = self.work.job, self.options, self.context
        part = self.resume_state.part
        cache = await stack.enter_async_context(
            response_cache(
                options,
                {m: client_options(job, options, m, context) for m in clients},
                run=self.folder.run_id,
                clock=context.clock,
                notify=context.notify,
            )
        )
        affordable = with_room(options, tuple(clients), context.notify)
        scheduler = shared.scheduler(
            job, affordable, self._budget(), self._reached(affordable)
        )
        bounds = self._bounds()
        self._probe(scheduler, bounds)
        return EngineConfig(
            services=EngineServices(
                job=job,
                dataset=self.work.dataset,
                log=self.log,
                clock=context.clock,
                scheduler=scheduler,
                planner=planner,
                notify=context.notify,
                faults=planner.faults,
            ),
            endpoints=ModelEndpoints(
                clients=clients,
                terms=self.connections.terms,
                ladders=self.connections.ladders,
                batched=self.connections.endpoints.keys(),
            ),
            sources=AnswerSources(
                other_logs=None if part is None else part.others.adopted,
                parent=self.resume_state.parent,
                cache=cache,
            ),
            costs=CostBounds(prices=self.prices, bounds=bounds),
            retries=RetryOptions(
                seed=options.seed,
                reask=getattr(self.work.settings, "reask", 0),
                futility=options.futility(clients.keys()),
            ),
            takeover=TakeoverOptions(
                frees_held=options.unknown == "retry", carried=self.resume_state.carried
            ),
            drain=DrainOptions(grace_s=options.grace_s, leaving=leaving),
            shared=SharedWithRuns(
                has_budget=shared.budget is not None, wakeups=shared.wakeups
            ),
        )

    def _completed(self) -> Counter[tuple[str, str]]:
        """Return the number of completed tasks by stage and model."""
        with open_reader(self.folder.log) as reader:
            queues = status(reader).queues
        return Counter(
            {queue.key: queue.states.get(TaskState.COMPLETED, 0) for queue in queues}
        )

    def _bounds(self) -> dict[str, TokenBounds]:
        """Return the token bounds of each model, including what the log shows."""
        replies: Counter[str] = Counter()
        for (_, model), count in self._completed().items():
            replies[model] += count
        ladders = self.connections.ladders
        return {
            model: bounds_of(
                model,
                self.options,
                learned=ladders[model].learned if model in ladders else None,
                replies=replies[model],
            )
            for model in self.prices
        }

    def _probe(self, scheduler: Scheduler, bounds: Mapping[str, TokenBounds]) -> None:
        """Send the first call of a stage alone if little is known about its model.

        An endpoint may refuse it, or may bill more for it than its limit. Stages
        answered before and models of a known family are excluded. A model with batches
        gets one such call for all stages, since a batch may take hours.
        """
        job, options = self.work.job, self.options
        answered = {key for key, count in self._completed().items() if count}
        roles = assigned(job, options)
        for model, ladder in self.connections.ladders.items():
            is_patient = bounds[model].is_unproven and not options.is_batched(model)
            if ladder.has_family_rules and not is_patient:
                continue  # a batch of one call costs hours
            stages = roles.stages_of(job, model)
            left = [stage for stage in stages if (stage, model) not in answered]
            if options.is_batched(model):
                left = left if len(left) == len(stages) else []
            scheduler.probe(model, left)

    def _listener(self, driver: Driver, models: tuple[str, ...]) -> Listener:
        """Return the listener for the run's commands."""
        part = self.resume_state.part
        return Listener(
            folder=self.folder,
            log=self.log,
            driver=driver,
            clock=self.context.clock,
            stages=tuple(stage.name for stage in self.work.job.stages),
            models=models,
            notify=self.context.notify,
            initial_state=self.resume_state.initial_state,
            startup_limits=self.resume_state.startup_limits,
            answered=() if part is None else part.others.settled,
        )

    def _decider(self, driver: Driver) -> Decider | None:
        """Return the decider that may end the run early; None: no stopping rule."""
        stopping = self.resume_state.stopping
        if stopping is None:
            return None
        return Decider(
            folder=self.folder,
            log=self.log,
            work=self.work,
            driver=driver,
            clock=self.context.clock,
            notify=self.context.notify,
            looking=DecisionContext(stopping=stopping, decide=load_decide()),
        )


async def start(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    *,
    shared_endpoints: SharedEndpoints | None = None,
    group: str | None = None,
    part: ShardPart | None = None,
    fork: ForkOrigin | None = None,
    added: Sequence[Entry] = (),
) -> RunOutcome:
    """Run a new run until it ends or is interrupted.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent.
        context: its context.
        shared_endpoints: the runs that share endpoints and budget with it; None: it is
            alone, and handles the process's signals itself.
        group: the group of runs started together, if any.
        part: the shard of *folder*; None: the run is not split.
        fork: the run that it continues from; None: it starts from nothing.
        added: the events of its added stages, which *work* has already.
    """
    models = assigned(work.job, options).all_models
    check_addresses(models, options)
    prices = prices_of(models, options)
    connections = connect(work, options, context)
    if options.stopping is not None:
        check(work, options.model, options.stopping, load_decide())
    expects = None
    if not all(map(is_offline, models)):
        expects = expected(
            work, options, context.runs_dir, context.clock, notify=context.notify
        )
    for remark in remarks(work, options):
        context.notify(remark)
    async with create(
        folder,
        work,
        options,
        context.clock,
        expects=expects,
        group=group,
        shard=None if part is None else part.shard,
        fork=fork,
        added=added,
    ) as log:
        session = RunSession(
            folder=folder,
            log=log,
            work=work,
            options=options,
            context=context,
            connections=connections,
            prices=prices,
            resume_state=ResumeState(
                stopping=options.stopping,
                part=part,
                parent=await adopting(folder, log, fork),
            ),
        )
        return await session.carry_out(shared_endpoints)


async def resume(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    *,
    accept_changes: bool,
    accept_loss: bool = False,
    startup_limits: Collection[str] = (),
    shared_endpoints: SharedEndpoints | None = None,
    part: ShardPart | None = None,
    adding: Entry | None = None,
) -> RunOutcome:
    """Resume a run where its last writer left it.

    Args:
        folder: the run's.
        work: its current job, settings and data.
        options: how calls are sent.
        context: its context.
        accept_changes: whether inputs and prompts may have changed.
        accept_loss: whether to continue although acknowledged events are missing.
        startup_limits: names of the limits that were given for this process; earlier
            commands about them do not apply.
        shared_endpoints: as for `start`.
        part: as for `start`.
        adding: the event of a stage that is added to it, which *work* has already.

    Raises:
        UsageError: there is nothing to resume.
        RunChanged: inputs or prompts differ.
        EventsLost: acknowledged events are missing, and that was not accepted.
    """
    end = check_end(folder.log, accept_loss=accept_loss)
    if end.has_loss or end.acknowledged is None:
        context.notify(f"{end.sentence}.")
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        if options.budget is None:
            cap_usd = spending(reader).cap_usd
            options = options.model_copy(update={"budget": cap_usd})
        before = status(reader)
    initial_state = liveness(before.signs, context.clock.now_us(), is_alive=False)
    if first.imported and not plans_added_only(work.job):
        raise UsageError(
            f"Run {folder.run_id} was imported, so there is nothing to "
            f"send; score it with siftlog score {folder.run_id}."
        )
    check_cancelled(folder, initial_state)
    if not accept_changes:
        check_inputs(first, work)
    models = assigned(work.job, options).all_models
    check_addresses(models, options)
    prices = prices_of(models, options)
    connections = connect(work, options, context, before.refused)
    async with AsyncExitStack() as stack:
        if shared_endpoints is None and first.group is not None:
            stack.enter_context(lock_group(context.runs_dir, first.group))
        log = await stack.enter_async_context(
            await SqliteLog.open(
                folder.log,
                clock=context.clock,
                owner=owner(),
                accept_loss=accept_loss,
            )
        )
        if not accept_changes:
            await check_requests(log, work, options)
        must_catch_up = adding is not None or await reads_differently(log, work)
        starts = carried(folder, options)
        unknown = await abandoned_attempts(
            log, hold=options.unknown == "hold", carried=starts
        )
        if unknown is not None:
            await log.append(unknown)
            context.notify(abandoned_text(folder.run_id, unknown))
        await log.append(
            *(() if adding is None else (adding,)),
            RunResumed(
                code_sha256=work.code_sha256,
                settings=work.settings_json,
                unknown=len(unknown.attempts) if unknown is not None else 0,
                budget_usd=options.budget,
                lost=log.lost,
                changed=changed_inputs(first, work),
                code=code_fingerprint(work.job),
            ),
            *lifts(before.pauses, by="resume"),
        )
        if before.pauses:
            paused = ", ".join(map(str, before.pauses))
            context.notify(f"Paused was {paused}; resuming has lifted it.")
        session = RunSession(
            folder=folder,
            log=log,
            work=work,
            options=options,
            context=context,
            connections=connections,
            prices=prices,
            resume_state=ResumeState(
                must_catch_up=must_catch_up,
                group=first.group,
                initial_state=initial_state,
                startup_limits=startup_limits,
                stopping=first.stopping,
                part=part,
                carried=starts,
                parent=await adopting(folder, log, first.fork),
            ),
        )
        return await session.carry_out(shared_endpoints)


async def adopting(
    folder: RunFolder, log: SqliteLog, fork: ForkOrigin | None
) -> ParentAnswers | None:
    """Return the answers that a fork may adopt; None: the run is no fork.

    Raises:
        UsageError: the parent run is missing.
    """
    if fork is None:
        return None
    await log.serve_forked_bodies()
    return await asyncio.to_thread(parent_answers, folder, fork)


def check_alive(folder: RunFolder) -> None:
    """Raise `RunnerError` if another process is writing the run."""
    if folder.is_alive():
        raise RunnerError(
            f"Run {folder.run_id} is being written by another process; "
            f"watch it with siftlog status {folder.run_id}."
        )


def check_cancelled(folder: RunFolder, state: str | None) -> None:
    """Raise `UsageError` if a run was cancelled and no retry is pending."""
    if state == "cancelled" and "retry" not in {c.kind for c in waiting(folder)}:
        raise UsageError(
            f"Run {folder.run_id} was cancelled; bring its tasks back with siftlog "
            f"retry {folder.run_id} --reason {REASON}, then resume it."
        )
