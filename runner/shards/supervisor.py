"""Decides when the shards of a run are placed, restarted and given up.

It takes events with their time and returns actions; it owns neither engine nor clock.
`Supervisor._TABLE` defines the meaning of events, `VERDICTS` that of exit codes. A
shard is restarted

* at once, near its log, when its process has certainly ended;
* after `RestartPolicy.fence_s`, anywhere, when that is unknown: by then it has lost its
  lease and finished its calls;
* not at all, when it reports the same failure twice, dies too often in a row, or
  stopped because its replies are useless: each restart would pay for more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from runner.engine.failure_policy import GO_ON


class PlacementPhase(Enum):
    """Phase of a shard."""

    WAITING = "waiting"  #: to be placed, once it is due
    PLACED = "placed"  #: handed to the engine
    FENCED = "fenced"  #: may run where it is unreachable
    ENDED = "ended"  #: will not be placed again


class ShardVerdict(Enum):
    """Outcome of a shard that is not placed again."""

    DONE = "done"  #: all of its tasks are final
    BUDGET = "budget"  #: the budget is spent
    FUTILE = "futile"  #: its replies are useless; a restart would pay for more
    INTERRUPTED = "interrupted"  #: ended by the user; it can continue
    GIVEN_UP = "given up"  #: it cannot continue without the user


VERDICTS: Final = {
    0: ShardVerdict.DONE,
    2: ShardVerdict.GIVEN_UP,
    3: ShardVerdict.DONE,
    4: ShardVerdict.BUDGET,
}
"""By exit code (architecture, "Command line"); other codes lead to a restart."""

INTERRUPTED: Final = 5
"""Exit code of a shard that drained, also after the loss of its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """Limits of restarts; all times in seconds."""

    fence_s: float  #: from the last message until the shard has certainly stopped
    restarts: int = 8  #: consecutive restarts that lived less than `steady_s`
    steady_s: float = 30.0  #: a shard that lived this long did not fail at its start
    backoff_s: float = 1.0  #: before the second consecutive placement; doubles
    longest_s: float = 60.0  #: maximum backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFinished:
    """A shard's process exited, or could not be started."""

    index: int
    exit_code: int
    last_line: str  #: its last line


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardDied:
    """A shard's process has certainly ended."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLost:
    """The state of a shard is unknown: its engine or its lease is silent."""

    index: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class RunClosing:
    """The shards were told by others to end: none is placed again."""


@dataclass(frozen=True, slots=True)
class RunDraining:
    """The user wants the run to finish its calls in flight and end."""


@dataclass(frozen=True, slots=True)
class RunStopping:
    """The user wants the run to end at once."""


SupervisorEvent: TypeAlias = (
    ShardFinished
    | ShardDied
    | ShardLost
    | Tick
    | RunClosing
    | RunDraining
    | RunStopping
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceShard:
    """Start the shard."""

    index: int
    is_near: bool  #: near its last placement


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainShard:
    """Let the shard finish its calls and end."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KillShard:
    """End what is left of the shard, if it is reachable."""

    index: int


SupervisorAction: TypeAlias = PlaceShard | DrainShard | KillShard


@dataclass(slots=True, kw_only=True)
class SupervisedShard:
    """State of one shard."""

    index: int
    phase: PlacementPhase = PlacementPhase.WAITING
    due: float = 0.0  #: when it is placed, or its fence ends
    is_near: bool = True  #: its log is probably at its last placement
    since: float = 0.0  #: time of its last placement
    placements: int = 0
    quick_ends: int = 0  #: consecutive ends soon after the placement
    exit_code: int | None = None  #: its last exit code
    last_line: str = ""  #: its last line
    verdict: ShardVerdict | None = None  #: once it has ended


_React: TypeAlias = Callable[
    ["Supervisor", SupervisedShard, Any, float], list[SupervisorAction]
]


@dataclass(slots=True)
class Supervisor:
    """The shards of one run, from the first placement to the last end."""

    count: int
    policy: RestartPolicy
    shards: list[SupervisedShard] = field(init=False)
    is_ending: bool = field(init=False, default=False)  #: no shard is placed again

    def __post_init__(self) -> None:
        self.shards = [SupervisedShard(index=index) for index in range(self.count)]

    @property
    def is_over(self) -> bool:
        """Whether every shard has ended."""
        return all(shard.phase is PlacementPhase.ENDED for shard in self.shards)

    @property
    def restarts(self) -> int:
        """Number of restarts."""
        return sum(max(0, shard.placements - 1) for shard in self.shards)

    def handle(self, event: SupervisorEvent, now: float) -> list[SupervisorAction]:
        """Return the actions after *event*, in order."""
        if isinstance(event, RunClosing | RunDraining | RunStopping):
            self.is_ending = True
        concerned = (
            [self.shards[event.index]]
            if isinstance(event, ShardFinished | ShardDied | ShardLost)
            else self.shards
        )
        actions: list[SupervisorAction] = []
        for shard in concerned:
            react = self._TABLE[shard.phase].get(type(event))
            if react is not None:
                actions += react(self, shard, event, now)
        return actions

    def _place(
        self, shard: SupervisedShard, _event: SupervisorEvent, now: float
    ) -> list[SupervisorAction]:
        if now < shard.due:
            return []
        shard.phase = PlacementPhase.PLACED
        shard.since = now
        shard.placements += 1
        return [PlaceShard(index=shard.index, is_near=shard.is_near)]

    def _finished(
        self, shard: SupervisedShard, event: ShardFinished, now: float
    ) -> list[SupervisorAction]:
        is_same = (event.exit_code, event.last_line) == (
            shard.exit_code,
            shard.last_line,
        )
        shard.exit_code, shard.last_line = event.exit_code, event.last_line
        verdict = VERDICTS.get(event.exit_code)
        if event.exit_code == INTERRUPTED and GO_ON in event.last_line:
            verdict = ShardVerdict.FUTILE
        # a failure reported twice will recur; but the lease may really have been lost
        # both times
        if verdict is None and is_same and event.exit_code != INTERRUPTED:
            verdict = ShardVerdict.GIVEN_UP
        if verdict is not None:
            return self._end(shard, verdict)
        return self._again(shard, now, is_near=True)

    def _died(
        self, shard: SupervisedShard, _event: ShardDied, now: float
    ) -> list[SupervisorAction]:
        return self._again(shard, now, is_near=True)

    def _lost(
        self, shard: SupervisedShard, _event: ShardLost, now: float
    ) -> list[SupervisorAction]:
        if self.is_ending:
            return [
                KillShard(index=shard.index),
                *self._end(shard, ShardVerdict.INTERRUPTED),
            ]
        shard.phase = PlacementPhase.FENCED
        shard.due = now + self.policy.fence_s
        return [KillShard(index=shard.index)]

    def _fallen(
        self, shard: SupervisedShard, _event: Tick, now: float
    ) -> list[SupervisorAction]:
        if now < shard.due:
            return []
        return self._again(shard, now, is_near=False)

    def _again(
        self, shard: SupervisedShard, now: float, *, is_near: bool
    ) -> list[SupervisorAction]:
        """Place a shard again, with a delay that grows with its quick ends."""
        if self.is_ending:
            return self._end(shard, ShardVerdict.INTERRUPTED)
        policy = self.policy
        is_quick = now - shard.since < policy.steady_s
        shard.quick_ends = shard.quick_ends + 1 if is_quick else 0
        if shard.quick_ends > policy.restarts:
            return self._end(shard, ShardVerdict.GIVEN_UP)
        pause = 0.0
        if shard.quick_ends > 1:
            pause = min(
                policy.longest_s, policy.backoff_s * 2 ** (shard.quick_ends - 2)
            )
        shard.phase = PlacementPhase.WAITING
        shard.is_near = is_near
        shard.due = now + pause
        return self._place(shard, Tick(), now)

    def _drain(
        self, shard: SupervisedShard, _event: RunDraining, _now: float
    ) -> list[SupervisorAction]:
        return [DrainShard(index=shard.index)]

    def _kill(
        self, shard: SupervisedShard, _event: RunStopping, _now: float
    ) -> list[SupervisorAction]:
        return [KillShard(index=shard.index)]

    def _leave(
        self, shard: SupervisedShard, _event: SupervisorEvent, _now: float
    ) -> list[SupervisorAction]:
        """End a shard that has no reachable process."""
        return self._end(shard, ShardVerdict.INTERRUPTED)

    @staticmethod
    def _end(shard: SupervisedShard, verdict: ShardVerdict) -> list[SupervisorAction]:
        shard.phase = PlacementPhase.ENDED
        shard.verdict = verdict
        return []

    # other events have no effect
    _TABLE: ClassVar[
        Mapping[PlacementPhase, Mapping[type[SupervisorEvent], _React]]
    ] = {
        PlacementPhase.WAITING: {
            Tick: _place,
            RunClosing: _leave,
            RunDraining: _leave,
            RunStopping: _leave,
        },
        PlacementPhase.PLACED: {
            ShardFinished: _finished,
            ShardDied: _died,
            ShardLost: _lost,
            RunDraining: _drain,
            RunStopping: _kill,
        },
        PlacementPhase.FENCED: {
            ShardFinished: _finished,
            ShardDied: _died,
            Tick: _fallen,
            RunClosing: _leave,
            RunDraining: _leave,
            RunStopping: _leave,
        },
        PlacementPhase.ENDED: {},
    }
