"""What is remembered of a process that is over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Past:
    """One process, for whoever judges the run."""

    end: str  #: how it ended
    holds: bool  #: it was to leave alone what an earlier process left unknown
    gate_s: float  #: longest wait for the log between the limiter's gate and the wire
    drained_at_s: float | None  #: when it was told to start nothing more
