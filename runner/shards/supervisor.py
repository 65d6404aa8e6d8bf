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
    """Where a shard stands."""

    WAITING = "waiting"  #: to be placed, once it is due
    PLACED = "placed"  #: handed to the engine
    FENCED = "fenced"  #: may be at work where nobody reaches it
    ENDED = "ended"  #: nothing more is done for it


class ShardVerdict(Enum):
    """What a shard that is not placed again came to."""

    DONE = "done"  #: all of its tasks are final
    BUDGET = "budget"  #: the run's money is spent
    FUTILE = "futile"  #: its replies are of no use; placed again it would pay for more
    INTERRUPTED = "interrupted"  #: somebody ended it; it can go on
    GIVEN_UP = "given up"  #: it cannot go on by itself


VERDICTS: Final = {
    0: ShardVerdict.DONE,
    2: ShardVerdict.GIVEN_UP,
    3: ShardVerdict.DONE,
    4: ShardVerdict.BUDGET,
}
"""By exit code (architecture, "Command line"); with any other it is placed again."""

INTERRUPTED: Final = 5
"""The exit code of a shard that drained, as one does that has lost its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How patient the supervisor is; all times in seconds."""

    fence_s: float  #: from a silence until nothing of the shard can be at work
    restarts: int = 8  #: in a row, none of which lived `steady_s`
    steady_s: float = 30.0  #: who lived so long did not die of its start
    backoff_s: float = 1.0  #: before the second placement in a row; doubles
    longest_s: float = 60.0  #: it grows to


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFinished:
    """A shard's process ended by itself, or could not be started."""

    index: int
    exit_code: int
    last_line: str  #: its last words


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardDied:
    """A shard's process is certainly no more."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLost:
    """Nobody can say whether a shard is at work: its engine or its lease is silent."""

    index: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class RunClosing:
    """The shards have been told by others to end: none is placed any more."""


@dataclass(frozen=True, slots=True)
class RunDraining:
    """Somebody wants the run to finish its calls in flight and to end."""


@dataclass(frozen=True, slots=True)
class RunStopping:
    """Somebody wants the run to end at once."""


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
    is_near: bool  #: to where it was last


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainShard:
    """Let the shard finish its calls and end."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KillShard:
    """End what is left of the shard, if it can be reached."""

    index: int


SupervisorAction: TypeAlias = PlaceShard | DrainShard | KillShard


@dataclass(slots=True, kw_only=True)
class SupervisedShard:
    """What is known of one shard."""

    index: int
    phase: PlacementPhase = PlacementPhase.WAITING
    due: float = 0.0  #: when it is placed, or its fence falls
    is_near: bool = True  #: its log is thought to lie where it was last
    since: float = 0.0  #: when it was placed last
    placements: int = 0
    quick_ends: int = 0  #: ends in a row that came soon after the placement
    exit_code: int | None = None  #: its last exit code
    last_line: str = ""  #: its last words
    verdict: ShardVerdict | None = None  #: once it has ended


_React: TypeAlias = Callable[
    ["Supervisor", SupervisedShard, Any, float], list[SupervisorAction]
]


@dataclass(slots=True)
class Supervisor:
    """The shards of one run, from their first placement to the last one's end."""

    count: int
    policy: RestartPolicy
    shards: list[SupervisedShard] = field(init=False)
    is_ending: bool = field(init=False, default=False)  #: nothing is placed any more

    def __post_init__(self) -> None:
        self.shards = [SupervisedShard(index=index) for index in range(self.count)]

    @property
    def is_over(self) -> bool:
        """Whether every shard has ended."""
        return all(shard.phase is PlacementPhase.ENDED for shard in self.shards)

    @property
    def restarts(self) -> int:
        """How often shards were placed again."""
        return sum(max(0, shard.placements - 1) for shard in self.shards)

    def handle(self, event: SupervisorEvent, now: float) -> list[SupervisorAction]:
        """What is to be done, in this order, now that *event* happened."""
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
        # what it says of itself twice it will say again; but that it lost its lease may
        # have been so, both times
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
        """Have a shard placed once more, later the more often it has just ended."""
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
        """Nothing of it is at work, or can be reached: it is over as it is."""
        return self._end(shard, ShardVerdict.INTERRUPTED)

    @staticmethod
    def _end(shard: SupervisedShard, verdict: ShardVerdict) -> list[SupervisorAction]:
        shard.phase = PlacementPhase.ENDED
        shard.verdict = verdict
        return []

    # what is not in here changes nothing
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
