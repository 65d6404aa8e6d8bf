"""Starts a run or takes one up again: from a folder and a job to a driver at work.

Everything that can be wrong is found before the first event is written, so bad input
leaves no half-made run behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from runner.control.cancelling import REASON
from runner.control.decider import Decider, Looking
from runner.control.effects import lifts
from runner.control.ending import Ended, Ending
from runner.control.listen import Listener, waiting
from runner.control.signals import obey_signals
from runner.deciding import load_decide
from runner.engine.abandoned import abandoned, abandoned_text
from runner.engine.attempts import Parts
from runner.engine.cache import response_cache
from runner.engine.driver import Driver
from runner.engine.growth import Growth, Start
from runner.errors import RunnerError, UsageError
from runner.estimating.preview import expected
from runner.launching.batching import batch_clients, carried
from runner.launching.changes import check_inputs, check_requests, reads_differently
from runner.launching.company import Company
from runner.launching.connecting import Connections, client_options, connect
from runner.launching.creation import create, owner
from runner.launching.group import elsewhere, held
from runner.launching.shell import Shell
from runner.leasing.joining import lessee_of
from runner.money.budget import WHOLE, Budget
from runner.money.prices import Price, prices_of
from runner.options import RunOptions
from runner.records.front import check
from runner.roles import assigned, remarks
from runner.shards.carrying import carrying
from runner.shards.part import Part, taking
from runner.work import Work
from store.estimates import liveness
from store.events import AttemptStarted, RunResumed
from store.runs import RunFolder
from store.sqlite import SqliteLog
from store.stopping import Stopping
from store.views import open_reader, run_started, spending, status


@dataclass(frozen=True, slots=True, kw_only=True)
class _TakenUp:
    """How a process found the run that it goes on with; a new run by default."""

    must_catch_up: bool = False
    group: str | None = None  #: whose budget it shares
    found: str | None = None  #: its state
    own: Collection[str] = ()  #: limits that this process was given itself
    stopping: Stopping | None = None  #: what the run stops at
    part: Part | None = None  #: of it that is asked; None: all
    answered: Collection[str] = ()  #: requests that were carried out in other logs
    carried: Sequence[AttemptStarted] = ()  #: attempts of others that go on in batches


async def start(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    company: Company | None = None,
    group: str | None = None,
    part: Part | None = None,
) -> Ended:
    """Run a new run until it ends or is interrupted.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent.
        shell: what surrounds it.
        company: the runs that share endpoints and budget with it; None: it is alone,
            and obeys the process's signals itself.
        group: the name under which it was started with others, if it was.
        part: the shard that *folder* is of; None: the run is not split.
    """
    prices = prices_of(assigned(work.job, options).all_models, options)
    connections = connect(work.job, options, shell)
    if options.stopping is not None:
        check(work, options.model, options.stopping, load_decide())
    expects = expected(work, options, shell.runs_dir, shell.clock)
    for said in remarks(work, options):
        shell.tell(said)
    async with create(
        folder,
        work,
        options,
        shell.clock,
        expects=expects,
        group=group,
        shard=None if part is None else part.shard,
    ) as log:
        return await _drive(
            folder,
            log,
            work,
            options,
            shell,
            connections=connections,
            prices=prices,
            taken_up=_TakenUp(
                stopping=options.stopping,
                part=part,
                answered=() if part is None else part.others.answered,
            ),
            company=company,
        )


async def resume(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    accept_changes: bool,
    own: Collection[str] = (),
    company: Company | None = None,
    part: Part | None = None,
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
        company: as for `start`.
        part: as for `start`.

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
    check_cancelled(folder, found)
    if not accept_changes:
        check_inputs(first, work)
    prices = prices_of(assigned(work.job, options).all_models, options)
    connections = connect(work.job, options, shell)
    async with AsyncExitStack() as stack:
        if company is None and first.group is not None:
            stack.enter_context(held(shell.runs_dir, first.group))
        log = await stack.enter_async_context(
            await SqliteLog.open(folder.log, clock=shell.clock, owner=owner())
        )
        if not accept_changes:
            await check_requests(log, work, options)
        must_catch_up = await reads_differently(log, work)
        starts = carried(folder, options)
        unknown = await abandoned(log, hold=options.unknown == "hold", carried=starts)
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
            connections=connections,
            prices=prices,
            taken_up=_TakenUp(
                must_catch_up=must_catch_up,
                group=first.group,
                found=found,
                own=own,
                stopping=first.stopping,
                part=part,
                carried=starts,
            ),
            company=company,
        )


async def _drive(
    folder: RunFolder,
    log: SqliteLog,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    connections: Connections,
    prices: Mapping[str, Price | None],
    taken_up: _TakenUp,
    company: Company | None,
) -> Ended:
    lessee = lessee_of(folder, taken_up.part, shell)
    holder = None if lessee is None else lessee.holder
    shared = company or Company(holder=holder)
    stopping, part = taken_up.stopping, taken_up.part
    leaving = asyncio.Event()
    clients = {
        **connections.clients,
        **batch_clients(
            folder,
            log,
            options,
            shell,
            endpoints=connections.endpoints,
            starts=taken_up.carried,
            leaving=leaving,
        ),
    }
    async with AsyncExitStack() as stack:
        for client in clients.values():
            stack.push_async_callback(client.close)
        growth = Growth(
            job=work.job,
            dataset=work.dataset,
            log=log,
            roles=assigned(work.job, options),
            start=Start(
                planning=await log.planning(),
                must_catch_up=taken_up.must_catch_up,
                is_shuffled=stopping is not None,
                takes=None
                if part is None
                else taking(part.shard, work.job, work.dataset),
            ),
        )
        cache = await stack.enter_async_context(
            response_cache(
                options,
                {m: client_options(work.job, options, m, shell) for m in clients},
                run=folder.run_id,
                clock=shell.clock,
                tell=shell.tell,
            )
        )
        with open_reader(folder.log) as reader:
            money = spending(reader)
        if part is None:
            others = elsewhere(shell.runs_dir, taken_up.group, but=folder)
        else:
            others = part.others.spent
        if money.cap_pico is not None and not money.is_whole:
            shell.tell(
                "Answers of this run have no known price: the budget counts without "
                "them."
            )
        budget = Budget(
            money.cap_pico,
            spent_pico=money.spent_pico + others.spent_pico,
            possible_pico=money.possible_pico + others.possible_pico,
            share=WHOLE if part is None else part.share,
        )
        if holder is not None and money.cap_pico is not None:
            budget = holder.allowance
        driver = Driver(
            Parts(
                job=work.job,
                dataset=work.dataset,
                log=log,
                clock=shell.clock,
                clients=clients,
                scheduler=shared.scheduler(work.job, options, budget),
                growth=growth,
                tell=shell.tell,
                seed=options.seed,
                reask=getattr(work.settings, "reask", 0),
                grace_s=options.grace_s,
                frees_held=options.unknown == "retry",
                known=None if part is None else part.others.known,
                cache=cache,
                prices=prices,
                bell=shared.bell,
                shares_budget=shared.budget is not None,
                batched=connections.endpoints.keys(),
                carried=taken_up.carried,
                leaving=leaving,
            )
        )
        listener = Listener(
            folder=folder,
            log=log,
            driver=driver,
            clock=shell.clock,
            stages=tuple(stage.name for stage in work.job.stages),
            models=tuple(clients),
            tell=shell.tell,
            found=taken_up.found,
            own=taken_up.own,
            answered=taken_up.answered,
        )
        decider = Decider(
            folder=folder,
            log=log,
            work=work,
            driver=driver,
            clock=shell.clock,
            tell=shell.tell,
            looking=None
            if stopping is None
            else Looking(stopping=stopping, decide=load_decide()),
        )
        if company is None:
            obey_signals(driver, shell.tell)
        stack.enter_context(shared.joined(driver))
        shell.launched()
        carrier = await stack.enter_async_context(carrying(folder, part, driver, shell))
        if lessee is not None:
            await stack.enter_async_context(lessee.leasing(driver))
        async with listener.listening():
            # after what was waiting: a retry changes what is left to do
            with open_reader(folder.log) as reader:
                before = status(reader)
            async with shell.watch(driver, growth, before), decider.deciding():
                outcome = await driver.run()
                if outcome == "finished":
                    await decider.look()
        ending = Ending(
            folder=folder,
            log=log,
            clock=shell.clock,
            growth=growth,
            driver=driver,
            listener=listener,
            decided=decider.decided,
            endpoints=connections.endpoints,
            is_fenced=lessee is not None and lessee.is_fenced,
        )
        ended = await ending.conclude(outcome)
        if carrier is not None:
            await carrier.conclude(ended)
        return ended


def check_alive(folder: RunFolder) -> None:
    """Raise where another process is writing the run."""
    if folder.is_alive():
        raise RunnerError(
            f"Run {folder.run_id} is being written by another process; "
            f"watch it with siftlog status {folder.run_id}."
        )


def check_cancelled(folder: RunFolder, found: str | None) -> None:
    """Raise where a run was cancelled, and nobody has asked for its tasks since."""
    if found == "cancelled" and "retry" not in {c.kind for c in waiting(folder)}:
        raise UsageError(
            f"Run {folder.run_id} was cancelled; bring its tasks back with siftlog "
            f"retry {folder.run_id} --reason {REASON}, then resume it."
        )
