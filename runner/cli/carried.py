"""The places of a run's logs on the command line: `status --ship`, `merge --ship`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from runner.cli.figures import duration
from runner.cli.speech import record, tell, text
from runner.cli.stand import logs_text
from runner.errors import UsageError
from store.clock import SystemClock
from store.errors import CorruptLog
from store.runs import RunFolder, add_place, places_in
from store.segments.place import Place, address_of
from store.segments.segment import FOLDER
from store.segments.source import PlaceSurvey, compact, sources, survey

CLOCK = SystemClock()


def survey_of(run: str, address: str, tell: Callable[[str], None]) -> PlaceSurvey:
    """What a place holds of a run.

    Args:
        run: its whole id.
        address: of the place.
        tell: hears of whatever cannot be read, and is passed over.

    Raises:
        UsageError: it holds nothing, or logs of another run.
        StoreError: the place cannot be looked at.
    """
    if not RunFolder.is_valid_id(run):
        raise UsageError(
            f"{run} is no run id: a place holds the logs of one run, which is named by "
            "its whole id."
        )
    place = Place.of(address)
    found = survey(place, tell)
    if not found.logs:
        raise UsageError(
            f"{place.address} holds no log that can be read: name what the shards were "
            "started with as --ship; they carry their first events within seconds."
        )
    others = {each.run_id for each in found.logs} - {run}
    if others:
        raise UsageError(
            f"{place.address} holds the logs of run {min(others)}, not of {run}: type "
            f"{min(others)}, or name another place."
        )
    return found


def remember(
    runs_dir: Path, run: str, places: Iterable[str], tell: Callable[[str], None]
) -> None:
    """Look for a run's logs in these places, too, from now on.

    Nothing is made, and none is remembered, unless each has something of the run.

    Raises:
        UsageError: one holds nothing, or logs of another run.
        StoreError: one cannot be looked at.
    """
    addresses = [address_of(place) for place in places]
    for address in addresses:
        survey_of(run, address, tell)
    for address in addresses:
        add_place(RunFolder(runs_dir / run).places, address)


def say_emptied(folder: RunFolder, tell: Callable[[str], None]) -> None:
    """Say which of the places that are remembered have nothing now.

    Raises:
        StoreError: one cannot be looked at.
    """
    for address in places_in(folder.places):
        place = Place.of(address)
        if not place.names(FOLDER):
            tell(
                f"{place.address} holds no log of run {folder.run_id} now: what was "
                "merged from there is kept; see that it is the right place"
            )


def put_together(folder: RunFolder, tell: Callable[[str], None]) -> None:
    """Hold few files in the places of a run's logs where there are many small ones.

    Raises:
        StoreError: a place cannot be looked at or written to.
    """
    for address in places_in(folder.places):
        place = Place.of(address)
        removed = 0
        for source in sources(place):
            try:
                removed += compact(place, source)
            except CorruptLog as error:
                tell(f"{error}.")
        tell(f"{removed:,} small segments in {place.address} were put together.")


def say_carried(run: str, address: str, *, as_json: bool) -> bool:
    """Print what a place holds of a run; whether all of it has ended.

    Raises:
        UsageError: it holds nothing, or logs of another run.
        StoreError: the place cannot be looked at.
    """
    found = survey_of(run, address_of(address), lambda said: tell(f"{said}."))
    now_us = CLOCK.now_us()
    if as_json:
        record(_as_json(run, found, now_us))
    else:
        text(_as_text(run, found, now_us))
    return not found.unfinished


def _as_json(run: str, found: PlaceSurvey, now_us: int) -> dict[str, Any]:
    # what merge tells, too, has its names
    return {
        "run": run,
        "ended": not found.unfinished,
        "missing": str(found.missing),
        "unfinished": str(found.unfinished),
        "logs": [
            {
                "log": each.log,
                "slices": str(each.slices),
                "events": each.events,
                "state": each.state,
                "host": each.host,
                "carried_age_s": round(_age_s(each.carried_us, now_us), 1),
            }
            for each in found.logs
        ],
    }


def _as_text(run: str, found: PlaceSurvey, now_us: int) -> str:
    ended = sum(each.has_ended for each in found.logs)
    logs = logs_text(len(found.logs), ended, has_all=not found.unfinished)
    lines = [f"run {run}  {logs}"]
    for each in found.logs:
        age = duration(_age_s(each.carried_us, now_us))
        lines.append(
            f"log {each.log[:12]}  slices {each.slices}  {each.events:,} events  "
            f"{each.state}, carried {age} ago by {each.host}"
        )
    if found.missing:
        lines.append(f"missing: slices {found.missing}, which no shard has begun")
    if found.unfinished:
        lines.append(f"unfinished: slices {found.unfinished}")
    return "\n".join(lines)


def _age_s(at_us: int, now_us: int) -> float:
    # of another machine, whose clock may be ahead
    return max(0, now_us - at_us) / 1e6
