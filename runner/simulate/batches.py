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
    """Where a batch stands, in OpenAI's words; Anthropic knows three of them."""

    VALIDATING = "validating"  #: accepted, its lines not yet looked at
    IN_PROGRESS = "in_progress"  #: items are worked on
    FINALIZING = "finalizing"  #: all are done, the results are being written
    CANCELLING = "cancelling"  #: asked to stop; what was begun may still be done
    COMPLETED = "completed"  #: every item was answered or refused
    EXPIRED = "expired"  #: the window closed before some items were done
    CANCELLED = "cancelled"
    FAILED = "failed"  #: its lines are no batch: nothing was worked on

    @property
    def is_terminal(self) -> bool:
        """Whether nothing happens to it any more."""
        return not any(phase is self for phase, _ in TRANSITIONS)


class BatchStep(enum.Enum):
    """What moves a batch on."""

    ADMIT = enum.auto()  #: its lines are fine
    REJECT = enum.auto()  #: they are not
    WORK_OFF = enum.auto()  #: the last item is done
    RUN_OUT = enum.auto()  #: the window closed
    FILE = enum.auto()  #: the results are written
    CANCEL = enum.auto()  #: somebody asked for it
    WIND_DOWN = enum.auto()  #: what was begun is done


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
"""Every move there is; anything else changes nothing."""


class ItemEnding(enum.StrEnum):
    """What became of an item, in Anthropic's words; only success is billed."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedItem:
    """One request of a batch, and what becomes of it if nobody cancels."""

    custom_id: str
    digest: str  #: SHA-256 of its body, hex: what its answer depends on
    ending: ItemEnding
    due_us: int  #: when that happens
    incoming: SimulatedRequest | None = None  #: None: the body is no request
    status: int = 200  #: of the reply, as a single call would have had it
    problem: str = ""  #: what is wrong with it, where it is errored


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSchedule:
    """When a batch gets on if nobody cancels, in microseconds since 1970 UTC."""

    created_us: int
    admitted_us: int
    worked_us: int  #: nothing is worked on any more
    filed_us: int  #: its end
    winding_us: int  #: how long a cancellation takes


class SimulatedBatch:
    """One batch; it gets on where `advance` is told the time."""

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
        """From each phase it was in to when that began, microseconds."""
        self.ended: list[SimulatedItem] = []
        """The items that are done, in the order of their ends."""

    def advance(self, now_us: int) -> list[SimulatedItem]:
        """Get on to *now_us*; the items that ended since the last time.

        Time does not go back: an earlier time than before does nothing.
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
        """Ask it to stop; False: it is beyond that.

        Asking again while it is stopping is no mistake and does nothing.
        """
        if self.phase is BatchPhase.CANCELLING:
            return True
        if (self.phase, BatchStep.CANCEL) not in TRANSITIONS:
            return False
        self._take(BatchStep.CANCEL, now_us)
        return True

    def count(self, ending: ItemEnding) -> int:
        """How many of its items ended so."""
        return sum(item.ending is ending for item in self.ended)

    def _next(self) -> tuple[int, BatchStep] | None:
        """When which step comes by itself, in the phase it is in."""
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
        """End the items that are due, where any are worked on."""
        if BatchPhase.IN_PROGRESS not in self.entered:
            return
        while self._waiting and self._waiting[-1].due_us <= until_us:
            self.ended.append(self._waiting.pop())

    def _abandon(self) -> None:
        """End the items that nobody got to."""
        while self._waiting:
            self.ended.append(replace(self._waiting.pop(), ending=ItemEnding.CANCELED))

    def _take(self, step: BatchStep, at_us: int) -> None:
        self.phase = TRANSITIONS[self.phase, step]
        self.entered[self.phase] = at_us


FAILING: Final = (500, 429, 529)
"""The statuses of items that fail by chance: all worth another try."""

MALFORMED: Final = 400
"""The status of an item that is no request: it never succeeds."""

_ADMITTED, _WORKED = 0.05, 0.95
"""Shares of a batch's time that have gone by when its phases end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOrder:
    """One request of a batch as it came."""

    custom_id: str
    body: bytes  #: what a single call would have sent
    digest: str  #: its SHA-256, hex

    @classmethod
    def of(cls, custom_id: str, body: bytes) -> BatchOrder:
        """The request with that body."""
        digest = hashlib.sha256(body).hexdigest()
        return cls(custom_id=custom_id, body=body, digest=digest)


def schedule(options: SimulateOptions, number: int, now_us: int) -> BatchSchedule:
    """When batch *number* gets on: it takes between half and all of the time set."""
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
    """What becomes of *orders*.

    As with single calls that depends on seed, body and how often that body came before
    (counted on in *seen*), so what failed can succeed in another batch.
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
    """A batch, and the replies to its items that succeeded."""

    id: str
    model: str  #: of its first item
    batch: SimulatedBatch
    path: str  #: of the single calls that its items are
    replies: dict[str, bytes] = field(default_factory=dict)  #: by custom id
    tokens_in: int = 0  #: of the items that succeeded
    tokens_out: int = 0


class BatchOffice:
    """The batches of one form, each known by its id.

    Args:
        prefix: What the ids begin with.
        options: How batches get on, and how many of their items fail.
        provider: Answers and bills the items.
        ledger: Remembers what was done, and what was billed.
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
        """A new batch of *orders* to *path*, whose bodies *reader* reads."""
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
        """The request in *body*; raise `BadRequest` where a single call would fail."""
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
        """Whether *more* items may wait in batches beside those that do."""
        most = self._options.batch_queue
        waiting = (
            stored_batch.batch.total - len(stored_batch.batch.ended)
            for stored_batch in self._open.values()
        )
        return most is None or sum(waiting) + more <= most

    def find(self, batch_id: str, now_us: int) -> StoredBatch:
        """The batch of that id; a `BatchRefusal` where none is shown."""
        stored_batch = self._batches.get(batch_id)
        if stored_batch is None or not self._is_visible(stored_batch, now_us):
            raise BatchRefusal(
                f"There is no batch with the id {batch_id}.", status=NOT_FOUND
            )
        return stored_batch

    def newest(self, now_us: int) -> list[str]:
        """The ids of all batches that are shown, the last one first."""
        return [
            stored_batch.id
            for stored_batch in reversed(self._batches.values())
            if self._is_visible(stored_batch, now_us)
        ]

    def _is_visible(self, stored_batch: StoredBatch, now_us: int) -> bool:
        """Whether whoever looks is told of a batch: not at once, if that is set."""
        visible_us = stored_batch.batch.entered[BatchPhase.VALIDATING] + int(
            self._options.batch_lag_seconds * 1e6
        )
        return now_us >= visible_us

    def cancel(self, batch_id: str, now_us: int) -> StoredBatch:
        """Ask a batch to stop; a `BatchRefusal` where it is beyond that."""
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
        """Get on with all batches; those that came to their end."""
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
    """An id that neither this server nor an earlier one with its seed gave before."""
    return hashlib.sha256(f"{seed} {number} {now_us}".encode()).hexdigest()[:24]
