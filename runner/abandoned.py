"""What an earlier process had in flight when it ended: nobody knows what came of it."""

from __future__ import annotations

from store.events import AttemptsAbandoned, AttemptStarted
from store.log import Log
from store.spending import dollars
from store.task import pico, usd


async def abandoned(log: Log, *, hold: bool) -> AttemptsAbandoned | None:
    """The attempts without an outcome, with what they may have cost; None: none.

    Args:
        log: The run's log, before this process has sent anything.
        hold: Whether their tasks wait for a person instead of being sent again.
    """
    unknown = await log.in_flight()
    if not unknown:
        return None
    worst = [await _worst_pico(log, task, attempt) for task, attempt in unknown]
    return AttemptsAbandoned(attempts=unknown, hold=hold, possible_usd=usd(sum(worst)))


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


async def _worst_pico(log: Log, task: int, attempt: int) -> int:
    """What one attempt had reserved; 0 where its price was unknown."""
    for recorded in await log.task_events(task):
        event = recorded.event
        if isinstance(event, AttemptStarted) and event.attempt == attempt:
            return pico(event.worst_usd or 0.0)
    return 0
