"""What can be said of a run beyond its rows: pure functions of what the views read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from store.sums import US_PER_S

#: Ages of the heartbeat, which beats once a second.
LIVE_S = 3.0
LOST_S = 15.0
#: Without a success for this long, and for this many p95 latencies, a run is stalled.
STALL_S = 120.0
STALL_LATENCIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What the state of a run is judged by."""

    phase: str  #: kind of the last event that began or ended work
    phase_by: str | None
    phase_us: int  #: when that was, or when a pause in it was last lifted
    paused_by: str | None
    draining_by: str | None
    heartbeat_us: int | None
    success_us: int | None  #: when a task was last completed
    running: int  #: tasks with an attempt under way
    p95_ms: float | None
    batches: int = 0  #: open at a provider, who has a day to answer


def liveness(signs: Signs, now_us: int, *, is_alive: bool | None) -> str:
    """The state of a run in one word.

    `live`, `quiet`, `lost`, `stalled`, `paused`, `draining`, `drained`, `cancelled`,
    `finished` or `budget_stop`: never more than the signs show. A run that makes calls
    without any success is `stalled`, whatever its heartbeat says.

    Args:
        signs: what the log shows.
        now_us: the present, microseconds since 1970 UTC.
        is_alive: whether its process holds the log; None where that cannot be known.
    """
    seen = _Seen(signs, now_us, is_alive)
    return next((word for word, holds in _RULES if holds(seen)), "live")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The signs, at a moment."""

    signs: Signs
    now_us: int
    is_alive: bool | None

    def ended(self, phase: str, by: str | None = None) -> bool:
        """Whether the last word was that the work ended so."""
        return self.signs.phase == phase and by in {None, self.signs.phase_by}

    @property
    def silence_s(self) -> float:
        """Since the last sign of life; beginning to work is one."""
        beat_us = max(self.signs.heartbeat_us or 0, self.signs.phase_us)
        return (self.now_us - beat_us) / US_PER_S

    @property
    def is_stalled(self) -> bool:
        """Whether calls are made and none has succeeded for too long."""
        signs = self.signs
        patience_s = max(STALL_S, STALL_LATENCIES * (signs.p95_ms or 0.0) / 1000)
        success_us = max(signs.success_us or 0, signs.phase_us)
        if signs.batches:
            return False
        return signs.running > 0 and (self.now_us - success_us) / US_PER_S > patience_s


#: The first that holds is the state; none of them: live.
_RULES: tuple[tuple[str, Callable[[_Seen], bool]], ...] = (
    ("finished", lambda seen: seen.ended("run_finished")),
    ("cancelled", lambda seen: seen.ended("run_cancelled")),
    ("budget_stop", lambda seen: seen.ended("run_drained", "budget")),
    ("drained", lambda seen: seen.ended("run_drained")),
    ("lost", lambda seen: seen.is_alive is False or seen.silence_s > LOST_S),
    ("quiet", lambda seen: seen.silence_s >= LIVE_S),
    ("draining", lambda seen: seen.signs.draining_by is not None),
    ("paused", lambda seen: seen.signs.paused_by is not None),
    ("stalled", lambda seen: seen.is_stalled),
)

STATES = (*(word for word, _ in _RULES), "live")
"""Every word that `liveness` may say."""
