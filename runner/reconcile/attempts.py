"""Reads the calls of a run from its log, with what each of them may have cost.

A call is an attempt that was sent to a paid endpoint: answers of the response cache, of
another run and of offline models are left out. One whose end is not in the log is
unknown: its process died, or it is still in flight.
"""

from __future__ import annotations

import enum
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from runner.clients.client import is_offline
from runner.engine.failure_policy import RETRY_RULES
from runner.messages import Usage
from runner.money.prices import Price, price_of
from runner.options import RunOptions
from store.events import AttemptAnswered, AttemptFailed, AttemptStarted
from store.outcomes import stored_bodies
from store.served_by import SERVED_UNKNOWN, served_in
from store.tables import recorded, tasks_numbered
from store.task import pico

PAGE: Final = 2_000
"""Events read at a time."""

BODIES: Final = 256
"""Replies held at a time."""

_BILLED: Final = frozenset(
    error.__name__ for error, rule in RETRY_RULES.items() if rule.is_billed
)

_KINDS: Final = ("attempt_started", "attempt_answered", "attempt_failed")


class CallOutcome(enum.StrEnum):
    """Outcome of a call by the log."""

    ANSWERED = "answered"  #: with usage
    NO_USAGE = "no usage"  #: answered, but how many tokens it took is not known
    LOST = "lost"  #: failed in a way that may be billed, such as a timeout
    FAILED = "failed"  #: refused with an error status: not billed
    UNKNOWN = "unknown"  #: its end is not in the log


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCall:
    """One attempt that was sent."""

    task: int
    attempt: int
    seq: int  #: of the event that ended it; of its start, if its end is not known
    key: str  #: the task's item
    model: str  #: as requested
    outcome: CallOutcome
    request_sha256: str
    started_us: int
    #: of an unknown call: when its task was sent again; None: it was not
    ended_us: int | None
    is_batched: bool
    usage: Usage | None = None
    cost_pico: int | None = None  #: None: not known
    possible_pico: int = 0  #: maximum that may be billed beyond the cost
    tier: str | None = None  #: that served it
    served_model: str | None = None
    request_id: str | None = None


def sent_calls(reader: sqlite3.Connection) -> list[SentCall]:
    """Return the calls of a run, in the order of their starts."""
    open_starts: dict[tuple[int, int], list[_Start]] = {}
    starts_of: dict[int, list[int]] = {}
    ends: list[tuple[_Start, _End | None]] = []
    after = 0
    while page := recorded(reader, after, PAGE, _KINDS):
        after = page[-1].seq
        for row in page:
            match row.event:
                case AttemptStarted(adopted=False) as event:
                    start = _Start(row.seq, row.ts_us, row.epoch, event)
                    key = (event.task, event.attempt)
                    open_starts.setdefault(key, []).append(start)
                    starts_of.setdefault(event.task, []).append(row.ts_us)
                case AttemptAnswered() | AttemptFailed() as event:
                    starts = open_starts.get((event.task, event.attempt), [])
                    if not starts:
                        continue
                    # logs of a split run may have the same attempt of a task
                    same = [start for start in starts if start.epoch == row.epoch]
                    start = (same or starts)[0]
                    starts.remove(start)
                    is_sent = isinstance(event, AttemptFailed) or not event.cached
                    if is_sent:
                        ends.append((start, _End(row.seq, row.ts_us, event)))
                case _:
                    pass
    ends += [(start, None) for starts in open_starts.values() for start in starts]
    ends.sort(key=lambda pair: pair[0].seq)
    return [
        call if call.ended_us is not None else _bounded(call, starts_of[call.task])
        for call in _calls(reader, ends)
    ]


def _bounded(call: SentCall, starts_us: Iterable[int]) -> SentCall:
    """Return an unknown call with the next start of its task as its end."""
    later = (at_us for at_us in starts_us if at_us > call.started_us)
    return replace(call, ended_us=min(later, default=None))


@dataclass(frozen=True, slots=True)
class _Start:
    seq: int
    at_us: int
    epoch: int
    event: AttemptStarted


@dataclass(frozen=True, slots=True)
class _End:
    seq: int
    at_us: int
    event: AttemptAnswered | AttemptFailed


def _calls(
    reader: sqlite3.Connection, ends: list[tuple[_Start, _End | None]]
) -> Iterator[SentCall]:
    for first in range(0, len(ends), PAGE):
        page = ends[first : first + PAGE]
        numbers = sorted({start.event.task for start, _ in page})
        tasks = {row.task: row for row in tasks_numbered(reader, numbers)}
        for start, end in page:
            task = tasks[start.event.task]
            if not is_offline(task.model):
                yield _call(start, end, task.key, task.model)


def _call(start: _Start, end: _End | None, key: str, model: str) -> SentCall:
    event = start.event
    call = SentCall(
        task=event.task,
        attempt=event.attempt,
        seq=start.seq,
        key=key,
        model=model,
        outcome=CallOutcome.UNKNOWN,
        request_sha256=event.request_sha256,
        started_us=start.at_us,
        ended_us=None,
        is_batched=event.batched,
        possible_pico=pico(event.worst_usd or 0.0),
    )
    if end is None:
        return call
    call = replace(call, seq=end.seq, ended_us=end.at_us)
    if isinstance(end.event, AttemptFailed):
        possible = pico(end.event.possible_usd)
        # without a price, only the class of the error says what may be billed
        is_lost = possible or (event.worst_usd is None and end.event.error in _BILLED)
        return replace(
            call,
            outcome=CallOutcome.LOST if is_lost else CallOutcome.FAILED,
            cost_pico=None if is_lost else 0,
            possible_pico=possible,
        )
    answer = end.event
    served = answer.served or SERVED_UNKNOWN
    usage = _usage(answer)
    return replace(
        call,
        outcome=CallOutcome.NO_USAGE if usage is None else CallOutcome.ANSWERED,
        usage=usage,
        cost_pico=None if answer.cost_usd is None else pico(answer.cost_usd),
        possible_pico=pico(answer.possible_usd or 0.0),
        tier=served.tier,
        served_model=served.model,
        request_id=served.request_id,
    )


def _usage(answer: AttemptAnswered) -> Usage | None:
    if answer.tokens_in is None or answer.tokens_out is None:
        return None
    return Usage(
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        tokens_cached=answer.tokens_cached or 0,
        tokens_cache_write=answer.tokens_cache_write or 0,
        tokens_cache_write_1h=answer.tokens_cache_write_1h or 0,
        tokens_reasoning=answer.tokens_reasoning or 0,
    )


def body_ids(
    reader: sqlite3.Connection, calls: Sequence[SentCall]
) -> Iterator[tuple[int, str]]:
    """Yield the positions of calls with the id in the body of their reply.

    The log names the id of a header, if there is one; OpenRouter's and LiteLLM's
    exports have the id of the body.
    """
    answered = {
        call.seq: at
        for at, call in enumerate(calls)
        if call.outcome in {CallOutcome.ANSWERED, CallOutcome.NO_USAGE}
    }
    seqs = list(answered)
    for first in range(0, len(seqs), BODIES):
        for seq, (_, body) in stored_bodies(
            reader, seqs[first : first + BODIES]
        ).items():
            try:
                fields = json.loads(body)
            except ValueError:
                continue
            served = served_in(fields) if isinstance(fields, dict) else None
            if served is not None and served.request_id is not None:
                yield answered[seq], served.request_id


class CallPrices:
    """Prices of the models of a run: those of single calls and of batches."""

    def __init__(self, options: RunOptions) -> None:
        self._options = {
            is_batched: options.model_copy(update={"batch": is_batched})
            for is_batched in (False, True)
        }
        self._prices: dict[tuple[str, bool], Price | None] = {}

    def of(self, model: str, *, is_batched: bool) -> Price | None:
        """Return the price of a model; None: it is not known."""
        key = (model, is_batched)
        if key not in self._prices:
            self._prices[key] = price_of(model, self._options[is_batched])
        return self._prices[key]
