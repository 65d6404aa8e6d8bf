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
        """Number of tasks with answers to a different request."""
        return len(self._other_requests)

    def serves(self, model: str) -> bool:
        """Return True: a log has answers of every model."""
        del model
        return True

    async def find(self, requests: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """Return the reply to each task's request, given by its hash, or None."""
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
"""Several times the delay of shipping, and more than two machines' clocks differ."""

_ENDS: Final = {"run_finished", "run_drained", "run_cancelled"}


def rival_warnings(
    sources: Iterable[SegmentSource], shard: Shard, now_us: int
) -> Iterator[str]:
    """Yield a warning for each log that another process shipped recently.

    Args:
        sources: other logs with some of the slices.
        shard: the shard that is about to start.
        now_us: microseconds since 1970 UTC.
    """
    for source in sources:
        heartbeat = source.heartbeat
        age_s = (now_us - heartbeat.at_us) / 1e6
        if source.shard is None or source.last_kind in _ENDS or age_s > FRESH_S:
            continue
        both = Slices.parse(source.shard.slices) & Slices.parse(shard.slices)
        yield (
            f"Shard {source.shard} was shipped from {heartbeat.host} "
            f"{max(0, age_s):.0f} s ago, and has {len(both)} slices of "
            f"Shard {shard}: if its process is still running, stop one "
            "of the two, or both pay for the same calls."
        )


POLL_S = 0.2
"""Delay between two attempts to merge while another process merges."""
TIMEOUT_S = 600.0
"""Merging a million events takes a minute; the shards of a run may take turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLogs:
    """State of the run in the logs of other shards."""

    first: RunStarted | None = None  #: start of the run there; None: not started
    state: str | None = None  #: state of the run there
    cap_usd: float | None = None  #: budget of the run there
    settled: frozenset[str] = frozenset()
    """Ids of commands that were answered before the shard's log began, which already
    reflects them. Only limits are applied again, because they are stored nowhere
    else."""
    adopted: AdoptedAnswers | None = None  #: their answers
    spent: GroupSpending = field(
        default_factory=GroupSpending
    )  #: for the shard's slices


def log_beginning(folder: RunFolder) -> RunStarted | None:
    """Return the start event of a log; None if there is no log or no event."""
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
    """Update the union of the logs with these slices, and read it.

    If no such log is available, the union is read as it is: it may contain logs that no
    longer exist, and a starting shard needs the state of the run.

    Args:
        shard_folder: the shard's folder.
        shard: its slices.
        place: where this shard's log is shipped, besides recorded places.
        clock: times the retries.
        notify: receives messages about unreadable logs and other writers.
        accept_loss: acknowledged events may be missing from logs of this machine.

    Raises:
        EventsLost: events are missing, and that was not accepted.
        StoreError: a log is of another run, or the place is unreachable.
        RunnerError: another process does not finish merging.
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
    """Return shipped logs with some of the slices, except copies of this shard's."""
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
    """Read the union, which may contain logs that no longer exist.

    If none of them has any of the slices, only the state of the run is returned.
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
    """Return commands that were answered before that time, except limits."""
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
    """Return when the shard's log began; infinity if it has not."""
    if log_beginning(shard_folder) is None:
        return math.inf
    with open_reader(shard_folder.log) as reader:
        (started,) = events(reader, kinds=["run_started"])
    return started.ts_us


def _id(shard_folder: RunFolder) -> bytes | None:
    """Return the id of the shard's log; None if it does not exist yet."""
    if log_beginning(shard_folder) is None:
        return None
    with open_reader(shard_folder.log) as reader:
        return LocalLogSource(reader).identity.log


_PART = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingOptions:
    """Destination and interval of shipping a shard's log."""

    place: Place
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPart:
    """A shard of a run, with its state in other logs."""

    shard: Shard
    shipping: ShippingOptions | None = None  #: None: its log is not shipped
    others: OtherLogs = field(default_factory=OtherLogs)

    @property
    def share(self) -> Fraction:
        """The shard's fraction of the run's budget."""
        return Fraction(len(Slices.parse(self.shard.slices)), SLICES)


def shard_of(text: str) -> Shard:
    """Parse a shard written as "i/n", from 0.

    Raises:
        UsageError: it has another form, or there is no such shard.
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
    """Return a predicate: is a first-stage spec in the shard?"""
    slices = frozenset(Slices.parse(shard.slices))

    def takes(spec: TaskSpec) -> bool:
        return slice_of(job.item(dataset, spec)) in slices

    return takes
