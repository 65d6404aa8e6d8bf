"""Lends one run's limits and money to its shards.

Sans-IO: `hear` takes what a shard says with the time it was heard, `step` gives what is
to be said to whom, and when to look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from runner.leasing.messages import (
    Ask,
    AskMoney,
    Back,
    Bye,
    Down,
    Hello,
    Lease,
    Line,
    Money,
    MoneyBack,
    NoMoney,
    Raised,
    Refused,
    Renew,
    Renewed,
    Short,
    Told,
    Up,
    Waits,
    Welcome,
)
from runner.leasing.pool import Pool
from runner.leasing.purse import Purse
from runner.leasing.roll import Member, Roll, Seen
from runner.leasing.terms import LIFE_S, TTL_S
from runner.limits.limiter import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is to be said now."""

    say: Mapping[str, list[Down]]  #: by process
    wake_at: float | None  #: look again then, at the latest; None: when told something


class Broker:
    """Everything that the shards of one run share."""

    def __init__(
        self,
        *,
        run_id: str,
        limits: Mapping[str, Limits],
        budget_pico: int | None = None,
        spent_pico: int = 0,
        ttl_s: float = TTL_S,
    ) -> None:
        """Nobody is at work yet, and nothing may be sent at once.

        Args:
            run_id: whose shards it serves.
            limits: what a person set for all of them together, by model.
            budget_pico: what they may spend, earlier processes included; None: there
                is no budget.
            spent_pico: what earlier processes have spent, or may have.
            ttl_s: for how long a shard may be silent.
        """
        self._limits = dict(limits)
        self._purse = None if budget_pico is None else Purse(budget_pico, spent_pico)
        self._was_short = False
        self._ttl_s = ttl_s
        self._roll = Roll(run_id, ttl_s)
        self._pools: dict[tuple[str, str], Pool] = {}
        self._paused: dict[str, float] = {}  #: until when, by endpoint
        self._lines: list[bytes] = []
        self._say: dict[str, list[Down]] = {}

    # -- what shards say ---------------------------------------------------------

    def join(self, hello: Hello, now: float) -> Refused | None:
        """Take a shard in; why not, if not."""
        refused = self._roll.join(hello, now)
        if refused is not None:
            return refused
        for process in self._roll.before(hello):
            self._forget(process)
        if self._purse is not None:
            self._purse.join(hello)
        self._tell(
            hello.process,
            Welcome(now=now, ttl_s=self._ttl_s),
            *(Line(line=line) for line in self._lines),
        )
        if self._was_short:
            self._tell(hello.process, Short(is_short=True))
        return None

    def hear(self, process: str, message: Up, now: float) -> None:
        """A shard that was taken in says something."""
        member = self._roll.get(process)
        if member is None:
            return  # its end is known; what it says comes late
        self._roll.heard(member, now)
        match message:
            case Hello():
                pass  # it is here already
            case Renew():
                self._renew(process, member, message, now)
            case Ask() | Back() | Told():
                self._hear_of_limits(process, member, message, now)
            case Waits():
                self._cool(process, message, now)
            case AskMoney() | MoneyBack():
                self._hear_of_money(process, member, message)
            case Bye():
                self._forget(process)
                if self._purse is not None:
                    self._purse.closed(process, message.spent_pico)
            case _:
                assert_never(message)

    def _renew(self, process: str, member: Member, renew: Renew, now: float) -> None:
        member.figures = renew.figures
        if self._purse is not None:
            self._purse.spent(process, renew.figures.spent_pico)
        if member.is_alive and member.is_renewed:
            self._tell(process, Renewed(now=now))

    def _hear_of_limits(
        self, process: str, member: Member, message: Ask | Back | Told, now: float
    ) -> None:
        key = message.endpoint, message.model
        if key not in self._pools:
            self._pools[key] = Pool(self._limits.get(message.model), now)
        pool = self._pools[key]
        match message:
            case Back():
                pool.back(message.requests, message.tokens)
            case Told():
                pool.told(message, now)
            case Ask():
                if member.is_alive:
                    pool.ask(process, message)

    def _hear_of_money(
        self, process: str, member: Member, message: AskMoney | MoneyBack
    ) -> None:
        if self._purse is None:
            return
        if isinstance(message, MoneyBack):
            self._purse.back(process, message.back_pico, message.spent_pico)
        elif member.is_alive:
            pico = self._purse.ask(process, message)
            if pico is not None:
                self._tell(process, Money(pico=pico))

    def _cool(self, process: str, waits: Waits, now: float) -> None:
        """Have everybody leave an endpoint alone, as one of them was asked to."""
        until = now + waits.for_s
        if until <= self._paused.get(waits.endpoint, now):
            return
        self._paused[waits.endpoint] = until
        for other in self._roll.alive(but=process):
            self._tell(other, waits)

    def _tell(self, process: str, *messages: Down) -> None:
        self._say.setdefault(process, []).extend(messages)

    def _forget(self, process: str) -> None:
        """A process has ended."""
        self._roll.forget(process)
        for pool in self._pools.values():
            pool.forget(process)

    # -- what the driver says ----------------------------------------------------

    def revoke(self, shard: str) -> None:
        """Have the processes of a shard, i/n, stop by themselves within a TTL."""
        self._roll.revoke(shard)

    def relay(self, line: bytes) -> None:
        """Have a line written to every shard's control file, later ones' too."""
        self._lines.append(line)
        for process in self._roll.alive():
            self._tell(process, Line(line=line))

    def set_limits(self, model: str, limits: Limits, now: float) -> None:
        """Go by other limits of a person's from now on."""
        self._limits[model] = limits
        for (_, of_model), pool in self._pools.items():
            if of_model == model:
                pool.set(limits, now)

    def add_budget(self, pico: int) -> None:
        """Raise the budget; without one there is nothing to raise."""
        if self._purse is None:
            return
        self._purse.add(pico)
        for process in self._roll.alive():
            self._tell(process, Raised())

    # -- what to do --------------------------------------------------------------

    def step(self, now: float) -> Step:
        """What is to be said at *now*."""
        self._notice_silence(now)
        for (endpoint, model), pool in self._pools.items():
            for part in pool.lend(now, self._paused.get(endpoint, now)):
                self._tell(
                    part.process,
                    Lease(
                        endpoint=endpoint,
                        model=model,
                        requests=part.requests,
                        tokens=part.tokens,
                        until=now + LIFE_S,
                    ),
                )
        if self._purse is not None:
            self._lend_money(self._purse)
        say, self._say = self._say, {}
        wakes = [pool.due for pool in self._pools.values() if pool.due is not None]
        if (silent_at := self._roll.next_silent_at) is not None:
            wakes.append(silent_at)
        return Step(say=say, wake_at=min(wakes, default=None))

    def _notice_silence(self, now: float) -> None:
        for process in self._roll.falls_silent(now):
            for pool in self._pools.values():
                pool.forget(process)
            if self._purse is not None:
                self._purse.lost(process)

    def _lend_money(self, purse: Purse) -> None:
        for loan in purse.lend():
            answer = (
                Money(pico=loan.pico)
                if loan.pico is not None
                else NoMoney(cap_pico=purse.cap_pico, taken_pico=purse.taken_pico)
            )
            self._tell(loan.process, answer)
        if purse.is_short != self._was_short:
            self._was_short = purse.is_short
            for process in self._roll.alive():
                self._tell(process, Short(is_short=self._was_short))

    # -- where it stands -----------------------------------------------------------

    def seen(self, now: float) -> tuple[Seen, ...]:
        """Every process that is at work or fell silent, in the order of coming."""
        return self._roll.seen(now)
