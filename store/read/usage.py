"""Reads what a run used: money, tokens, faulty replies, failures, batches.

A split run can have calls without an outcome in one log whose tasks another log has
ended: their outcome is lost. They may be billed, like calls in flight when a process
died on one machine.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import attrgetter
from typing import Final

import msgspec

from store.database import SQL, UNION, has_plan_positions
from store.document import plural
from store.events import (
    AttemptStarted,
    BatchCreated,
    BatchEnded,
    BatchItem,
    BatchPrepared,
    CommandAccepted,
    CommandApplied,
    RunResumed,
    RunStarted,
    batch_items,
)
from store.fold_state import FailureOutcome
from store.served_by import PREFIX
from store.tables import damaged, event_in, payload, recorded_rows
from store.task import pico, usd

BATCH_KINDS = ("batch_prepared", "batch_created", "batch_ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBatch:
    """A batch according to its latest events."""

    key: str
    model: str
    form: str
    requests: int
    prepared_us: int
    seq: int  #: of the event that prepared it
    id: str | None = None  #: the provider's; None: it may have the batch or not
    is_open: bool = True  #: its end is not recorded
    is_listed: bool = False  #: found in the provider's list, not through its creation


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBatches:
    """Number of open batches and of requests waiting in them."""

    count: int = 0
    requests: int = 0  #: in all of these batches
    oldest_us: int | None = None  #: when the oldest of them was prepared


def batches(conn: sqlite3.Connection) -> tuple[RecordedBatch, ...]:
    """Return every batch of the log, in the order of preparation."""
    by_key: dict[str, RecordedBatch] = {}
    rows = [
        row
        for kind in BATCH_KINDS
        for row in recorded_rows(conn, SQL["marked"], (kind, 0, -1))
    ]
    for row in sorted(rows, key=attrgetter("seq")):
        match row.event:
            case BatchPrepared() as event:
                # one that the provider never received may be prepared again unchanged
                by_key.pop(event.batch, None)
                by_key[event.batch] = RecordedBatch(
                    key=event.batch,
                    model=event.model,
                    form=event.form,
                    requests=event.requests,
                    prepared_us=row.ts_us,
                    seq=row.seq,
                )
            case BatchCreated(batch=key) as event if key in by_key:
                by_key[key] = replace(by_key[key], id=event.id, is_listed=event.found)
            case BatchEnded(batch=key) if key in by_key:
                by_key[key] = replace(by_key[key], is_open=False)
            case _:
                pass  # a later siftlog's version, or a batch that it prepared
    return tuple(by_key.values())


def items_of(conn: sqlite3.Connection, batch: RecordedBatch) -> list[BatchItem]:
    """Return the items of a batch.

    Raises:
        CorruptLog: its list is damaged.
    """
    try:
        return batch_items(payload(conn, batch.seq) or b"")
    except msgspec.DecodeError as error:
        raise damaged(f"event {batch.seq}", error) from error


def open_batches(conn: sqlite3.Connection) -> OpenBatches:
    """Summarize the open batches; free if there never was one."""
    return _at_a_glance(batch for batch in batches(conn) if batch.is_open)


def _at_a_glance(still_open: Iterable[RecordedBatch]) -> OpenBatches:
    unfinished = list(still_open)
    return OpenBatches(
        count=len(unfinished),
        requests=sum(batch.requests for batch in unfinished),
        oldest_us=min((batch.prepared_us for batch in unfinished), default=None),
    )


def sent_starts(conn: sqlite3.Connection) -> list[AttemptStarted]:
    """Return the starts of attempts without a recorded outcome, by task."""
    starts = (
        event_in(seq, "attempt_started", version, facts)
        for seq, version, facts in conn.execute(SQL["sent_starts"]).fetchall()
    )
    return [start for start in starts if isinstance(start, AttemptStarted)]


def lost_starts(conn: sqlite3.Connection) -> list[AttemptStarted]:
    """Return the starts of calls whose outcome was lost with a log, ascending.

    Empty for a run that is not split.
    """
    if not has_plan_positions(conn):
        return []
    starts = (
        event_in(seq, "attempt_started", version, facts)
        for seq, version, facts in conn.execute(UNION["lost_starts"]).fetchall()
    )
    return [start for start in starts if isinstance(start, AttemptStarted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Money in whole pico-dollars, so a resumed budget is exact."""

    spent_pico: int  #: known to be spent
    possible_pico: int  #: worst case of billable calls without a reply or usage
    in_flight_pico: int  #: worst case of the calls without an outcome in the log
    cap_pico: int | None  #: for the whole run; None: no cap
    is_whole: bool  #: the price of every answer is known

    @property
    def spent_usd(self) -> float | None:
        """Dollars known to be spent; None: the price of an answer is unknown."""
        return usd(self.spent_pico) if self.is_whole else None

    @property
    def possible_usd(self) -> float:
        """Dollars that may be billed in addition."""
        return usd(self.possible_pico)

    @property
    def in_flight_usd(self) -> float:
        """Maximum cost of calls that are in flight, or were at the end."""
        return usd(self.in_flight_pico)

    @property
    def cap_usd(self) -> float | None:
        """Dollars that the run may cost; None: no cap."""
        return None if self.cap_pico is None else usd(self.cap_pico)


def spending(conn: sqlite3.Connection) -> Spending:
    """Return the spending and the budget of a run."""
    counters = dict(conn.execute(SQL["counters"]).fetchall())
    cap_pico = _cap_pico(conn)
    has_figures = cap_pico is not None or counters.get("attempts_answered", 0) > 0
    return Spending(
        spent_pico=counters.get("cost_pico", 0),
        possible_pico=counters.get("possible_pico", 0) + _worst(lost_starts(conn)),
        in_flight_pico=_worst(sent_starts(conn)),
        cap_pico=cap_pico,
        is_whole=has_figures and not counters.get("answers_unpriced"),
    )


def _worst(starts: Iterable[AttemptStarted]) -> int:
    """Reservations of calls without a recorded outcome: there are few of them."""
    return sum(pico(start.worst_usd or 0.0) for start in starts)


def _cap_pico(conn: sqlite3.Connection) -> int | None:
    """Return the cap at the last start plus later additions.

    `siftlog budget RUN --add USD` is a command `budget` with `add_usd`. It counts from
    where it was applied: one that a crash left accepted is carried out by the next
    process, and must not count twice.
    """
    cap, since = None, 0
    for kind in ("run_started", "run_resumed"):
        for recorded in recorded_rows(conn, SQL["marked"], (kind, since, -1)):
            if isinstance(recorded.event, RunStarted | RunResumed):
                cap, since = recorded.event.budget_usd, recorded.seq
    if cap is None:
        return None
    added_usd = {
        recorded.event.command: json.loads(recorded.event.payload)["add_usd"]
        for recorded in recorded_rows(conn, SQL["marked"], ("command_accepted", 0, -1))
        if isinstance(recorded.event, CommandAccepted)
        and recorded.event.kind == "budget"
    }
    # every shard of a run records the same command
    applied = {
        recorded.event.command
        for recorded in recorded_rows(
            conn, SQL["marked"], ("command_applied", since, -1)
        )
        if isinstance(recorded.event, CommandApplied)
    }
    return pico(cap) + sum(pico(added_usd.get(command, 0)) for command in applied)


def dollars(amount: float | None) -> str:
    """Format dollars to a hundredth of a cent; unknown is "?", never zero."""
    return "?" if amount is None else f"${amount:,.4f}"


def exact_usd(pico: int | None) -> str | None:
    """Return pico-dollars as an exact number of dollars; None stays None.

    >>> exact_usd(1_500_000_000_000), exact_usd(1), exact_usd(None)
    ('1.5', '0.000000000001', None)
    """
    return None if pico is None else f"{Decimal(pico).scaleb(-12).normalize():f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """Gaps and contradictions in the usage of replies."""

    unknown: int  #: answers without a readable usage
    is_reserved: (
        bool  #: whether their worst case stays reserved: nothing is for imports
    )
    #: answers whose total is smaller than the sum of its parts, which was used
    doubtful: int
    charged: int  #: answers that reported their cost
    charged_usd: float  #: the sum of these costs
    differing: int  #: of these answers, those whose cost by the prices differs

    @property
    def findings(self) -> tuple[str, ...]:
        """Describe uncertain tokens and cost in sentences without full stops."""
        sentences: list[str] = []
        if self.unknown:
            reserved = "; their maximum cost stays reserved" if self.is_reserved else ""
            sentences.append(
                f"the usage of {plural(self.unknown, 'answer')} is unreadable{reserved}"
            )
        if self.doubtful:
            sentences.append(
                f"{plural(self.doubtful, 'answer')} gave a total of tokens below the "
                "sum of its parts; the larger figure was counted"
            )
        if self.differing:
            sentences.append(
                f"{self.differing:,} of {self.charged:,} answers say that they cost "
                "something else than their tokens do by the prices; they say "
                f"{dollars(self.charged_usd)} in sum"
            )
        return tuple(sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCount:
    """Tokens of one stage and model over all its replies, refused ones included.

    Answers of the response cache are not replies: they used nothing.
    """

    stage: str
    model: str
    replies: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyShares:
    """Replies and failed tasks of one model, by their faults.

    A reply may count under several faults. All replies are counted, including those
    that were requested again.
    """

    model: str
    replies: int  #: answers of the response cache included
    truncated: int  #: ended at the output limit
    refused: int  #: by the model
    filtered: int  #: by the provider, with a reply or an error status
    empty: int  #: without any text
    unparsed: int  #: the job's parser could not read them
    failed: int  #: tasks that ended without a reply

    @property
    def withheld(self) -> int:
        """The refused ones: by the model, or by the provider's filter."""
        return min(self.replies, self.refused + self.filtered)


def usage_counts(conn: sqlite3.Connection) -> list[UsageCount]:
    """Return the tokens by stage and model."""
    return [
        UsageCount(
            stage=stage,
            model=model,
            replies=replies,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
        for stage, model, replies, tokens_in, tokens_out in conn.execute(
            SQL["usage"]
        ).fetchall()
    ]


def queue_costs(conn: sqlite3.Connection) -> dict[tuple[str, str], tuple[float, int]]:
    """Return dollars and completed tasks by stage and model; unknown prices are 0."""
    rows = conn.execute(SQL["queue_costs"]).fetchall()
    return {(stage, model): (usd(pico), n) for stage, model, pico, n in rows}


def reply_shares(conn: sqlite3.Connection) -> tuple[ReplyShares, ...]:
    """Count the faults of each model's replies."""
    return tuple(
        ReplyShares(
            model=model,
            replies=replies,
            truncated=truncated,
            refused=refused,
            filtered=filtered,
            empty=empty,
            unparsed=unparsed,
            failed=failed,
        )
        for (
            model,
            replies,
            truncated,
            refused,
            filtered,
            empty,
            unparsed,
            failed,
        ) in conn.execute(SQL["reply_shares"]).fetchall()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCount:
    """Answers of one model by one field of their origin."""

    model: str  #: as requested
    field: str  #: of `COUNTED`
    answers: Mapping[str, int]
    """By name, the most frequent first; under the empty name those that came after the
    first 200 names of the run."""

    @property
    def is_mixed(self) -> bool:
        """Whether several values occurred."""
        return len(self.answers) > 1

    def __str__(self) -> str:
        """Return a sentence without a full stop."""
        names = [f"{name or 'others'} {n:,}" for name, n in self.answers.items()]
        rest = len(names) - MOST_NAMES
        if rest > 0:
            names = [*names[:MOST_NAMES], f"and {rest:,} more"]
        return f"{self.model}: {len(self.answers):,} {self.field}s ({', '.join(names)})"


MOST_NAMES: Final = 4
"""Maximum number of names in a sentence."""


def served_counts(counted: Iterable[tuple[str, str, int]]) -> tuple[ServedCount, ...]:
    """Return the origins of a run's answers, by model and field.

    Args:
        counted: answers counted by the keys of `served_keys`.
    """
    names: dict[tuple[str, str], Counter[str]] = {}
    for kind, word, n in counted:
        model, _, name = word.partition("\n")
        names.setdefault((model, kind.removeprefix(PREFIX)), Counter())[name] += n
    return tuple(
        ServedCount(model=model, field=field, answers=dict(counter.most_common()))
        for (model, field), counter in sorted(names.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCount:
    """Failed attempts of one class, stage and model."""

    error: str
    stage: str
    model: str
    n: int
    final: int | None  #: those without a further attempt; None: an older log
    last_seq: int
    sample_task: int


class FailureRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Failures of one minute by class, stage, model and outcome.

    A struct, because a monitor reads hundreds of them at a time; its fields are in the
    order of the query's columns.
    """

    t: int  #: minutes since 1970 UTC
    error: str  #: a class, or the reason why a reply was refused or not read
    stage: str
    model: str
    outcome: FailureOutcome
    n: int
    last_task: int


def error_counts(conn: sqlite3.Connection) -> list[ErrorCount]:
    """Return failed attempts by class, stage and model."""
    return [
        ErrorCount(
            error=error,
            stage=stage,
            model=model,
            n=n,
            final=final,
            last_seq=last_seq,
            sample_task=sample,
        )
        for error, stage, model, n, final, last_seq, sample in conn.execute(
            SQL["error_classes"]
        ).fetchall()
    ]


def failures(conn: sqlite3.Connection, since: int) -> tuple[FailureRow, ...] | None:
    """Return failures from minute *since* on, ascending.

    None if unknown: the log was last written by an older siftlog.
    """
    if conn.execute(SQL["is_older"]).fetchone()[0]:
        return None
    rows = conn.execute(SQL["failures"], (since,)).fetchall()
    return msgspec.convert(rows, tuple[FailureRow, ...])
