"""Keeps simulated batches: states, schedules by seed, answers and bills.

The schedule and the outcome of every item are fixed when a batch is created
(`BatchSchedule`), so polling late or often changes nothing. Only cancellation is
external.
"""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from runner.errors import BadRequest
from runner.simulate.billing import BatchAct, BatchLine, Ledger
from runner.simulate.dialect import RefusedRequest
from runner.simulate.options import Chance, SimulateOptions
from runner.simulate.provider import Provider, billed_fields
from runner.simulate.requests import NOT_FOUND, BatchRefusal, SimulatedRequest


class BatchPhase(enum.StrEnum):
    """Phase of a batch, in OpenAI's terms; Anthropic knows three of them."""

    VALIDATING = "validating"  #: accepted, its lines not checked yet
    IN_PROGRESS = "in_progress"  #: items are processed
    FINALIZING = "finalizing"  #: all items have ended, the results are being written
    CANCELLING = "cancelling"  #: cancelled; items in progress may still finish
    COMPLETED = "completed"  #: every item was answered or refused
    EXPIRED = "expired"  #: the window closed before some items had ended
    CANCELLED = "cancelled"
    FAILED = "failed"  #: its lines are invalid: nothing was processed

    @property
    def is_terminal(self) -> bool:
        """Whether the phase is final."""
        return not any(phase is self for phase, _ in TRANSITIONS)


class BatchStep(enum.Enum):
    """A transition of a batch."""

    ADMIT = enum.auto()  #: its lines are valid
    REJECT = enum.auto()  #: its lines are invalid
    WORK_OFF = enum.auto()  #: the last item has ended
    RUN_OUT = enum.auto()  #: the window closed
    FILE = enum.auto()  #: the results are written
    CANCEL = enum.auto()  #: cancelled by a request
    WIND_DOWN = enum.auto()  #: items in progress have ended


TRANSITIONS: Final[Mapping[tuple[BatchPhase, BatchStep], BatchPhase]] = {
    (BatchPhase.VALIDATING, BatchStep.ADMIT): BatchPhase.IN_PROGRESS,
    (BatchPhase.VALIDATING, BatchStep.REJECT): BatchPhase.FAILED,
    (BatchPhase.VALIDATING, BatchStep.CANCEL): BatchPhase.CANCELLING,
    (BatchPhase.IN_PROGRESS, BatchStep.WORK_OFF): BatchPhase.FINALIZING,
    (BatchPhase.IN_PROGRESS, BatchStep.RUN_OUT): BatchPhase.EXPIRED,
    (BatchPhase.IN_PROGRESS, BatchStep.CANCEL): BatchPhase.CANCELLING,
    (BatchPhase.FINALIZING, BatchStep.FILE): BatchPhase.COMPLETED,
    (BatchPhase.CANCELLING, BatchStep.WIND_DOWN): BatchPhase.CANCELLED,
}
"""Allowed transitions; anything else has no effect."""


class ItemEnding(enum.StrEnum):
    """Outcome of an item, in Anthropic's terms; only success is billed."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedItem:
    """One request of a batch, and its outcome unless it is cancelled."""

    custom_id: str
    digest: str  #: SHA-256 of its body, hex; determines its answer
    ending: ItemEnding
    due_us: int  #: time of the outcome
    incoming: SimulatedRequest | None = None  #: None: the body is no request
    status: int = 200  #: status of the reply, as of a single call
    problem: str = ""  #: error message, if it is errored


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSchedule:
    """Times of a batch unless it is cancelled, in microseconds since 1970 UTC."""

    created_us: int
    admitted_us: int
    worked_us: int  #: end of processing
    filed_us: int  #: its end
    winding_us: int  #: duration of a cancellation


class SimulatedBatch:
    """One batch; `advance` moves it to a time."""

    def __init__(
        self,
        schedule: BatchSchedule,
        items: Sequence[SimulatedItem],
        *,
        is_sound: bool = True,
    ) -> None:
        self._schedule = schedule
        self._is_sound = is_sound
        self._runs_out = any(item.ending is ItemEnding.EXPIRED for item in items)
        self._waiting = sorted(items, key=lambda item: item.due_us, reverse=True)
        self.total = len(items)
        self.phase = BatchPhase.VALIDATING
        self.entered: dict[BatchPhase, int] = {
            BatchPhase.VALIDATING: schedule.created_us
        }
        """Start of each phase so far, microseconds."""
        self.ended: list[SimulatedItem] = []
        """Items that have ended, in that order."""

    def advance(self, now_us: int) -> list[SimulatedItem]:
        """Advance to *now_us*; return the items that ended since the last call.

        An earlier time than before has no effect.
        """
        ended_before = len(self.ended)
        while (due := self._next()) is not None and due[0] <= now_us:
            due_us, step = due
            self._work(due_us)
            if step is BatchStep.WIND_DOWN:
                self._abandon()
            self._take(step, due_us)
        self._work(now_us)
        return self.ended[ended_before:]

    def cancel(self, now_us: int) -> bool:
        """Cancel the batch; return False if it is too late.

        A repeated cancellation has no effect.
        """
        if self.phase is BatchPhase.CANCELLING:
            return True
        if (self.phase, BatchStep.CANCEL) not in TRANSITIONS:
            return False
        self._take(BatchStep.CANCEL, now_us)
        return True

    def count(self, ending: ItemEnding) -> int:
        """Count its items with that outcome."""
        return sum(item.ending is ending for item in self.ended)

    def _next(self) -> tuple[int, BatchStep] | None:
        """Return the time and step of the next transition without events."""
        schedule = self._schedule
        match self.phase:
            case BatchPhase.VALIDATING:
                return schedule.admitted_us, (
                    BatchStep.ADMIT if self._is_sound else BatchStep.REJECT
                )
            case BatchPhase.IN_PROGRESS:
                return schedule.worked_us, (
                    BatchStep.RUN_OUT if self._runs_out else BatchStep.WORK_OFF
                )
            case BatchPhase.FINALIZING:
                return schedule.filed_us, BatchStep.FILE
            case BatchPhase.CANCELLING:
                cancelling_us = self.entered[BatchPhase.CANCELLING]
                return cancelling_us + schedule.winding_us, BatchStep.WIND_DOWN
            case _:
                return None

    def _work(self, until_us: int) -> None:
        """End the items that are due, if the batch is being processed."""
        if BatchPhase.IN_PROGRESS not in self.entered:
            return
        while self._waiting and self._waiting[-1].due_us <= until_us:
            self.ended.append(self._waiting.pop())

    def _abandon(self) -> None:
        """Cancel the items that were not processed."""
        while self._waiting:
            self.ended.append(replace(self._waiting.pop(), ending=ItemEnding.CANCELED))

    def _take(self, step: BatchStep, at_us: int) -> None:
        self.phase = TRANSITIONS[self.phase, step]
        self.entered[self.phase] = at_us


FAILING: Final = (500, 429, 529)
"""Statuses of random item failures: all worth a retry."""

MALFORMED: Final = 400
"""Status of an invalid item: it never succeeds."""

_ADMITTED, _WORKED = 0.05, 0.95
"""Fractions of a batch's duration at which its phases end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOrder:
    """One request of a batch as received."""

    custom_id: str
    body: bytes  #: body of the equivalent single call
    digest: str  #: its SHA-256, hex

    @classmethod
    def of(cls, custom_id: str, body: bytes) -> BatchOrder:
        """Create the request with that body."""
        digest = hashlib.sha256(body).hexdigest()
        return cls(custom_id=custom_id, body=body, digest=digest)


def schedule(options: SimulateOptions, number: int, now_us: int) -> BatchSchedule:
    """Return the times of batch *number*: it takes half to all of the set duration."""
    share = 0.5 + Chance("batch", options.seed, number).unit() / 2
    lasts_us = options.batch_seconds * share * 1e6
    return BatchSchedule(
        created_us=now_us,
        admitted_us=now_us + int(lasts_us * _ADMITTED),
        worked_us=now_us + int(lasts_us * _WORKED),
        filed_us=now_us + int(lasts_us),
        winding_us=int(lasts_us * _ADMITTED),
    )


def items(
    options: SimulateOptions,
    orders: Iterable[BatchOrder],
    times: BatchSchedule,
    seen: Counter[str],
    reader: Callable[[bytes], SimulatedRequest],
) -> list[SimulatedItem]:
    """Return the outcomes of *orders*.

    As with single calls, they depend on the seed, the body and how often that body was
    seen before (counted in *seen*), so a failed request can succeed in another batch.
    """
    simulated_items = []
    for order in orders:
        chance = Chance("item", options.seed, order.digest, seen[order.digest])
        seen[order.digest] += 1
        simulated_items.append(_item(options, order, times, chance, reader))
    return simulated_items


def _item(
    options: SimulateOptions,
    order: BatchOrder,
    times: BatchSchedule,
    chance: Chance,
    reader: Callable[[bytes], SimulatedRequest],
) -> SimulatedItem:
    draw, fraction = chance.unit(), chance.unit()
    due_us = times.admitted_us + int(fraction * (times.worked_us - times.admitted_us))
    incoming, problem, ending, status = None, "", ItemEnding.SUCCEEDED, 200
    try:
        incoming = reader(order.body)
    except BadRequest as error:
        problem, ending, status = str(error), ItemEnding.ERRORED, MALFORMED
    else:
        if draw < options.batch_error_rate:
            problem = "The simulated model failed."
            ending, status = ItemEnding.ERRORED, chance.pick(FAILING)
        elif draw < options.batch_error_rate + options.batch_expire_rate:
            ending, due_us = ItemEnding.EXPIRED, times.worked_us
    return SimulatedItem(
        custom_id=order.custom_id,
        digest=order.digest,
        ending=ending,
        due_us=due_us,
        incoming=incoming,
        status=status,
        problem=problem,
    )


CONFLICT: Final = 409


@dataclass(slots=True, kw_only=True)
class StoredBatch:
    """A batch, and the replies to its successful items."""

    id: str
    model: str  #: model of its first item
    batch: SimulatedBatch
    path: str  #: path of the equivalent single calls
    replies: dict[str, bytes] = field(default_factory=dict)  #: replies by custom id
    tokens_in: int = 0  #: input tokens of successful items
    tokens_out: int = 0


class BatchOffice:
    """The batches of one format, by id.

    Args:
        prefix: Prefix of ids.
        options: Duration of batches, and failure rates of items.
        provider: Answers and bills the items.
        ledger: Records operations and bills.
    """

    def __init__(
        self,
        prefix: str,
        options: SimulateOptions,
        provider: Provider,
        ledger: Ledger,
    ) -> None:
        self._prefix = prefix
        self._options = options
        self._provider = provider
        self._ledger = ledger
        self._batches: dict[str, StoredBatch] = {}
        self._open: dict[str, StoredBatch] = {}
        self._seen: Counter[str] = Counter()

    def create(
        self,
        orders: Sequence[BatchOrder],
        now_us: int,
        reader: Callable[[bytes], SimulatedRequest],
        path: str,
        *,
        is_sound: bool = True,
    ) -> StoredBatch:
        """Create a batch of *orders* for *path*; *reader* parses the bodies."""
        number = len(self._batches)
        times = schedule(self._options, number, now_us)
        accept = partial(self._accept, reader, path)
        simulated_items = items(self._options, orders, times, self._seen, accept)
        stored_batch = StoredBatch(
            id=f"{self._prefix}{fresh(self._options.seed, number, now_us)}",
            model=next(
                (item.incoming.model for item in simulated_items if item.incoming), ""
            ),
            batch=SimulatedBatch(times, simulated_items, is_sound=is_sound),
            path=path,
        )
        self._batches[stored_batch.id] = self._open[stored_batch.id] = stored_batch
        self._note(
            BatchAct.CREATED, stored_batch, now_us, requests=len(simulated_items)
        )
        return stored_batch

    def _accept(
        self, reader: Callable[[bytes], SimulatedRequest], path: str, body: bytes
    ) -> SimulatedRequest:
        """Parse *body*; raise `BadRequest` if a single call would fail."""
        incoming = reader(self._provider.heeded(path, body))
        digest = hashlib.sha256(body).hexdigest()
        row = self._provider.row(digest, 0)
        refusal = self._provider.refused(row, incoming, path)
        if refusal is None:
            draft = self._provider.draft(row, incoming, digest)
            refusal = draft if isinstance(draft, RefusedRequest) else None
        if refusal is not None:
            raise BadRequest(refusal.message or row.body(refusal).decode())
        return incoming

    def has_room(self, more: int) -> bool:
        """Return whether the queue has room for *more* items."""
        most = self._options.batch_queue
        waiting = (
            stored_batch.batch.total - len(stored_batch.batch.ended)
            for stored_batch in self._open.values()
        )
        return most is None or sum(waiting) + more <= most

    def find(self, batch_id: str, now_us: int) -> StoredBatch:
        """Return a batch by id; raise `BatchRefusal` if none is visible."""
        stored_batch = self._batches.get(batch_id)
        if stored_batch is None or not self._is_visible(stored_batch, now_us):
            raise BatchRefusal(
                f"There is no batch with the id {batch_id}.", status=NOT_FOUND
            )
        return stored_batch

    def newest(self, now_us: int) -> list[str]:
        """Return the ids of all visible batches, newest first."""
        return [
            stored_batch.id
            for stored_batch in reversed(self._batches.values())
            if self._is_visible(stored_batch, now_us)
        ]

    def _is_visible(self, stored_batch: StoredBatch, now_us: int) -> bool:
        """Return whether a batch is visible yet; the lag is an option."""
        visible_us = stored_batch.batch.entered[BatchPhase.VALIDATING] + int(
            self._options.batch_lag_seconds * 1e6
        )
        return now_us >= visible_us

    def cancel(self, batch_id: str, now_us: int) -> StoredBatch:
        """Cancel a batch; raise `BatchRefusal` if it is too late."""
        stored_batch = self.find(batch_id, now_us)
        if not stored_batch.batch.cancel(now_us):
            raise BatchRefusal(
                f"A batch that is {stored_batch.batch.phase} cannot be cancelled.",
                status=CONFLICT,
            )
        self._note(
            BatchAct.CANCELLED, stored_batch, now_us, requests=stored_batch.batch.total
        )
        return stored_batch

    def advance(self, now_us: int) -> list[StoredBatch]:
        """Advance all batches; return those that ended."""
        for stored_batch in self._open.values():
            for item in stored_batch.batch.advance(now_us):
                if item.ending is ItemEnding.SUCCEEDED:
                    self._succeed(stored_batch, item)
        done = [
            stored_batch
            for stored_batch in self._open.values()
            if stored_batch.batch.phase.is_terminal
        ]
        for stored_batch in done:
            del self._open[stored_batch.id]
        return done

    def _succeed(self, stored_batch: StoredBatch, item: SimulatedItem) -> None:
        incoming = item.incoming
        if incoming is None:
            raise AssertionError("what is no request cannot be answered")
        row = self._provider.row(item.digest, 0)
        draft = self._provider.draft(row, incoming, item.digest)
        if isinstance(draft, RefusedRequest):
            raise AssertionError("what was accepted is answered")  # noqa: TRY004
        reply = self._provider.reply(
            row, incoming, item.digest, stored_batch.path, draft, is_batch=True
        )
        stored_batch.replies[item.custom_id] = reply.body
        stored_batch.tokens_in += reply.served.tokens.prompt
        stored_batch.tokens_out += reply.served.tokens.out
        self._ledger.write(
            BatchLine(
                act=BatchAct.BILLED,
                id=stored_batch.id,
                at_ms=item.due_us // 1000,
                custom_id=item.custom_id,
                request=item.digest,
                model=incoming.model,
                half_price=True,
                **billed_fields(reply),
            )
        )

    def _note(
        self, act: BatchAct, stored_batch: StoredBatch, now_us: int, *, requests: int
    ) -> None:
        self._ledger.write(
            BatchLine(
                act=act, id=stored_batch.id, at_ms=now_us // 1000, requests=requests
            )
        )


def fresh(seed: int, number: int, now_us: int) -> str:
    """Return an id that no server with this seed returned before."""
    return hashlib.sha256(f"{seed} {number} {now_us}".encode()).hexdigest()[:24]
