"""Tracks the broker's leases of limits and money, and the members; sans-IO.

Two rules keep the sum of all shards within a limit of which each knows only a part:

1. Lent credit is used within `LIFE_S` or returned. So requests sent in any minute use
   credit lent in that minute or in the `LIFE_S` before it, and the buckets enforce the
   limit in windows longer by `LIFE_S`. Returned credit was never used and counts as
   never lent.
2. Requests sent before a bucket was created are unknown, so it starts empty.

Requests are served in order, each with at most a part of a bucket, and repeated at the
end of the queue: shards that need much share equally, those that need little get it.

Lent money counts as spent until it is returned, or until the shard's end is known, so
together they never exceed the budget, whatever is lost. If the rest is too little for a
shard's next call, all shards are asked to return money they do not need at once; the
call is refused only when even all returnable money would not pay for it.

A process without messages for a TTL is silent: it has stopped itself slightly earlier,
because its own TTL runs from its last message. Until then only a process that continues
its log gets its slices: a log has one writer at a time, and its lock proves that the
previous one is gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from runner.limits.limiter import REQUEST_BURST_S, TOKEN_BURST_S, Limits
from runner.limits.rate_limits import MinuteBucket, MinuteGate, Quota
from runner.shards.lease_protocol import (
    LIFE_S,
    WINDOW_S,
    HeaderLimitSeen,
    Hello,
    RequestCredit,
    RequestMoney,
    ShardProgress,
    ShardRefused,
)
from store.slices import Slices

LARGEST: Final = 0.6
"""Of a bucket, lent at a time. Of 25 requests, as at 100 a second, 15: one question for
so many calls, and few are held at a run's end by shards that have no use for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LentCredit:
    """What is lent to one shard."""

    process: str
    requests: int
    tokens: int


class CreditPool:
    """The requests and tokens of one model."""

    def __init__(self, limits: Limits | None, now: float) -> None:
        """An empty pool; *limits* as a person set them, None: nobody did."""
        self._requests, self._tokens = (
            MinuteGate(None, burst_s, window_s=WINDOW_S, first=0.0)
            for burst_s in (REQUEST_BURST_S, TOKEN_BURST_S)
        )
        self._pending_requests: dict[str, RequestCredit] = {}
        self.due: float | None = None  #: when the next part can be lent
        if limits is not None:
            self.set(limits, now)

    def set(self, limits: Limits, now: float) -> None:
        """Go by other limits of a person's from now on."""
        self._requests.set(now, limits.rpm)
        self._tokens.set(now, limits.tpm)

    def apply_header_limit(self, header_limit: HeaderLimitSeen, now: float) -> None:
        """Go by what the endpoint tells, where that is lower."""
        gate = self._requests if header_limit.kind == "requests" else self._tokens
        gate.apply_quota(
            now,
            Quota(per_minute=header_limit.per_minute, remaining=header_limit.remaining),
        )

    def ask(self, process: str, ask: RequestCredit) -> None:
        """Have *process* wait for its part; asking anew does not cost it its turn."""
        self._pending_requests[process] = ask

    def forget(self, process: str) -> None:
        """Have it wait no more."""
        self._pending_requests.pop(process, None)

    def take_back(self, requests: int, tokens: int) -> None:
        """Take back what was lent and is not used; negative: more was."""
        for bucket, amount in self._amounts(requests, tokens):
            bucket.give_back(amount)

    def lend(self, now: float, paused_until: float) -> Iterator[LentCredit]:
        """The parts that can be lent now, in turn."""
        self.due = None
        while self._pending_requests:
            process, ask = next(iter(self._pending_requests.items()))
            part = self._part(process, ask)
            amounts = self._amounts(part.requests, part.tokens)
            ready = [bucket.ready_at(now, amount) for bucket, amount in amounts]
            when = max([now, paused_until, *ready])
            if when > now:
                self.due = when
                return
            del self._pending_requests[process]
            for bucket, amount in amounts:
                bucket.take(now, amount)
            yield part

    def _part(self, process: str, ask: RequestCredit) -> LentCredit:
        requests, tokens = ask.requests, max(ask.tokens, ask.tokens_least)
        if (bucket := self._requests.bucket) is not None:
            requests = min(requests, max(1, math.floor(bucket.depth * LARGEST)))
        if (bucket := self._tokens.bucket) is not None:
            most = math.floor(bucket.depth * LARGEST)
            tokens = max(ask.tokens_least, min(tokens, most))
        return LentCredit(process=process, requests=requests, tokens=tokens)

    def _amounts(self, requests: int, tokens: int) -> list[tuple[MinuteBucket, float]]:
        """What that is of each limit that there is."""
        pairs = (self._requests.bucket, requests), (self._tokens.bucket, tokens)
        return [(bucket, float(n)) for bucket, n in pairs if bucket is not None and n]


@dataclass(slots=True, kw_only=True)
class _Account:
    log: str
    recorded: int  #: in it, before this process
    granted: int  #: lent, less what was given back
    spent: int = 0  #: as it said last

    @property
    def open(self) -> int:
        """What may come back yet."""
        return max(0, self.granted - self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyLoan:
    """The answer to one shard that asked."""

    process: str
    pico: int | None  #: None: never


class MoneyPool:
    """The budget, what of it is lent, and who waits for some."""

    def __init__(self, cap_pico: int, spent_pico: int) -> None:
        """A budget of which earlier processes have spent, or may have, so much."""
        self.cap_pico = cap_pico
        self._spent = spent_pico
        self._accounts: dict[str, _Account] = {}
        self._pending_requests: dict[str, int] = {}

    @property
    def taken_pico(self) -> int:
        """Spent, or lent."""
        return self._spent + sum(account.granted for account in self._accounts.values())

    @property
    def is_short(self) -> bool:
        """Whether somebody waits for money."""
        return bool(self._pending_requests)

    def join(self, hello: Hello) -> None:
        """A process is there; an earlier broker may have lent it something already.

        What the one before it has spent stands in the log that it goes on with.
        """
        if hello.process in self._accounts:
            return
        for process, account in list(self._accounts.items()):
            if account.log == hello.log:
                self.close(process, hello.recorded_pico - account.recorded)
        self._accounts[hello.process] = _Account(
            log=hello.log, recorded=hello.recorded_pico, granted=hello.granted_pico
        )

    def ask(self, process: str, ask: RequestMoney) -> int | None:
        """What is lent at once; None: `lend` will say."""
        left = self.cap_pico - self.taken_pico
        if ask.need_pico > left or (ask.need_pico and self.is_short):
            self._pending_requests[process] = ask.need_pico
            return None
        # nobody may have so much that the others soon have to wait for it to come back
        ahead = 0 if self.is_short else left // (2 * len(self._accounts))
        pico = max(ask.need_pico, min(ask.want_pico, ahead))
        self._accounts[process].granted += pico
        return pico

    def take_back(self, process: str, back_pico: int, spent_pico: int) -> None:
        """Money that is not needed comes back, and what was spent becomes known."""
        account = self._accounts[process]
        account.granted = max(0, account.granted - back_pico)
        self.record_spent(process, spent_pico)

    def record_spent(self, process: str, spent_pico: int) -> None:
        """A shard says what it has spent so far."""
        account = self._accounts[process]
        account.spent = max(account.spent, spent_pico)

    def presume_spent(self, process: str) -> None:
        """A shard is silent: what it was lent may have been spent."""
        self._pending_requests.pop(process, None)
        account = self._accounts[process]
        account.spent = max(account.spent, account.granted)

    def close(self, process: str, spent_pico: int) -> None:
        """A shard has ended, and what it has spent is known for good."""
        self._pending_requests.pop(process, None)
        self._spent += spent_pico
        del self._accounts[process]

    def add(self, pico: int) -> None:
        """Raise the budget."""
        self.cap_pico += pico

    def lend(self) -> Iterator[MoneyLoan]:
        """What those that wait can be told now, the first of them first."""
        for process, need in list(self._pending_requests.items()):
            left = self.cap_pico - self.taken_pico
            coming = sum(account.open for account in self._accounts.values())
            if need <= left:
                self._accounts[process].granted += need
            elif need <= left + coming:
                return
            del self._pending_requests[process]
            yield MoneyLoan(process=process, pico=need if need <= left else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """What is known of one process of a shard."""

    process: str
    shard: str  #: i/n
    slices: str
    figures: ShardProgress
    silent_s: float  #: since it was heard
    is_alive: bool  #: its lease runs


@dataclass(slots=True, kw_only=True)
class MemberProcess:
    """One process."""

    hello: Hello
    slices: Slices
    renewed_at: float
    is_alive: bool = True
    is_renewed: bool = True  #: when it asks for that
    figures: ShardProgress = field(default_factory=ShardProgress)


class Membership:
    """The processes of one run, in the order of coming."""

    def __init__(self, run_id: str, ttl_s: float) -> None:
        """Nobody is there."""
        self._run_id = run_id
        self._ttl_s = ttl_s
        self._members: dict[str, MemberProcess] = {}

    def get(self, process: str) -> MemberProcess | None:
        """Who that is; None: its end is known."""
        return self._members.get(process)

    def alive(self, *, but: str | None = None) -> list[str]:
        """All whose lease runs, *but* one of them."""
        return [
            process
            for process, member in self._members.items()
            if member.is_alive and process != but
        ]

    def join(self, hello: Hello, now: float) -> ShardRefused | None:
        """Take a process in; why not, if not."""
        if hello.run_id != self._run_id:
            return ShardRefused(why=f"it serves the run {self._run_id}", for_s=0.0)
        try:
            slices = Slices.parse(hello.slices)
        except ValueError as error:
            return ShardRefused(why=str(error), for_s=0.0)
        member = self._members.get(hello.process)
        if member is not None:
            if not member.is_alive:
                return ShardRefused(why="the lease had run out", for_s=0.0)
            self.renew(member, now)
            return None
        for other in self._members.values():
            is_free = other.hello.log == hello.log or not other.is_alive
            if not is_free and other.slices & slices:
                return ShardRefused(
                    why="another process may still work on that part of the run",
                    for_s=max(0.0, other.renewed_at + self._ttl_s - now) + LIFE_S,
                )
        self._members[hello.process] = MemberProcess(
            hello=hello, slices=slices, renewed_at=now
        )
        return None

    def before(self, hello: Hello) -> list[str]:
        """The processes whose log it goes on with."""
        return [
            process
            for process, member in self._members.items()
            if member.hello.log == hello.log and process != hello.process
        ]

    def forget(self, process: str) -> None:
        """A process has ended."""
        del self._members[process]

    def renew(self, member: MemberProcess, now: float) -> None:
        """A process said something; by that its lease begins anew, unless revoked."""
        if member.is_alive and member.is_renewed:
            member.renewed_at = now

    def revoke(self, shard: str) -> None:
        """Renew no lease of a shard's processes: they stop within a TTL."""
        for member in self._members.values():
            if member.hello.shard == shard:
                member.is_renewed = False

    def falls_silent(self, now: float) -> Iterator[str]:
        """Those whose lease has just run out."""
        for process, member in self._members.items():
            if member.is_alive and now >= member.renewed_at + self._ttl_s:
                member.is_alive = False
                yield process

    @property
    def next_silent_at(self) -> float | None:
        """When the next lease runs out, if its process is not heard."""
        ends = (
            m.renewed_at + self._ttl_s for m in self._members.values() if m.is_alive
        )
        return min(ends, default=None)

    def processes(self, now: float) -> tuple[ProcessRecord, ...]:
        """What is known of each."""
        return tuple(
            ProcessRecord(
                process=process,
                shard=member.hello.shard,
                slices=member.hello.slices,
                figures=member.figures,
                silent_s=now - member.renewed_at,
                is_alive=member.is_alive,
            )
            for process, member in self._members.items()
        )
