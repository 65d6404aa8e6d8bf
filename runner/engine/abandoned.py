"""What an earlier process had in flight when it ended: nobody knows what came of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from store.errors import CorruptLog
from store.events import AttemptsAbandoned, AttemptStarted
from store.log.interface import Log
from store.read.usage import dollars
from store.task import pico, usd


async def abandoned(
    log: Log, *, hold: bool, carried: Collection[AttemptStarted] = ()
) -> AttemptsAbandoned | None:
    """The attempts without an outcome, with what they may have cost; None: none.

    Args:
        log: The run's log, before this process has sent anything.
        hold: Whether their tasks wait for a person instead of being sent again.
        carried: Those that go on, because they leave in batches, which the log knows.
    """
    going_on = {(start.task, start.attempt) for start in carried}
    unknown = [each for each in await log.in_flight() if each not in going_on]
    if not unknown:
        return None
    worst = [(await sent(log, task, attempt)).worst_usd for task, attempt in unknown]
    possible = sum(map(pico, worst))
    return AttemptsAbandoned(attempts=unknown, hold=hold, possible_usd=usd(possible))


def abandoned_text(run_id: str, unknown: AttemptsAbandoned) -> str:
    """A sentence for whoever resumes the run."""
    worst = unknown.possible_usd
    cost = f" (they may have cost up to {dollars(worst)})" if worst else ""
    what_now = (
        f"they are held until siftlog resume {run_id} --unknown retry."
        if unknown.hold
        else "they are sent again."
    )
    return (
        f"{len(unknown.attempts)} calls were sent before the run broke off and their "
        f"outcome is unknown{cost}; {what_now}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The start of an attempt without an outcome."""

    at_us: int
    worst_usd: float  #: what it had reserved; 0 where its price was unknown


async def sent(log: Log, task: int, attempt: int) -> Sent:
    """When an attempt that is in flight was sent, and what it may cost."""
    for recorded in reversed(await log.task_events(task)):
        event = recorded.event
        if isinstance(event, AttemptStarted) and event.attempt == attempt:
            return Sent(at_us=recorded.ts_us, worst_usd=event.worst_usd or 0.0)
    raise CorruptLog(
        f"attempt {attempt} of task {task} is in flight and was never started: see "
        "'siftlog verify', then restore a copy of the run's folder"
    )
