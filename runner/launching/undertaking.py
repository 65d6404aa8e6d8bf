"""One process's work on a run: what it works with, put together, and the work itself.

Whoever begins a run, or takes it up, has checked and recorded all that comes before.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from runner.clients.client import ModelClient
from runner.control.decider import Decider, Looking
from runner.control.ending import Ended, Ending
from runner.control.listen import Listener
from runner.control.signals import obey_signals
from runner.deciding import load_decide
from runner.engine.cache import response_cache
from runner.engine.driver import Driver
from runner.engine.growth import Growth, Start
from runner.engine.parts import Parts
from runner.engine.scheduler import Scheduler
from runner.faults import JobFaults
from runner.launching.batching import batch_clients
from runner.launching.company import Company
from runner.launching.connecting import Connections, client_options
from runner.launching.group import elsewhere
from runner.launching.open_files import with_room
from runner.launching.shell import Shell
from runner.leasing.joining import lessee_of
from runner.money.bounds import Bounds, bounds_of
from runner.money.budget import WHOLE, Budget
from runner.money.prices import Price
from runner.options import RunOptions
from runner.roles import assigned
from runner.shards.carrying import carrying
from runner.shards.part import Part, taking
from runner.work import Work
from store.database import open_reader
from store.events import AttemptStarted
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.read.usage import spending
from store.results import StoppingRule
from store.runs import RunFolder
from store.task import TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """How a process found the run that it goes on with; a new run by default."""

    must_catch_up: bool = False
    group: str | None = None  #: whose budget it shares
    found: str | None = None  #: its state
    own: Collection[str] = ()  #: limits that this process was given itself
    stopping: StoppingRule | None = None  #: what the run stops at
    part: Part | None = None  #: of it that is asked; None: all
    carried: Sequence[AttemptStarted] = ()  #: attempts of others that go on in batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Undertaking:
    """What a process has agreed to do, and with what."""

    folder: RunFolder
    log: SqliteLog  #: open for writing; its beginning, or resumption, is recorded
    work: Work
    options: RunOptions
    shell: Shell
    connections: Connections
    prices: Mapping[str, Price | None]  #: by model
    taken_up: TakenUp

    async def carry_out(self, company: Company | None) -> Ended:
        """Work until the run ends or is interrupted.

        Args:
            company: the runs that share endpoints and budget with it; None: it is
                alone, and obeys the process's signals itself.
        """
        shell, part = self.shell, self.taken_up.part
        lessee = lessee_of(self.folder, part, shell)
        shared = company or Company(holder=None if lessee is None else lessee.holder)
        leaving = asyncio.Event()
        async with AsyncExitStack() as stack:
            clients = self._clients(leaving)
            for client in clients.values():
                stack.push_async_callback(client.close)
            growth = await self._growth()
            driver = Driver(await self._parts(stack, shared, clients, growth, leaving))
            listener = self._listener(driver, tuple(clients))
            decider = self._decider(driver)
            if company is None:
                obey_signals(driver, shell.tell)
            stack.enter_context(shared.joined(driver))
            shell.launched()
            carrier = await stack.enter_async_context(
                carrying(self.folder, part, driver, shell)
            )
            if lessee is not None:
                await stack.enter_async_context(lessee.leasing(driver))
            async with listener.listening():
                # after what was waiting: a retry changes what is left to do
                with open_reader(self.folder.log) as reader:
                    before = status(reader)
                async with shell.watch(driver, growth, before), decider.deciding():
                    outcome = await driver.run()
                    if outcome == "finished":
                        await decider.look()
            ending = Ending(
                folder=self.folder,
                log=self.log,
                clock=shell.clock,
                growth=growth,
                driver=driver,
                listener=listener,
                decided=decider.decided,
                endpoints=self.connections.endpoints,
                settle_s=self.options.batch_settle_s,
                is_fenced=lessee is not None and lessee.is_fenced,
            )
            ended = await ending.conclude(outcome)
            if carrier is not None:
                ended = await carrier.conclude(ended)
            return ended

    def _clients(self, leaving: asyncio.Event) -> dict[str, ModelClient]:
        """One for each model; *leaving* is set as the process is about to end."""
        in_batches = batch_clients(
            self.folder,
            self.log,
            self.options,
            self.shell,
            endpoints=self.connections.endpoints,
            starts=self.taken_up.carried,
            leaving=leaving,
        )
        return {**self.connections.clients, **in_batches}

    async def _growth(self) -> Growth:
        """The plan, from where the log has it."""
        job, dataset, part = self.work.job, self.work.dataset, self.taken_up.part
        return Growth(
            job=job,
            dataset=dataset,
            log=self.log,
            roles=assigned(job, self.options),
            start=Start(
                planning=await self.log.planning(),
                must_catch_up=self.taken_up.must_catch_up,
                is_shuffled=self.taken_up.stopping is not None,
                takes=None if part is None else taking(part.shard, job, dataset),
            ),
            faults=JobFaults(self.shell.tell),
        )

    def _budget(self) -> Budget:
        """What may still be spent here, from what was spent anywhere."""
        part = self.taken_up.part
        with open_reader(self.folder.log) as reader:
            money = spending(reader)
        if money.cap_pico is not None and not money.is_whole:
            self.shell.tell(
                "Answers of this run have no known price: the budget counts without "
                "them."
            )
        if part is None:
            runs_dir, group = self.shell.runs_dir, self.taken_up.group
            others = elsewhere(runs_dir, group, but=self.folder)
        else:
            others = part.others.spent
        return Budget(
            money.cap_pico,
            spent_pico=money.spent_pico + others.spent_pico,
            possible_pico=money.possible_pico + others.possible_pico,
            share=WHOLE if part is None else part.share,
        )

    async def _parts(
        self,
        stack: AsyncExitStack,
        shared: Company,
        clients: Mapping[str, ModelClient],
        growth: Growth,
        leaving: asyncio.Event,
    ) -> Parts:
        """What the driver works with; the cache is closed with *stack*."""
        job, options, shell = self.work.job, self.options, self.shell
        part = self.taken_up.part
        cache = await stack.enter_async_context(
            response_cache(
                options,
                {m: client_options(job, options, m, shell) for m in clients},
                run=self.folder.run_id,
                clock=shell.clock,
                tell=shell.tell,
            )
        )
        affordable = with_room(options, tuple(clients), shell.tell)
        scheduler = shared.scheduler(job, affordable, self._budget())
        bounds = self._bounds()
        self._probe(scheduler, bounds)
        return Parts(
            job=job,
            dataset=self.work.dataset,
            log=self.log,
            clock=shell.clock,
            clients=clients,
            scheduler=scheduler,
            growth=growth,
            tell=shell.tell,
            faults=growth.faults,
            futility=options.futility(clients.keys()),
            seed=options.seed,
            reask=getattr(self.work.settings, "reask", 0),
            grace_s=options.grace_s,
            frees_held=options.unknown == "retry",
            known=None if part is None else part.others.known,
            cache=cache,
            prices=self.prices,
            terms=self.connections.terms,
            ladders=self.connections.ladders,
            bounds=bounds,
            bell=shared.bell,
            shares_budget=shared.budget is not None,
            batched=self.connections.endpoints.keys(),
            carried=self.taken_up.carried,
            leaving=leaving,
        )

    def _completed(self) -> Counter[tuple[str, str]]:
        """Tasks that were completed before, by stage and model."""
        with open_reader(self.folder.log) as reader:
            lanes = status(reader).lanes
        return Counter(
            {lane.key: lane.states.get(TaskState.COMPLETED, 0) for lane in lanes}
        )

    def _bounds(self) -> dict[str, Bounds]:
        """What bounds the calls of each model, as far as the log tells it too."""
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

    def _probe(self, scheduler: Scheduler, bounds: Mapping[str, Bounds]) -> None:
        """Have the first call of a stage go alone, where little is known of its model.

        An endpoint may refuse it, or may bill more for it than its limit. None of those
        that were answered before, or whose model's family is known. Of a model that is
        asked in batches it is one call for all stages, since a batch may take hours.
        """
        job, options = self.work.job, self.options
        answered = {key for key, count in self._completed().items() if count}
        roles = assigned(job, options)
        for model, ladder in self.connections.ladders.items():
            is_patient = bounds[model].is_unproven and not options.is_batched(model)
            if ladder.is_known and not is_patient:
                continue  # a batch of one call costs hours
            stages = roles.stages_of(job, model)
            left = [stage for stage in stages if (stage, model) not in answered]
            if options.is_batched(model):
                left = left if len(left) == len(stages) else []
            scheduler.probe(model, left)

    def _listener(self, driver: Driver, models: tuple[str, ...]) -> Listener:
        """Who hears what is asked of the run."""
        part = self.taken_up.part
        return Listener(
            folder=self.folder,
            log=self.log,
            driver=driver,
            clock=self.shell.clock,
            stages=tuple(stage.name for stage in self.work.job.stages),
            models=models,
            tell=self.shell.tell,
            found=self.taken_up.found,
            own=self.taken_up.own,
            answered=() if part is None else part.others.settled,
        )

    def _decider(self, driver: Driver) -> Decider:
        """Who ends the run once it is decided which model is better, if anybody."""
        stopping = self.taken_up.stopping
        return Decider(
            folder=self.folder,
            log=self.log,
            work=self.work,
            driver=driver,
            clock=self.shell.clock,
            tell=self.shell.tell,
            looking=None
            if stopping is None
            else Looking(stopping=stopping, decide=load_decide()),
        )
