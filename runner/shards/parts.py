"""Assigns a process its part of a run: whole items with all their follow-ups.

Everything that descends from an item of the first stage, and all that is gathered with
it, is planned and sent by one shard, so shards are independent. Answers to a shard's
items in other logs of the run, and their cost, are read from the union of these logs.

Only logs that hold some of the shard's slices are merged. If every shard has one log
and continues it, there are none, and nothing is merged.

A shard with a new log has no record of earlier calls for its items: by another shard,
when the run was split differently, or by this one, whose log was lost with its disk
after it was shipped. It plans the items again and records existing answers instead of
sending them again. Failed tasks are sent again.

The content of a place is no proof of a live process, which may have died a moment ago.
So a conflict is reported but not refused: the user has to decide.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

from runner.clients.client import Received
from runner.clients.wire import decode_reply
from runner.errors import MalformedReply, RunnerError, UsageError
from runner.job import Dataset, Job, Task, TaskSpec
from runner.run.folder import GroupSpending
from store.clock import Clock
from store.control import recorded_outcomes
from store.database import LogReader, open_reader
from store.errors import NoSuchRun, NotALog
from store.events import CommandAccepted, CommandApplied, CommandRejected, RunStarted
from store.log.integrity import check_end
from store.read.live import spent_by_log, union_progress
from store.read.status import liveness, run_started, status
from store.read.tasks import events
from store.read.usage import spending
from store.runs import RunFolder, places_in
from store.segments.place import Place
from store.segments.source import SegmentSource, sources
from store.slices import SLICES, Shard, Slices, slice_of
from store.union.merging import refresh
from store.union.numbering import StoredAnswer, find_answers
from store.union.source import LocalLogSource


class AdoptedAnswers:
    """Finds the answers of a run in the union of its logs."""

    def __init__(self, union: Path) -> None:
        self._union = union
        self._other_requests: set[int] = set()

    @property
    def refused(self) -> int:
        """Tasks with answers to another request than would now be sent."""
        return len(self._other_requests)

    def serves(self, model: str) -> bool:
        """A log has answers of every model."""
        del model
        return True

    async def find(self, requests: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """The reply to each task's request, given by its hash, where there is one."""
        answers = await asyncio.to_thread(
            self._stored_answers, [task for task, _ in requests]
        )
        return [
            None if answer is None else self._received(task, sha256, answer)
            for (task, sha256), answer in zip(requests, answers, strict=True)
        ]

    def _stored_answers(self, tasks: Sequence[Task]) -> list[StoredAnswer | None]:
        with open_reader(self._union) as reader:
            return find_answers(
                reader, [(t.stage, t.key, t.model, t.replicate) for t in tasks]
            )

    def _received(
        self, task: Task, sha256: str, answer: StoredAnswer
    ) -> Received | None:
        answered = answer.answered
        if answer.request_sha256 != sha256:
            self._other_requests.add(task.number)
            return None
        try:
            reply = decode_reply(answered.form, answer.body)
        except MalformedReply:
            return None
        return Received(
            body=answer.body,
            form=answered.form,
            reply=reply,
            status=answered.status,
            headers=answered.headers,
            adopted=answer.origin,
        )


FRESH_S: Final = 30.0
"""Several times as long as what is recorded waits to be carried, and longer than the
clocks of two machines differ."""

_ENDS: Final = {"run_finished", "run_drained", "run_cancelled"}


def rival_warnings(
    sources: Iterable[SegmentSource], shard: Shard, now_us: int
) -> Iterator[str]:
    """A sentence for each log that others were carrying a moment ago.

    Args:
        sources: logs with some of the slices, but for the shard's own.
        shard: what is about to begin.
        now_us: microseconds since 1970 UTC.
    """
    for source in sources:
        heartbeat = source.heartbeat
        age_s = (now_us - heartbeat.at_us) / 1e6
        if source.shard is None or source.last_kind in _ENDS or age_s > FRESH_S:
            continue
        both = Slices.parse(source.shard.slices) & Slices.parse(shard.slices)
        yield (
            f"Shard {source.shard} was carried from {heartbeat.host} "
            f"{max(0, age_s):.0f} s ago, and has {len(both)} slices of "
            f"Shard {shard}: if its process is still running, stop one "
            "of the two, or both pay for the same calls."
        )


POLL_S = 0.2
"""Between two attempts to merge, while another process does."""
TIMEOUT_S = 600.0
"""Merging a million events takes a minute; the shards of a run may do so in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLogs:
    """What a shard takes from the logs of the others."""

    first: RunStarted | None = None  #: how the run began there; None: it has not
    state: str | None = None  #: the run's, as far as they know
    cap_usd: float | None = None  #: what the run may cost, as they know it
    settled: frozenset[str] = frozenset()
    """Requests of people, by id, that they had answered before the shard's log began:
    it began with what came of them. Only limits are heard anew, for they stand nowhere
    else."""
    adopted: AdoptedAnswers | None = None  #: their answers
    spent: GroupSpending = field(
        default_factory=GroupSpending
    )  #: for the shard's slices


def log_beginning(folder: RunFolder) -> RunStarted | None:
    """How a log began; None where there is none, or its writer died before that."""
    try:
        with open_reader(folder.log) as reader:
            return run_started(reader)
    except (NoSuchRun, NotALog):
        return None


async def read_other_logs(
    shard_folder: RunFolder,
    shard: Shard,
    place: Place | None,
    clock: Clock,
    notify: Callable[[str], None],
    *,
    accept_loss: bool = False,
) -> OtherLogs:
    """Bring the union of the logs with these slices up to date, and read it.

    Where no log is at hand that holds any of them, the union is read as it is: it may
    have what was merged from logs that are gone, and how the run stands is of interest
    to a shard that begins.

    Args:
        shard_folder: the shard's.
        shard: what it holds.
        place: where this shard's log is carried, beside the places that are known.
        clock: says when to look again.
        notify: hears what of the place cannot be read, and who may be at work there.
        accept_loss: whether acknowledged events may be missing from logs that lie here.

    Raises:
        EventsLost: some are missing, and that was not accepted.
        StoreError: a log is of another run, or the place is away.
        RunnerError: another process does not come to an end with merging.
    """
    slices = Slices.parse(shard.slices)
    here = [
        folder
        for folder in shard_folder.shards()
        if folder != shard_folder and _holds(folder, slices)
    ]
    for folder in here:
        check_end(folder.log, accept_loss=accept_loss)
    away = await asyncio.to_thread(_away, shard_folder, slices, place, notify)
    for warning in rival_warnings(away, shard, clock.now_us()):
        notify(warning)
    if here or away:
        await _merge(shard_folder, here, away, clock)
    elif not shard_folder.whole.log.exists():
        return OtherLogs()
    return await asyncio.to_thread(_read, shard_folder, slices, clock.now_us())


async def _merge(
    shard_folder: RunFolder,
    here: Sequence[RunFolder],
    away: Sequence[SegmentSource],
    clock: Clock,
) -> None:
    shard_folder.path.mkdir(parents=True, exist_ok=True)
    union, logs = shard_folder.whole.log, [folder.log for folder in here]
    until = clock.monotonic() + TIMEOUT_S
    while await asyncio.to_thread(refresh, union, logs, away) is None:
        if clock.monotonic() > until:
            raise RunnerError(
                f"Another process has been merging into {union} for long: wait until "
                "it ends, then start the shard again."
            )
        await clock.sleep_until(clock.monotonic() + POLL_S)


def _holds(other: RunFolder, slices: Slices) -> bool:
    first = log_beginning(other)
    return first is not None and (
        first.shard is None or bool(Slices.parse(first.shard.slices) & slices)
    )


def _away(
    shard_folder: RunFolder,
    slices: Slices,
    place: Place | None,
    notify: Callable[[str], None],
) -> list[SegmentSource]:
    """The logs in places with some of the slices, but for a copy of the own one."""
    log = _id(shard_folder)
    places = {address: Place.of(address) for address in places_in(shard_folder.places)}
    if place is not None:
        places[place.address] = place
    return [
        source
        for known_place in places.values()
        for source in sources(known_place, lambda message: notify(f"{message}."))
        if source.identity.log != log
        and (source.shard is None or Slices.parse(source.shard.slices) & slices)
    ]


def _read(shard_folder: RunFolder, slices: Slices, now_us: int) -> OtherLogs:
    """What the union says: of logs, too, that were merged into it and are here no more.

    Where none of them holds any of the slices, that is only how the run stands.
    """
    union = shard_folder.whole.log
    log = _id(shard_folder)
    spent = possible = 0
    with open_reader(union) as reader:
        progress = union_progress(reader)
        has_answers = progress is not None and any(
            bytes.fromhex(part.log) != log and part.slices & slices
            for part in progress.parts
        )
        first, cap_usd = run_started(reader), spending(reader).cap_usd
        signs = status(reader).signs
        settled = _settled(reader, _began_us(shard_folder))
        for other in spent_by_log(reader) if has_answers else ():
            if other.log == log:
                continue
            both, all_of_it = len(other.slices & slices), len(other.slices)
            spent += -(-other.spent_pico * both // all_of_it)
            possible += -(-other.possible_pico * both // all_of_it)
    return OtherLogs(
        first=first,
        state=liveness(signs, now_us, is_alive=False),
        cap_usd=cap_usd,
        settled=settled,
        adopted=AdoptedAnswers(union) if has_answers else None,
        spent=GroupSpending(spent_pico=spent, possible_pico=possible),
    )


def _settled(union: LogReader, before_us: float) -> frozenset[str]:
    """Requests that were answered before that, but for limits."""
    limits, settled = set(), set()
    for row in recorded_outcomes(union):
        event = row.event
        if not isinstance(event, CommandAccepted | CommandRejected | CommandApplied):
            continue
        if not isinstance(event, CommandApplied) and event.kind == "limits":
            limits.add(event.command)
        if not isinstance(event, CommandAccepted) and row.ts_us < before_us:
            settled.add(event.command)
    return frozenset(settled - limits)


def _began_us(shard_folder: RunFolder) -> float:
    """When the shard's own log began; it is still to come where there is none."""
    if log_beginning(shard_folder) is None:
        return math.inf
    with open_reader(shard_folder.log) as reader:
        (started,) = events(reader, kinds=["run_started"])
    return started.ts_us


def _id(shard_folder: RunFolder) -> bytes | None:
    """The id of the shard's own log; None where it is still to be begun."""
    if log_beginning(shard_folder) is None:
        return None
    with open_reader(shard_folder.log) as reader:
        return LocalLogSource(reader).identity.log


_PART = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingOptions:
    """Where a shard's log is carried, beside the work on it."""

    place: Place
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPart:
    """A shard of a run as a process finds it."""

    shard: Shard
    shipping: ShippingOptions | None = None  #: None: its log stays where it is
    others: OtherLogs = field(default_factory=OtherLogs)

    @property
    def share(self) -> Fraction:
        """What it takes of the run's budget."""
        return Fraction(len(Slices.parse(self.shard.slices)), SLICES)


def shard_of(text: str) -> Shard:
    """The shard that is written as "i/n", from 0.

    Raises:
        UsageError: it is written in another way, or there is no such shard.
    """
    match = _PART.fullmatch(text)
    if match is None:
        raise UsageError(f"--shard {text}: write it as i/n, such as 0/4 to 3/4.")
    index, count = int(match[1]), int(match[2])
    try:
        slices = Slices.of(index, count)
    except ValueError as error:
        raise UsageError(f"--shard {text}: {error}.") from error
    return Shard(index=index, count=count, slices=str(slices))


def takes_spec(shard: Shard, job: Job, dataset: Dataset) -> Callable[[TaskSpec], bool]:
    """Whether a shard takes a first-stage spec."""
    slices = frozenset(Slices.parse(shard.slices))

    def takes(spec: TaskSpec) -> bool:
        return slice_of(job.item(dataset, spec)) in slices

    return takes
