"""Drives a run whose shards are placed by an engine, until each has ended for good.

The driver makes no calls and writes no event: it lends limits and money to the shards
(`runner.leasing`), has them placed and placed again, keeps their union fresh, and hands
on what people ask of the run. When it dies, its shards finish their calls and end;
another driver goes on with what they recorded.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace
from typing import Final

from runner.control.cancelling import REASON
from runner.control.ending import Ended, cancelled
from runner.control.signals import obey_signals
from runner.engine.beside import beside
from runner.errors import RunnerError, UsageError
from runner.launching.shell import Shell
from runner.leasing.broker import Broker
from runner.leasing.serving import Server, serving
from runner.leasing.wire import VARIABLE
from runner.limits.limiter import Limits
from runner.options import RunOptions, toml_of
from runner.placing.beginning import alone, check_split, outlive
from runner.placing.engine import Engine
from runner.placing.engines import open_engine
from runner.placing.foreman import Foreman
from runner.placing.freshness import Freshness
from runner.placing.placement import Placement, Show, Stand
from runner.placing.relaying import Relay
from runner.placing.spec import ShardSpec
from runner.placing.supervisor import Policy, Supervisor, Verdict
from runner.roles import assigned
from runner.work import Work
from store.runs import RunFolder
from store.spending import Spending, spending
from store.task import pico
from store.union.elsewhere import add_place
from store.views import open_reader

LATE_S: Final = 5.0
"""From the end of a lease and of the grace for its calls to the end of its process."""


async def drive(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    placement: Placement,
    show: Show,
) -> Ended:
    """Begin a run, or go on with it, until its shards have ended.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent, of the whole run.
        shell: what surrounds it.
        placement: how it is split.
        show: shows how it stands meanwhile.

    Raises:
        RunnerError: another process drives it, or no shard could begin.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    if placement.ship is not None:
        add_place(folder.places, placement.ship)
    check_split(folder)
    fence_s = placement.ttl_s + options.grace_s + LATE_S
    with alone(folder):
        await outlive(folder, shell.clock, shell.tell, fence_s)
        token = secrets.token_urlsafe()
        engine = await asyncio.to_thread(
            open_engine,
            placement.engine,
            {VARIABLE: token},
            shards=placement.shards,
            address=placement.address,
        )
        try:
            if engine.is_spread and placement.ship is None:
                raise UsageError(
                    "The shards keep their logs on the machines of the cluster: name "
                    "with --ship DIR|URL where these come together."
                )
            driven = _Drive(
                folder=folder,
                work=work,
                options=options,
                shell=shell,
                placement=placement,
                engine=engine,
                union=Freshness(folder, shell),
            )
            return await driven.carry_out(token, fence_s, show)
        finally:
            await asyncio.to_thread(engine.close)


@dataclass(slots=True, kw_only=True)
class _Drive:
    """One driver's work on one run."""

    folder: RunFolder
    work: Work
    options: RunOptions
    shell: Shell
    placement: Placement
    engine: Engine
    union: Freshness

    async def carry_out(self, token: str, fence_s: float, show: Show) -> Ended:
        """Place the shards, and go on until each has ended."""
        money = await asyncio.to_thread(self._money)
        limits = self._limits()
        broker = Broker(
            run_id=self.folder.run_id,
            limits=limits,
            budget_pico=money.cap_pico,
            # what earlier processes may have spent is not lent again
            spent_pico=money.spent_pico + money.possible_pico + money.in_flight_pico,
            ttl_s=self.placement.ttl_s,
        )
        supervisor = Supervisor(self.placement.shards, Policy(fence_s=fence_s))
        async with serving(
            broker, host=self.engine.host, token=token, clock=self.shell.clock
        ) as server:
            foreman = Foreman(
                specs=self._specs(server.address, money.cap_usd),
                engine=self.engine,
                supervisor=supervisor,
                silence=lambda: _silence(server),
                clock=self.shell.clock,
                tell=self.shell.tell,
            )
            relay = Relay(
                folder=self.folder,
                server=server,
                close=foreman.close,
                limits=limits,
            )
            relay.pass_over()
            obey_signals(foreman, self.shell.tell)
            async with (
                show(lambda: self._stand(server, supervisor)),
                beside(self.union.keep()),
            ):
                await foreman.work(relay.listen)
                await self.union.look(to_the_end=True)
        return self._ended(supervisor)

    def _limits(self) -> dict[str, Limits]:
        """What a person set for all shards together, by model."""
        whole = self.options.model_copy(update={"rate_share": 1})
        models = assigned(self.work.job, whole).all_models
        return {model: whole.limits_of(model) for model in models}

    def _money(self) -> Spending:
        """What the run has spent, and may spend: the last word on that counts."""
        given = self.options.budget
        cap_pico = None if given is None else pico(given)
        if not self.folder.log.exists():
            return Spending(
                spent_pico=0,
                possible_pico=0,
                in_flight_pico=0,
                cap_pico=cap_pico,
                is_whole=False,
            )
        with open_reader(self.folder.log) as reader:
            money = spending(reader)
        return money if given is None else replace(money, cap_pico=cap_pico)

    def _specs(self, address: str, cap_usd: float | None) -> list[ShardSpec]:
        """Every shard, with the options of the whole run."""
        placement, run_id = self.placement, self.folder.run_id
        here = self.folder.path.parent.absolute()
        config = toml_of(
            job=self.work.job.name,
            options=self.options.model_copy(update={"budget": cap_usd}),
            settings=self.work.settings.model_dump(mode="json"),
        )
        words = [
            *("run", self.work.job.name, f"--run-id={run_id}", f"--runs-dir={here}"),
            f"--broker={address}",
            f"--rate-share={placement.shards}",
        ]
        if placement.local_dir is not None:
            words.append(f"--local-dir={placement.local_dir}")
        if placement.ship is not None:
            words.append(f"--ship={placement.ship}")
            words.append(f"--ship-every={placement.ship_every_s}")
        return [
            ShardSpec(
                run_id=run_id,
                index=index,
                count=placement.shards,
                words=(*words, f"--shard={index}/{placement.shards}"),
                config=config,
                environment=(VARIABLE,),
                folder=(placement.local_dir or here) / run_id,
            )
            for index in range(placement.shards)
        ]

    def _stand(self, server: Server, supervisor: Supervisor) -> Stand:
        seen = [one for one in server.seen() if one.is_alive]
        return Stand(
            status=self.union.status,
            at_work=len(seen),
            shards=supervisor.count,
            restarts=supervisor.restarts,
            in_flight=sum(one.figures.in_flight for one in seen),
        )

    def _ended(self, supervisor: Supervisor) -> Ended:
        """What the ends of all shards come to; the worst of them counts."""
        for shard in supervisor.shards:
            if shard.verdict is Verdict.GIVEN_UP:
                said = shard.said.removeprefix("siftlog: ")
                name = f"{shard.index}/{supervisor.count}"
                why = f"Shard {name} was given up; it had said: {said}"
                if self.union.status is None:
                    raise RunnerError(why)
                return Ended(outcome="given up", why=why)
        verdicts = {shard.verdict for shard in supervisor.shards}
        run_id = self.folder.run_id
        go_on = (
            f"go on with: siftlog resume {run_id} --engine {self.placement.engine} "
            f"--shards {self.placement.shards}"
        )
        if Verdict.INTERRUPTED in verdicts:
            seen = self.union.status
            if seen is None:
                raise RunnerError(f"Ended before a shard had begun; {go_on}")
            if seen.signs.phase == "run_cancelled":
                return cancelled(run_id, seen.skips.get(REASON, 0))
            return Ended(outcome="drained", why=f"Interrupted; {go_on}")
        if Verdict.BUDGET in verdicts:
            return Ended(
                outcome="budget", why=f"The budget is spent; {go_on} --budget USD"
            )
        return Ended(outcome="finished")


def _silence(server: Server) -> dict[int, float]:
    """Seconds since a process of each shard was heard."""
    found: dict[int, float] = {}
    for seen in server.seen():
        index = int(seen.shard.partition("/")[0])
        found[index] = min(seen.silent_s, found.get(index, seen.silent_s))
    return found
