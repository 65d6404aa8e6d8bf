"""What places processes of shards: the interface that every engine fulfils.

An engine places, waits and stops. It restarts nothing by itself: only who supervises
knows when a shard's slices may be worked on again (`runner.placing.supervisor`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, Protocol, TypeAlias

from runner.placing.spec import ShardSpec

Name: TypeAlias = Literal["processes", "ray"]
"""What people call an engine."""

LOOPBACK: Final = "127.0.0.1"
"""Where shards of one machine reach it."""


class How(Enum):
    """In which way a placed shard came to its end."""

    FINISHED = "finished"  #: its process ended by itself, with an exit code
    DIED = "died"  #: it is certain that its process is no more
    UNAVAILABLE = "unavailable"  #: nobody can say; it may still be at work


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """One process of a shard, as its engine knows it."""

    index: int  #: of the shard
    number: int  #: of the placement, unique in its engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How one placed process ended."""

    handle: Handle
    how: How
    code: int | None = None  #: the exit code, negative for a signal; None: unknown
    said: str = ""  #: the last line that it said


class Engine(Protocol):
    """Starts shards somewhere and knows when they end; calls may block."""

    @property
    def host(self) -> str:
        """The address of this machine under which its shards reach it."""
        ...

    @property
    def is_spread(self) -> bool:
        """Whether shards may come to lie on other machines than this one."""
        ...

    def place(self, spec: ShardSpec, *, near: Handle | None = None) -> Handle:
        """Start a shard.

        Args:
            spec: the shard.
            near: a placement that has ended, whose machine is preferred: the shard's
                log lies there.

        Raises:
            RunnerError: it cannot be started, in one sentence.
        """
        ...

    def wait_any(self, timeout_s: float) -> Exit | None:
        """The next end of a placed shard, each told once; None if none came in time."""
        ...

    def stop(self, handle: Handle, *, at_once: bool) -> None:
        """Let a shard finish its calls in flight and end, or kill it; returns at once.

        Its end is told by `wait_any`, as always; of one that was killed perhaps only
        that it is out of reach. Nothing happens if it has ended.
        """
        ...

    def close(self) -> None:
        """Give up what the engine holds; whatever is still placed is killed."""
        ...
