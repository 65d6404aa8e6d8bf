"""What the other logs of a run know of a shard's items: answers, and what they cost.

Only logs that hold some of the shard's slices are merged. Where every shard has one log
and goes on with it, there are none, and nothing is merged.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runner.errors import RunnerError
from runner.launching.group import Spent
from runner.shards.adopting import Adopted
from runner.shards.rivals import rivals
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
from store.slices import Shard, Slices
from store.union.merging import refresh
from store.union.source import LocalLogSource

LOOK_S = 0.2
"""Between two attempts to merge, while another process does."""
PATIENCE_S = 600.0
"""Merging a million events takes a minute; the shards of a run may do so in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What a shard takes from the logs of the others."""

    first: RunStarted | None = None  #: how the run began there; None: it has not
    state: str | None = None  #: the run's, as far as they know
    cap_usd: float | None = None  #: what the run may cost, as they know it
    settled: frozenset[str] = frozenset()
    """Requests of people, by id, that they had answered before the shard's log began:
    it began with what came of them. Only limits are heard anew, for they stand nowhere
    else."""
    known: Adopted | None = None  #: their answers
    spent: Spent = field(default_factory=Spent)  #: for the shard's slices


def beginning(folder: RunFolder) -> RunStarted | None:
    """How a log began; None where there is none, or its writer died before that."""
    try:
        with open_reader(folder.log) as reader:
            return run_started(reader)
    except (NoSuchRun, NotALog):
        return None


async def others(
    own: RunFolder,
    shard: Shard,
    place: Place | None,
    clock: Clock,
    tell: Callable[[str], None],
    *,
    accept_loss: bool = False,
) -> Others:
    """Bring the union of the logs with these slices up to date, and read it.

    Where no log is at hand that holds any of them, the union is read as it is: it may
    have what was merged from logs that are gone, and how the run stands is of interest
    to a shard that begins.

    Args:
        own: the shard's.
        shard: what it holds.
        place: where this shard's log is carried, beside the places that are known.
        clock: says when to look again.
        tell: hears what of the place cannot be read, and who may be at work there.
        accept_loss: whether acknowledged events may be missing from logs that lie here.

    Raises:
        EventsLost: some are missing, and that was not accepted.
        StoreError: a log is of another run, or the place is away.
        RunnerError: another process does not come to an end with merging.
    """
    slices = Slices.parse(shard.slices)
    here = [each for each in own.shards() if each != own and _holds(each, slices)]
    for each in here:
        check_end(each.log, accept_loss=accept_loss)
    away = await asyncio.to_thread(_away, own, slices, place, tell)
    for said in rivals(away, shard, clock.now_us()):
        tell(said)
    if here or away:
        await _merge(own, here, away, clock)
    elif not own.whole.log.exists():
        return Others()
    return await asyncio.to_thread(_read, own, slices, clock.now_us())


async def _merge(
    own: RunFolder,
    here: Sequence[RunFolder],
    away: Sequence[SegmentSource],
    clock: Clock,
) -> None:
    own.path.mkdir(parents=True, exist_ok=True)
    union, logs = own.whole.log, [each.log for each in here]
    until = clock.monotonic() + PATIENCE_S
    while await asyncio.to_thread(refresh, union, logs, away) is None:
        if clock.monotonic() > until:
            raise RunnerError(
                f"Another process has been merging into {union} for long: wait until "
                "it ends, then start the shard again."
            )
        await clock.sleep_until(clock.monotonic() + LOOK_S)


def _holds(other: RunFolder, slices: Slices) -> bool:
    first = beginning(other)
    return first is not None and (
        first.shard is None or bool(Slices.parse(first.shard.slices) & slices)
    )


def _away(
    own: RunFolder,
    slices: Slices,
    place: Place | None,
    tell: Callable[[str], None],
) -> list[SegmentSource]:
    """The logs in places with some of the slices, but for a copy of the own one."""
    log = _id(own)
    places = {address: Place.of(address) for address in places_in(own.places)}
    if place is not None:
        places[place.address] = place
    return [
        source
        for each in places.values()
        for source in sources(each, lambda said: tell(f"{said}."))
        if source.identity.log != log
        and (source.shard is None or Slices.parse(source.shard.slices) & slices)
    ]


def _read(own: RunFolder, slices: Slices, now_us: int) -> Others:
    """What the union says: of logs, too, that were merged into it and are here no more.

    Where none of them holds any of the slices, that is only how the run stands.
    """
    union = own.whole.log
    log = _id(own)
    spent = possible = 0
    with open_reader(union) as reader:
        stand = union_progress(reader)
        has_answers = stand is not None and any(
            bytes.fromhex(part.log) != log and part.slices & slices
            for part in stand.parts
        )
        first, cap_usd = run_started(reader), spending(reader).cap_usd
        signs = status(reader).signs
        settled = _settled(reader, _began_us(own))
        for other in spent_by_log(reader) if has_answers else ():
            if other.log == log:
                continue
            both, all_of_it = len(other.slices & slices), len(other.slices)
            spent += -(-other.spent_pico * both // all_of_it)
            possible += -(-other.possible_pico * both // all_of_it)
    return Others(
        first=first,
        state=liveness(signs, now_us, is_alive=False),
        cap_usd=cap_usd,
        settled=settled,
        known=Adopted(union) if has_answers else None,
        spent=Spent(spent_pico=spent, possible_pico=possible),
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


def _began_us(own: RunFolder) -> float:
    """When the shard's own log began; it is still to come where there is none."""
    if beginning(own) is None:
        return math.inf
    with open_reader(own.log) as reader:
        (started,) = events(reader, kinds=["run_started"])
    return started.ts_us


def _id(own: RunFolder) -> bytes | None:
    """The id of the shard's own log; None where it is still to be begun."""
    if beginning(own) is None:
        return None
    with open_reader(own.log) as reader:
        return LocalLogSource(reader).identity.log
