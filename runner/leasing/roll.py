"""Which processes take part, and with what; sans-IO.

A process that was not heard for a TTL is silent: it has stopped by itself a little
earlier, for its own TTL runs from when it last spoke. Until then nobody else gets its
slices, but whoever goes on with its log: a log has one writer at a time, and its lock
shows that the one before is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runner.leasing.messages import Figures, Hello, Refused
from runner.leasing.terms import LIFE_S
from store.slices import Slices


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of one process of a shard."""

    process: str
    shard: str  #: i/n
    slices: str
    figures: Figures
    silent_s: float  #: since it was heard
    is_alive: bool  #: its lease runs


@dataclass(slots=True, kw_only=True)
class Member:
    """One process."""

    hello: Hello
    slices: Slices
    heard_at: float
    is_alive: bool = True
    is_renewed: bool = True  #: when it asks for that
    figures: Figures = field(default_factory=Figures)


class Roll:
    """The processes of one run, in the order of coming."""

    def __init__(self, run_id: str, ttl_s: float) -> None:
        """Nobody is there."""
        self._run_id = run_id
        self._ttl_s = ttl_s
        self._members: dict[str, Member] = {}

    def get(self, process: str) -> Member | None:
        """Who that is; None: its end is known."""
        return self._members.get(process)

    def alive(self, *, but: str | None = None) -> list[str]:
        """All whose lease runs, *but* one of them."""
        return [
            process
            for process, member in self._members.items()
            if member.is_alive and process != but
        ]

    def join(self, hello: Hello, now: float) -> Refused | None:
        """Take a process in; why not, if not."""
        if hello.run_id != self._run_id:
            return Refused(why=f"it serves the run {self._run_id}", for_s=0.0)
        try:
            slices = Slices.parse(hello.slices)
        except ValueError as error:
            return Refused(why=str(error), for_s=0.0)
        known = self._members.get(hello.process)
        if known is not None:
            if not known.is_alive:
                return Refused(why="the lease had run out", for_s=0.0)
            self.heard(known, now)
            return None
        for other in self._members.values():
            is_free = other.hello.log == hello.log or not other.is_alive
            if not is_free and other.slices & slices:
                return Refused(
                    why="another process may still work on that part of the run",
                    for_s=max(0.0, other.heard_at + self._ttl_s - now) + LIFE_S,
                )
        self._members[hello.process] = Member(hello=hello, slices=slices, heard_at=now)
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

    def heard(self, member: Member, now: float) -> None:
        """A process said something; by that its lease begins anew, unless revoked."""
        if member.is_alive and member.is_renewed:
            member.heard_at = now

    def revoke(self, shard: str) -> None:
        """Renew no lease of a shard's processes: they stop within a TTL."""
        for member in self._members.values():
            if member.hello.shard == shard:
                member.is_renewed = False

    def falls_silent(self, now: float) -> Iterator[str]:
        """Those whose lease has just run out."""
        for process, member in self._members.items():
            if member.is_alive and now >= member.heard_at + self._ttl_s:
                member.is_alive = False
                yield process

    @property
    def next_silent_at(self) -> float | None:
        """When the next lease runs out, if its process is not heard."""
        ends = (m.heard_at + self._ttl_s for m in self._members.values() if m.is_alive)
        return min(ends, default=None)

    def seen(self, now: float) -> tuple[Seen, ...]:
        """What is known of each."""
        return tuple(
            Seen(
                process=process,
                shard=member.hello.shard,
                slices=member.hello.slices,
                figures=member.figures,
                silent_s=now - member.heard_at,
                is_alive=member.is_alive,
            )
            for process, member in self._members.items()
        )
