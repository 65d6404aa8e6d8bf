"""Shards that send what one broker lends them, in virtual minutes.

Broker, holders and limiters are the real ones; sockets, logs and time are left out.
What is said arrives a little later. Static shares are there to be compared with: each
shard's limiter then has the limit divided by the number of shards.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Final, Literal

from runner.limits.limiter import Endpoint, Limits
from runner.money.budget import Budget
from runner.shards.broker import Broker
from runner.shards.lease_client import LeaseHolder, ProcessIdentity
from runner.shards.lease_protocol import (
    BrokerMessage,
    LeaseMessage,
    ShardProgress,
    decode_from_broker,
    decode_from_shard,
    encode_messages_line,
)
from store.slices import Slices

MOST_STEPS: Final = 500_000
"""The largest of the worlds here takes a third of them."""
RUN, ENDPOINT, MODEL = "r", "http://m", "m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one shard has to do."""

    calls: int
    starts_s: float = 0.0
    tokens: int = 0  #: reserved for a call
    used: int | None = None  #: of these by each call; None: all
    worst_pico: int = 0
    cost_pico: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One call."""

    at: float
    shard: int
    tokens: int  #: that it used


@dataclass(slots=True, kw_only=True)
class World:
    """A limit, and the shards that share it."""

    plans: Sequence[Plan]
    limits: Limits
    how: Literal["leases", "static"] = "leases"
    budget_pico: int | None = None
    slots: int = 64  #: calls at a time of one shard
    latency_s: tuple[float, float] = (0.2, 0.4)
    on_the_way_s: float = 0.005  #: of what is said
    kills: Sequence[tuple[float, int]] = ()  #: when, and which shard
    broker_ends_at: Sequence[float] = ()  #: another one takes its place
    seed: int = 0
    sent: list[Sent] = field(default_factory=list)
    lines: int = 0  #: that shards have said
    spent_pico: int = 0
    left: int = 0  #: calls for which there was no money

    def run(self) -> None:
        """Do everything that there is money for."""
        _Run(self).to_the_end()

    def share_used(self) -> float:
        """The time that all calls need at the limit's rate, by when the last left."""
        assert self.limits.rpm is not None
        self.run()
        return len(self.sent) / (self.limits.rpm / 60) / self.sent[-1].at

    def busiest_minute(self) -> tuple[int, int]:
        """Most requests, and most tokens, in any window of 60 s."""
        times = [each.at for each in self.sent]
        sums = [0]
        for each in self.sent:
            sums.append(sums[-1] + each.tokens)
        most = most_tokens = 0
        for i, at in enumerate(times):
            end = bisect_left(times, at + 60.0)
            most = max(most, end - i)
            most_tokens = max(most_tokens, sums[end] - sums[i])
        return most, most_tokens


def _even(calls: int) -> list[Plan]:
    return [Plan(calls=calls // SHARDS)] * SHARDS


def _skewed(calls: int) -> list[Plan]:
    """Zipf's law with exponent 0.5: the first shard has 15 % of the calls."""
    weights = [(i + 1) ** -0.5 for i in range(SHARDS)]
    return [Plan(calls=round(calls * x / sum(weights))) for x in weights]


def _staggered(calls: int) -> list[Plan]:
    """Four shards at a time, as an array job's come to their turns."""
    wait_s = calls / 500
    return [
        replace(plan, starts_s=wait_s * (i // 4)) for i, plan in enumerate(_even(calls))
    ]


def _one_late(calls: int) -> list[Plan]:
    first, *others = _even(calls)
    return [replace(first, starts_s=3 * calls / 1000), *others]


SHARDS: Final = 16
SCENARIOS: Final[Mapping[str, Callable[[int], list[Plan]]]] = {
    "even": _even,
    "skewed": _skewed,
    "staggered": _staggered,
    "one late": _one_late,
}
"""How so many calls are shared out, at 100/s: 20,000 calls come with a wait of 40 s
between groups, or of 60 s for one shard; fewer calls with less of it."""


class _Shard:
    """One process of a shard; another one takes up what a killed one left."""

    def __init__(self, run: _Run, number: int, plan: Plan, life: int) -> None:
        self.run, self.number, self.plan = run, number, plan
        self.left = plan.calls
        self.in_flight = 0
        self.is_alive = True
        self.is_broke = False
        self._wakes_at = float("inf")
        n = len(run.world.plans)
        self.holder = LeaseHolder(
            ProcessIdentity(
                run_id=RUN,
                process=f"{number}.{life}",
                shard=f"{number}/{n}",
                slices=str(Slices.of(number, n)),
                log=str(number),
                recorded_pico=run.recorded_pico[number],
            ),
            token="",
            wake=lambda: None,  # it is asked after each step
            on_line=run.lines.append,
        )
        self.money = self.holder.money_share if plan.worst_pico else Budget()
        has_leases = run.world.how == "leases"
        endpoint = Endpoint(ENDPOINT, lender=self.holder if has_leases else None)
        self.limiter = endpoint.limiter(MODEL, run.limits_of_one)

    @property
    def may_send(self) -> bool:
        """Whether only limits can hold it back."""
        world = self.run.world
        is_free = self.is_alive and self.in_flight < world.slots
        holds = world.how == "static" or self.holder.holds(self.run.now)
        return bool(self.left) and is_free and holds

    def step(self) -> None:
        """Send what may leave, and say what is to be said."""
        run, plan = self.run, self.plan
        while self.may_send and self.money.has_room(plan.worst_pico):
            when = self.limiter.ready_at(run.now, plan.tokens)
            if when is None:
                break
            if when > run.now:
                self.wake_at(when)
                break
            self._send()
        self.is_broke = (
            bool(self.left) and not self.in_flight and self.money.is_settled
        ) and not self.money.has_room(plan.worst_pico)
        if run.world.how == "leases" and self.is_alive:
            self._speak()

    def wake_at(self, when: float) -> None:
        """Look again then."""
        if when < self._wakes_at or self._wakes_at <= self.run.now:
            self._wakes_at = when
            self.run.at(when, self.step)

    def _send(self) -> None:
        run, plan = self.run, self.plan
        self.limiter.acquire(run.now, plan.tokens)
        reserved = self.money.reserve(plan.worst_pico)
        used = plan.tokens if plan.used is None else plan.used
        run.world.sent.append(Sent(at=run.now, shard=self.number, tokens=used))
        run.world.spent_pico += plan.cost_pico
        run.recorded_pico[self.number] += plan.cost_pico
        self.left -= 1
        self.in_flight += 1

        def ended() -> None:
            if self.is_alive:
                self.in_flight -= 1
                run.done += 1
                self.limiter.release(plan.tokens, used)
                self.money.settle(
                    plan.worst_pico, plan.cost_pico, reserved_pico=reserved
                )
                self.step()

        run.at(run.now + run.random.uniform(*run.world.latency_s), ended)

    def _speak(self) -> None:
        if not self.holder.holds(self.run.now):
            return
        said = self.holder.says(self.run.now, ShardProgress)
        if said:
            self.run.say(self, said)
        self.wake_at(max(self.holder.wake_at(), self.run.now + 1e-6))


class _Run:
    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(world.seed)
        self.now = 0.0
        self.done = self.steps = 0
        self.lines: list[bytes] = []  #: that the broker relayed
        self._order = count()
        self._lives = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._shards: dict[str, _Shard] = {}
        self._of_number: dict[int, _Shard] = {}
        self._broker_wakes_at = float("inf")
        self.recorded_pico = [0] * len(world.plans)  #: in each shard's log
        self.limits_of_one = replace(
            world.limits,
            concurrency=world.slots * len(world.plans),
            processes=len(world.plans),
        )
        self.broker = self._new_broker()

    def _new_broker(self) -> Broker:
        return Broker(
            run_id=RUN,
            limits={MODEL: self.world.limits},
            budget_pico=self.world.budget_pico,
            spent_pico=sum(self.recorded_pico),
        )

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Do something then."""
        heapq.heappush(self._events, (when, next(self._order), what))

    def to_the_end(self) -> None:
        world = self.world
        for number, plan in enumerate(world.plans):
            self.at(plan.starts_s, partial(self._begin, number, plan))
        for when, number in world.kills:
            self.at(when, partial(self._kill, number))
        for when in world.broker_ends_at:
            self.at(when, self._restart_broker)
        calls = sum(plan.calls for plan in world.plans)
        while self.done < calls and not self._is_broke:
            self.now, _, what = heapq.heappop(self._events)
            what()
            self.steps += 1
            assert self.steps < MOST_STEPS, "it never ends"
        world.left = calls - self.done

    @property
    def _is_broke(self) -> bool:
        """Whether nobody has money for a call, or ever will."""
        shards = self._of_number.values()
        return len(shards) == len(self.world.plans) and all(
            shard.is_broke or not (shard.left or shard.in_flight) for shard in shards
        )

    # -- shards come and go --------------------------------------------------------

    def _begin(self, number: int, plan: Plan) -> None:
        shard = _Shard(self, number, plan, next(self._lives))
        self._shards[shard.holder.identity.process] = shard
        self._of_number[number] = shard
        if self.world.how == "leases":
            self._connect(shard)
        shard.step()

    def _connect(self, shard: _Shard) -> None:
        hello = shard.holder.connected(self.now)

        def arrives() -> None:
            refused = self.broker.join(hello, self.now)
            assert refused is None, refused
            self._step_broker()

        self.at(self.now + self.world.on_the_way_s, arrives)

    def _kill(self, number: int) -> None:
        """End a process; a second later all it did is known, and another begins."""
        dead = self._of_number.get(number)
        if dead is None or not dead.is_alive:
            return  # nobody is there
        dead.is_alive = False
        rest = replace(dead.plan, calls=dead.left + dead.in_flight)

        def noticed() -> None:
            self._begin(number, rest)

        self.at(self.now + 1.0, noticed)

    def _restart_broker(self) -> None:
        """Have one take its place that knows nothing; the shards connect to it."""
        self.broker = self._new_broker()
        for shard in self._shards.values():
            if shard.is_alive:
                self._connect(shard)

    # -- what is said --------------------------------------------------------------

    def say(self, shard: _Shard, said: Sequence[LeaseMessage]) -> None:
        """Have the broker hear it a moment later."""
        self.world.lines += 1
        read = decode_from_shard(encode_messages_line(said))

        def arrives() -> None:
            for message in read:
                self.broker.receive(shard.holder.identity.process, message, self.now)
            self._step_broker()

        self.at(self.now + self.world.on_the_way_s, arrives)

    def _step_broker(self) -> None:
        step = self.broker.step(self.now)
        for process, messages in step.say.items():
            read = decode_from_broker(encode_messages_line(messages))
            self.at(
                self.now + self.world.on_the_way_s,
                partial(self._answered, self._shards[process], read),
            )
        when = step.wake_at
        if when is not None and (
            when < self._broker_wakes_at or self._broker_wakes_at <= self.now
        ):
            self._broker_wakes_at = when
            self.at(when, self._step_broker)

    def _answered(self, shard: _Shard, messages: Sequence[BrokerMessage]) -> None:
        if shard.is_alive:
            for message in messages:
                shard.holder.receive(message, self.now)
            shard.step()
