"""The events that record a reply, wherever it came from.

A call, the response cache and an import write them alike, so that whoever reads a log
need not know the difference.
"""

from __future__ import annotations

from runner.clients.client import Received
from runner.reply import ParseFailure, Reply
from store.events import AttemptAnswered, TaskCompleted
from store.served import with_headers


def answered(
    received: Received,
    *,
    task: int,
    attempt: int,
    latency_ms: float | None,
    cost_usd: float | None,
    possible_usd: float | None = None,
    cached: bool = False,
    kept: bool = False,
) -> AttemptAnswered:
    """The attempt that brought a reply; its body is the entry's payload.

    Args:
        received: the reply as it came.
        task: its task's number.
        attempt: its number; 0 for one that was no request of ours.
        latency_ms: None: it came without a call.
        cost_usd: None: not known.
        possible_usd: what it may have cost, where the price is known and usage is not.
        cached: whether it was there already: nothing was sent.
        kept: whether it is the task's own earlier answer.
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
        kept=kept,
        adopted=received.adopted,
        tokens_reasoning=usage.tokens_reasoning if usage else None,
        tokens_cache_write_1h=usage.tokens_cache_write_1h if usage else None,
        charged_usd=usage.charged_usd if usage else None,
        usage_doubtful=usage is not None and usage.is_doubtful,
        served=with_headers(received.reply.served, received.headers or {}),
        empty=isinstance(reply, Reply) and not reply.text.strip(),
    )


def completed(
    task: int, attempt: int, parsed: object, *, adopted: bool = False
) -> TaskCompleted:
    """The end of a task whose reply the parser made *parsed* of."""
    failure = parsed if isinstance(parsed, ParseFailure) else None
    return TaskCompleted(
        task=task,
        attempt=attempt,
        unparsed=failure.reason if failure else None,
        fault=failure.detail if failure else None,
        adopted=adopted,
    )
