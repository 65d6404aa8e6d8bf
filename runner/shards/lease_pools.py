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
"""Maximum fraction of a bucket lent at a time. Of 25 requests, as at 100 per second,
15: one round trip for many calls, while few are held unused at a run's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LentCredit:
    """Credit lent to one shard."""

    process: str
    requests: int
    tokens: int


class CreditPool:
    """Requests and tokens of one model."""

    def __init__(self, limits: Limits | None, now: float) -> None:
        """Start empty; *limits* are the user's, or None."""
        self._requests, self._tokens = (
            MinuteGate(None, burst_s, window_s=WINDOW_S, first=0.0)
            for burst_s in (REQUEST_BURST_S, TOKEN_BURST_S)
        )
        self._pending_requests: dict[str, RequestCredit] = {}
        self.due: float | None = None  #: time of the next possible lease
        if limits is not None:
            self.set(limits, now)

    def set(self, limits: Limits, now: float) -> None:
        """Apply new limits of the user."""
        self._requests.set(now, limits.rpm)
        self._tokens.set(now, limits.tpm)

    def apply_header_limit(self, header_limit: HeaderLimitSeen, now: float) -> None:
        """Apply a limit from the endpoint's headers, if it is lower."""
        gate = self._requests if header_limit.kind == "requests" else self._tokens
        gate.apply_quota(
            now,
            Quota(per_minute=header_limit.per_minute, remaining=header_limit.remaining),
        )

    def ask(self, process: str, ask: RequestCredit) -> None:
        """Queue a request of *process*; a repeated one keeps its place."""
        self._pending_requests[process] = ask

    def forget(self, process: str) -> None:
        """Remove a process from the queue."""
        self._pending_requests.pop(process, None)

    def take_back(self, requests: int, tokens: int) -> None:
        """Take back unused credit; negative: more was used."""
        for bucket, amount in self._amounts(requests, tokens):
            bucket.give_back(amount)

    def lend(self, now: float, paused_until: float) -> Iterator[LentCredit]:
        """Yield the leases that can be granted now, in order."""
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
        """Return the amounts for each existing limit."""
        pairs = (self._requests.bucket, requests), (self._tokens.bucket, tokens)
        return [(bucket, float(n)) for bucket, n in pairs if bucket is not None and n]


@dataclass(slots=True, kw_only=True)
class _Account:
    log: str
    recorded: int  #: spending in the log before this process
    granted: int  #: lent minus returned
    spent: int = 0  #: as last reported

    @property
    def open(self) -> int:
        """Money that may still be returned."""
        return max(0, self.granted - self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyLoan:
    """The answer to a shard's request for money."""

    process: str
    pico: int | None  #: None: refused for good


class MoneyPool:
    """The budget, its leases, and pending requests."""

    def __init__(self, cap_pico: int, spent_pico: int) -> None:
        """Start with a budget and the possible spending of earlier processes."""
        self.cap_pico = cap_pico
        self._spent = spent_pico
        self._accounts: dict[str, _Account] = {}
        self._pending_requests: dict[str, int] = {}

    @property
    def taken_pico(self) -> int:
        """Money spent or lent."""
        return self._spent + sum(account.granted for account in self._accounts.values())

    @property
    def is_short(self) -> bool:
        """Whether requests are pending."""
        return bool(self._pending_requests)

    def join(self, hello: Hello) -> None:
        """Add a process; an earlier broker may have lent it money already.

        The spending of its predecessor is in the log that it continues.
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
        """Return the amount lent at once; None: `lend` answers later."""
        left = self.cap_pico - self.taken_pico
        if ask.need_pico > left or (ask.need_pico and self.is_short):
            self._pending_requests[process] = ask.need_pico
            return None
        # no shard gets so much that others soon have to wait for its return
        ahead = 0 if self.is_short else left // (2 * len(self._accounts))
        pico = max(ask.need_pico, min(ask.want_pico, ahead))
        self._accounts[process].granted += pico
        return pico

    def take_back(self, process: str, back_pico: int, spent_pico: int) -> None:
        """Take back unneeded money and record spending."""
        account = self._accounts[process]
        account.granted = max(0, account.granted - back_pico)
        self.record_spent(process, spent_pico)

    def record_spent(self, process: str, spent_pico: int) -> None:
        """Record the spending that a shard reports."""
        account = self._accounts[process]
        account.spent = max(account.spent, spent_pico)

    def presume_spent(self, process: str) -> None:
        """Count all money of a silent shard as spent."""
        self._pending_requests.pop(process, None)
        account = self._accounts[process]
        account.spent = max(account.spent, account.granted)

    def close(self, process: str, spent_pico: int) -> None:
        """Remove a shard that has ended with known spending."""
        self._pending_requests.pop(process, None)
        self._spent += spent_pico
        del self._accounts[process]

    def add(self, pico: int) -> None:
        """Raise the budget."""
        self.cap_pico += pico

    def lend(self) -> Iterator[MoneyLoan]:
        """Yield answers to pending requests that are possible now, in order."""
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
    """State of one process of a shard."""

    process: str
    shard: str  #: i/n
    slices: str
    figures: ShardProgress
    silent_s: float  #: seconds since its last message
    is_alive: bool  #: its lease is valid


@dataclass(slots=True, kw_only=True)
class MemberProcess:
    """A member process."""

    hello: Hello
    slices: Slices
    renewed_at: float
    is_alive: bool = True
    is_renewed: bool = True  #: its renewals are granted
    figures: ShardProgress = field(default_factory=ShardProgress)


class Membership:
    """Processes of one run, in the order of arrival."""

    def __init__(self, run_id: str, ttl_s: float) -> None:
        """Start without members."""
        self._run_id = run_id
        self._ttl_s = ttl_s
        self._members: dict[str, MemberProcess] = {}

    def get(self, process: str) -> MemberProcess | None:
        """Return a member; None: it has ended."""
        return self._members.get(process)

    def alive(self, *, but: str | None = None) -> list[str]:
        """Return all processes with a valid lease, except *but*."""
        return [
            process
            for process, member in self._members.items()
            if member.is_alive and process != but
        ]

    def join(self, hello: Hello, now: float) -> ShardRefused | None:
        """Admit a process; return the reason if it is refused."""
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
        """Return the processes whose log it continues."""
        return [
            process
            for process, member in self._members.items()
            if member.hello.log == hello.log and process != hello.process
        ]

    def forget(self, process: str) -> None:
        """Remove a process that has ended."""
        del self._members[process]

    def renew(self, member: MemberProcess, now: float) -> None:
        """Renew a process's lease after a message, unless it was revoked."""
        if member.is_alive and member.is_renewed:
            member.renewed_at = now

    def revoke(self, shard: str) -> None:
        """Renew no lease of a shard's processes: they stop within a TTL."""
        for member in self._members.values():
            if member.hello.shard == shard:
                member.is_renewed = False

    def falls_silent(self, now: float) -> Iterator[str]:
        """Yield processes whose lease has just expired."""
        for process, member in self._members.items():
            if member.is_alive and now >= member.renewed_at + self._ttl_s:
                member.is_alive = False
                yield process

    @property
    def next_silent_at(self) -> float | None:
        """Return when the next lease expires without a message."""
        ends = (
            m.renewed_at + self._ttl_s for m in self._members.values() if m.is_alive
        )
        return min(ends, default=None)

    def processes(self, now: float) -> tuple[ProcessRecord, ...]:
        """Return the state of each process."""
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
