"""What becomes of a request: answered, or one of the faults; pure.

A fate depends on the seed, the request and how often that request was seen before, so
that a run of faults can be repeated, and a request that failed can succeed later.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.simulate.chance import Chance
from runner.simulate.options import SimulateOptions

SERVER_ERRORS: Final = (500, 502, 503, 529)

FAULT_WAIT_S: Final = 0.1
"""What a 429 by chance asks to wait: long enough to be seen, short enough for tests."""


class Outcome(enum.StrEnum):
    """How a request ended, as the ledger tells it."""

    ANSWERED = "answered"  #: the whole reply was handed to the connection
    RATE_LIMITED = "429"
    SERVER_ERROR = "5xx"
    MALFORMED = "malformed"  #: status 200 and a body that is no reply
    DROPPED = "dropped"  #: the connection was cut before or in the reply
    HANG = "hang"  #: no byte was ever sent
    REFUSED = "refused"  #: 4xx: the request itself, or one of its parameters
    GONE = "gone"  #: the client left, or the server stopped, before the reply was out


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What is going to happen to a request, if its client stays."""

    outcome: Outcome
    status: int  #: of the reply; 0 where none is sent
    latency_s: float
    shape: float  #: in [0, 1): which of the kinds of its fault


def fate(
    options: SimulateOptions,
    request: str,
    seen: int,
    statuses: Sequence[int] = SERVER_ERRORS,
) -> Fate:
    """The fate of *request*, a hash, that was seen *seen* times before.

    A server error has one of *statuses*.
    """
    chance = Chance("fate", options.seed, request, seen)
    latency_s = (options.latency_ms + chance.unit() * options.jitter_ms) / 1000
    draw, shape = chance.unit(), chance.unit()
    for outcome, rate, status in (
        (Outcome.RATE_LIMITED, options.rate_429, 429),
        (Outcome.SERVER_ERROR, options.rate_5xx, chance.pick(statuses)),
        (Outcome.MALFORMED, options.rate_malformed, 200),
        (Outcome.DROPPED, options.rate_drop, 0),
        (Outcome.HANG, options.rate_hang, 0),
    ):
        if draw < rate:
            return Fate(
                outcome=outcome, status=status, latency_s=latency_s, shape=shape
            )
        draw -= rate
    return Fate(outcome=Outcome.ANSWERED, status=200, latency_s=latency_s, shape=shape)
