"""Builds the events that end an attempt: answered, re-asked, or abandoned.

Calls, the response cache and imports record replies in the same way, so readers of a
log need not distinguish them. An unreadable reply is requested again in a dialogue. The
outcome of an attempt that an earlier process had in flight is unknown: it is recorded
as abandoned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from runner.clients.client import Received
from runner.job_faults import PARSER_ERROR
from runner.messages import AnyReply, Message, ParseFailure, Reply, TextPart
from runner.prompts import REASK, PromptBook
from store.document import plural
from store.errors import CorruptLog
from store.events import (
    AttemptAnswered,
    AttemptsAbandoned,
    AttemptStarted,
    RecordedEvent,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
)
from store.log.interface import Log
from store.read.usage import dollars
from store.served_by import with_headers
from store.task import pico, usd


def answered_event(
    received: Received,
    *,
    task: int,
    attempt: int,
    latency_ms: float | None,
    cost_usd: float | None,
    possible_usd: float | None = None,
    cached: bool = False,
    reused: bool = False,
) -> AttemptAnswered:
    """Return the event of an answered attempt; the reply is the entry's payload.

    Args:
        received: the received reply.
        task: its task's number.
        attempt: its number; 0 for an imported reply.
        latency_ms: None: it came without a call.
        cost_usd: None: not known.
        possible_usd: its maximum cost, if the price is known and usage is not.
        cached: whether it was already stored (in the cache, in another log or in
            this one), so nothing was sent.
        reused: whether it is the task's own earlier answer.
    """
    reply = received.reply
    usage = reply.usage
    return AttemptAnswered(
        task=task,
        attempt=attempt,
        form=received.form,
        status=received.status,
        latency_ms=latency_ms,
        finish_reason=reply.finish_reason,
        tokens_in=usage.tokens_in if usage else None,
        tokens_out=usage.tokens_out if usage else None,
        tokens_cached=usage.tokens_cached if usage else None,
        tokens_cache_write=usage.tokens_cache_write if usage else None,
        cost_usd=cost_usd,
        possible_usd=possible_usd,
        headers=dict(received.headers) if received.headers else None,
        cached=cached,
        kept=reused,
        adopted=received.adopted,
        forked=received.forked,
        tokens_reasoning=usage.tokens_reasoning if usage else None,
        tokens_cache_write_1h=usage.tokens_cache_write_1h if usage else None,
        charged_usd=usage.charged_usd if usage else None,
        usage_doubtful=usage is not None and usage.is_doubtful,
        served=with_headers(received.reply.served, received.headers or {}),
        empty=isinstance(reply, Reply) and not reply.text.strip(),
    )


def completed_event(
    task: int, attempt: int, parsed: object, *, adopted: bool = False
) -> TaskCompleted:
    """Return the end of a task from its *parsed* reply."""
    unparsed, fault = failure_in(parsed)
    return TaskCompleted(
        task=task, attempt=attempt, unparsed=unparsed, fault=fault, adopted=adopted
    )


def failure_in(parsed: object) -> tuple[str | None, str | None]:
    """Return why a reply could not be parsed, and the details; else None twice."""
    if isinstance(parsed, ParseFailure):
        return parsed.reason, parsed.detail
    return None, None


_REASK: Final = f"{REASK.name}.user"

DEFAULT_REASK: Final = PromptBook(
    texts={
        _REASK: "That reply could not be read ({problem}). Answer the same question "
        "again, only in the form that was asked for."
    }
)
"""The default text of a re-ask, for jobs that ship none."""


def refused_answers(history: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """Return the answers of a task that were refused since its last end, if any."""
    refused: list[RecordedEvent] = []
    for recorded in history:
        match recorded.event:
            case TaskCompleted() | TaskFailed() | TaskSkipped():
                refused = []
            case AttemptAnswered(reask=str()):
                refused.append(recorded)
            case _:
                pass
    return refused


def may_reask(
    reply: AnyReply, failure: ParseFailure, *, reasks: int, most: int
) -> bool:
    """Return whether an unreadable reply is requested again, after *reasks* re-asks.

    Only chats are. A truncated one is not, because the same limit would cut it again.
    Nor is one whose parser raised, because the model cannot fix that.
    """
    is_mendable = isinstance(reply, Reply) and not reply.is_truncated
    return reasks < most and is_mendable and failure.reason != PARSER_ERROR


def reask_messages(
    reply: Reply, failure: ParseFailure, dataset: object = None
) -> tuple[Message, ...]:
    """Return two further messages: the unreadable reply and its error.

    Args:
        reply: the unreadable reply.
        failure: the parser's error.
        dataset: the job's data; its prompts may have a text for re-asks.
    """
    prompts = getattr(dataset, "prompts", None)
    prompt_book = prompts if isinstance(prompts, PromptBook) else DEFAULT_REASK
    prompt_book = prompt_book if _REASK in prompt_book.texts else DEFAULT_REASK
    problem = failure.reason.replace("_", " ")
    if failure.detail is not None:
        problem += f": {failure.detail}"
    return (
        Message(role="assistant", parts=(TextPart(text=reply.text or "(empty)"),)),
        Message(role="user", parts=prompt_book.parts(_REASK, problem=problem)),
    )


async def abandoned_attempts(
    log: Log, *, hold: bool, carried: Collection[AttemptStarted] = ()
) -> AttemptsAbandoned | None:
    """Return attempts without an outcome, with their maximum cost; None: none.

    Args:
        log: The run's log, before this process has sent anything.
        hold: Whether their tasks wait for the user instead of being sent again.
        carried: Those that continue in batches, which are in the log.
    """
    ongoing = {(start.task, start.attempt) for start in carried}
    unknown = [attempt for attempt in await log.in_flight() if attempt not in ongoing]
    if not unknown:
        return None
    worst = [
        (await attempt_start(log, task, attempt)).worst_usd for task, attempt in unknown
    ]
    possible = sum(map(pico, worst))
    return AttemptsAbandoned(attempts=unknown, hold=hold, possible_usd=usd(possible))


def abandoned_text(run_id: str, unknown: AttemptsAbandoned) -> str:
    """Return a message for the user who resumes the run."""
    worst = unknown.possible_usd
    cost = f" (they may have cost up to {dollars(worst)})" if worst else ""
    next_step = (
        f"they are held until siftlog resume {run_id} --unknown retry."
        if unknown.hold
        else "they are sent again."
    )
    calls = plural(len(unknown.attempts), "call")
    return (
        f"The run broke off with {calls} in flight, whose outcome is unknown{cost}; "
        f"{next_step}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStart:
    """The start of an attempt without an outcome."""

    at_us: int
    worst_usd: float  #: its reservation; 0 if its price was unknown


async def attempt_start(log: Log, task: int, attempt: int) -> AttemptStart:
    """Return when an attempt in flight was sent, and its maximum cost."""
    for recorded in reversed(await log.task_events(task)):
        event = recorded.event
        if isinstance(event, AttemptStarted) and event.attempt == attempt:
            return AttemptStart(at_us=recorded.ts_us, worst_usd=event.worst_usd or 0.0)
    raise CorruptLog(
        f"attempt {attempt} of task {task} is in flight and was never started: see "
        "'siftlog verify', then restore a copy of the run's folder"
    )
