"""What follows a failed attempt: one table from error class to decision.

The table decides; the scheduler waits and the driver acts. Retries are always bounded:
per class, per task and by the task's overall deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from runner import errors as e

MAX_TRIES = 24
"""Attempts of one task over all classes: a run reported elsewhere repeated one request
1,149 times in 24 days because nothing bounded the sum."""


MOST_ALONE = 2
"""Retries of a request that ended with 500 while others were answered: its content
is at fault, and a further try would end in the same way."""

MOST_DOUBLINGS = 30
"""Of a backoff: past every cap, and far from what a float cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one class of failure is met."""

    tries: int  #: attempts that may end this way before the task fails; 1: final
    base_s: float = 1.0  #: first backoff is drawn from (0, base]; it doubles
    cap_s: float = 60.0
    stops_endpoint: bool = False  #: nothing more is sent there
    is_billed: bool = False  #: it may be: the provider may have done its work
    is_counted: bool = True  #: against the bounds on a task's attempts


RULES: Mapping[type[e.AttemptError], Rule] = {
    e.RateLimited: Rule(tries=16),
    e.Overloaded: Rule(tries=10, base_s=2.0),
    e.ServerError: Rule(tries=8),
    e.Timeout: Rule(tries=4, base_s=2.0, is_billed=True),
    e.ConnectionLost: Rule(tries=8, base_s=0.5, is_billed=True),
    e.MalformedReply: Rule(tries=6, base_s=0.5, is_billed=True),
    e.BadRequest: Rule(tries=1),
    e.AuthFailed: Rule(tries=1, stops_endpoint=True),
    # batches are a day apart, which is backoff enough
    e.Expired: Rule(tries=4, base_s=0.0),
    # at once, in a plainer form: its client never comes back to one that was refused
    e.FormRefused: Rule(tries=1, base_s=0.0, is_counted=False),
    e.OptionRefused: Rule(tries=1, stops_endpoint=True, is_counted=False),
    # its client leaves out the schema that the endpoint stumbled over
    e.ContentFault: Rule(tries=3, base_s=0.5),
    e.ContextTooLong: Rule(tries=1),
    e.ContentFiltered: Rule(tries=1),
    # whether it is asked again is the job's setting `reask`, not a backoff
    e.SchemaMismatch: Rule(tries=1),
    e.BudgetExceeded: Rule(tries=1),
    e.Cancelled: Rule(tries=1, is_billed=True, is_counted=False),
}


def may_be_billed(error: e.AttemptError) -> bool:
    """Whether an attempt that ended so may cost money; an error status never does."""
    is_refused = error.status is not None and error.status >= HTTPStatus.BAD_REQUEST
    return RULES[type(error)].is_billed and error.was_sent and not is_refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do after a failure."""

    retry_in_s: float | None  #: None: the task has failed
    pause_endpoint_s: float = 0.0  #: the endpoint asked everybody to wait this long


def decide(
    error: e.AttemptError,
    *,
    same: int,
    tries: int,
    elapsed_s: float,
    deadline_s: float,
    chance: float,
    alone: int = 0,
) -> Decision:
    """The decision for a task whose attempt just ended with *error*.

    Args:
        error: how the attempt ended.
        same: attempts of the task that ended this way, this one included.
        tries: attempts of the task that count, this one included.
        elapsed_s: since the task's first attempt in this process.
        deadline_s: no retry may start later than this.
        chance: uniform in [0, 1); full jitter (Brooker, "Exponential Backoff And
            Jitter", 2015): delay = chance * min(cap, base * 2^(same - 1)).
        alone: times that the task ended with 500 once more though the endpoint had
            answered others meanwhile.
    """
    rule = RULES[type(error)]
    asked = error.retry_after_s or 0.0
    pause = asked if isinstance(error, e.RateLimited | e.Overloaded) else 0.0
    if rule.stops_endpoint:
        # the task stays open: nothing is wrong with it
        return Decision(retry_in_s=0.0)
    # while an endpoint is out, its probes fail for as long as that takes
    doublings = min(same - 1, MOST_DOUBLINGS)
    backoff_s = min(rule.cap_s, rule.base_s * 2.0**doublings)
    delay = max(asked, chance * backoff_s)
    spent = same >= rule.tries or tries >= MAX_TRIES or alone >= MOST_ALONE
    if spent or elapsed_s + delay > deadline_s:
        return Decision(retry_in_s=None, pause_endpoint_s=pause)
    return Decision(retry_in_s=delay, pause_endpoint_s=pause)
