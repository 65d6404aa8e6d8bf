"""What the log of a fork records about its parent run, for events and their readers.

Both are part of events, so the fork's own hash chain covers them: which run it
continues, up to which link of that run's chain, and the hash of each adopted body.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOrigin:
    """The run that a fork continues from, and what may be adopted from it."""

    run: str  #: id of the parent run, whose folder is beside the fork's
    seq: int  #: the parent's last event when the fork began
    link: str  #: hex of the parent's chain at that event
    models: list[str]  #: models whose endpoint is that of the parent
    anew: tuple[str, ...] = ()  #: stages that are asked anew


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedBody:
    """Names the answer of the parent run that a fork adopted."""

    seq: int  #: of the `attempt_answered` in the parent's log
    sha256: str  #: hex; of the body, which is not stored a second time
    cost_usd: float = 0.0  #: what the task's attempts had cost when they were sent
