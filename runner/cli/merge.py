"""The command merge, and the shipped logs of a split run for `status --ship`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from runner.cli import arguments
from runner.cli.console import (
    CHECK_FAILED,
    DONE,
    duration,
    print_json,
    print_note,
    print_text,
)
from runner.cli.status_page import logs_text
from runner.errors import UsageError
from store.clock import SystemClock
from store.document import Block, Numbers, TableBlock, Words, as_text
from store.errors import CorruptLog
from store.runs import RunFolder, add_place, places_in
from store.segments.place import Place, address_of
from store.segments.segment import FOLDER
from store.segments.source import PlaceSurvey, compact, sources, survey


@click.command()
@arguments.run_argument
@click.option(
    "--ship",
    "places",
    multiple=True,
    metavar="DIR|URL",
    help="Location that shards ship their logs to; recorded for later merges.",
)
@click.option(
    "--compact",
    is_flag=True,
    help="Combine small segments of ended shards into larger files.",
)
@click.option("--check", is_flag=True, help="Exit with 6 unless every shard has ended.")
@arguments.runs_dir
@arguments.as_json
def merge(
    run_name: str,
    places: tuple[str, ...],
    compact: bool,
    check: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Merge the logs of RUN's shards into one log, RUN/log.db.

    The result does not depend on the order or number of merges. Commands that read RUN
    merge first, so use this for logs from other machines (--ship), and for the digest
    of the complete run.
    """
    from store.database import open_reader
    from store.read.live import union_progress
    from store.runs import resolve

    say = _once()
    if places:
        remember(runs_dir, run_name, places, say)
    folder = resolve(runs_dir, run_name)
    say_emptied(folder, say)
    folder.refresh(say)
    if compact:
        put_together(folder, print_note)
    with open_reader(folder.log) as reader:
        progress = union_progress(reader)
    if progress is None:
        print_note(f"{folder.run_id} is not split: its log is complete already.")
        return DONE
    has_ended = not progress.unfinished
    if as_json:
        print_json(
            "siftlog.merge/1",
            {
                "run": folder.run_id,
                "digest": progress.digest,
                "ended": has_ended,
                "missing": str(progress.missing),
                "unfinished": str(progress.unfinished),
                "repeated": progress.repeated,
                "logs": [
                    {
                        "log": part.log,
                        "slices": str(part.slices),
                        "phase": part.phase,
                        "events": part.events,
                    }
                    for part in progress.parts
                ],
            },
        )
    else:
        for part in progress.parts:
            print_text(
                f"log {part.log[:12]}  slices {part.slices}  {part.events:,} events  "
                f"{part.phase.removeprefix('run_')}"
            )
        if progress.missing:
            print_text(
                f"missing: slices {progress.missing}, which no shard has started"
            )
        if progress.repeated:
            print_text(
                f"repeated: {progress.repeated:,} answers, paid for more than once"
            )
        print_text(f"digest {progress.digest}")
        print_text(f"merged into {folder.log}")
    if has_ended or not check:
        return DONE
    print_note(
        f"slices {progress.unfinished} are unfinished in every log: "
        "start or resume the shards that hold them"
    )
    return CHECK_FAILED


def _once() -> Callable[[str], None]:
    """Return a callback that prints each message once."""
    printed: set[str] = set()

    def say(message: str) -> None:
        if message not in printed:
            printed.add(message)
            print_note(f"{message}.")

    return say


CLOCK = SystemClock()


def survey_of(run: str, address: str, notify: Callable[[str], None]) -> PlaceSurvey:
    """Return a survey of the run's logs at an address.

    Args:
        run: full id of the run.
        address: the place.
        notify: receives a message for each unreadable log, which is skipped.

    Raises:
        UsageError: the place has no log, or logs of another run.
        StoreError: the place cannot be read.
    """
    if not RunFolder.is_valid_id(run):
        raise UsageError(
            f"{run} is not a run id: a place has the logs of one run, "
            "named by its full id."
        )
    place = Place.of(address)
    place_survey = survey(place, notify)
    if not place_survey.logs:
        raise UsageError(
            f"{place.address} has no readable log: name the --ship of "
            "the shards; they ship their first events within seconds."
        )
    others = {log.run_id for log in place_survey.logs} - {run}
    if others:
        raise UsageError(
            f"{place.address} holds the logs of run {min(others)}, not of {run}: type "
            f"{min(others)}, or name another place."
        )
    return place_survey


def remember(
    runs_dir: Path, run: str, places: Iterable[str], notify: Callable[[str], None]
) -> None:
    """Record places in which to look for logs of a run.

    Nothing is written unless each place has a log of the run.

    Raises:
        UsageError: a place has no log, or logs of another run.
        StoreError: a place cannot be read.
    """
    addresses = [address_of(place) for place in places]
    for address in addresses:
        survey_of(run, address, notify)
    for address in addresses:
        add_place(RunFolder(runs_dir / run).places, address)


def say_emptied(folder: RunFolder, notify: Callable[[str], None]) -> None:
    """Report recorded places that no longer hold a log.

    Raises:
        StoreError: a place cannot be read.
    """
    for address in places_in(folder.places):
        place = Place.of(address)
        if not place.names(FOLDER):
            notify(
                f"{place.address} no longer holds a log of run "
                f"{folder.run_id}: merged events are kept; check the "
                "location"
            )


def put_together(folder: RunFolder, notify: Callable[[str], None]) -> None:
    """Compact small segments in all places of a run's logs.

    Raises:
        StoreError: a place cannot be read or written.
    """
    for address in places_in(folder.places):
        place = Place.of(address)
        removed = 0
        for source in sources(place):
            try:
                removed += compact(place, source)
            except CorruptLog as error:
                notify(f"{error}.")
        notify(f"{removed:,} small segments in {place.address} were compacted.")


def print_shipped(run: str, address: str, *, as_json: bool) -> bool:
    """Print a survey of a place; return whether all slices have ended.

    Raises:
        UsageError: the place has no log, or logs of another run.
        StoreError: the place cannot be read.
    """
    place_survey = survey_of(
        run, address_of(address), lambda message: print_note(f"{message}.")
    )
    now_us = CLOCK.now_us()
    if as_json:
        print_json("siftlog.shipped-logs/1", _as_json(run, place_survey, now_us))
    else:
        print_text(_as_text(run, place_survey, now_us))
    return not place_survey.unfinished


def _as_json(run: str, place_survey: PlaceSurvey, now_us: int) -> dict[str, Any]:
    # the names that merge uses
    return {
        "run": run,
        "ended": not place_survey.unfinished,
        "missing": str(place_survey.missing),
        "unfinished": str(place_survey.unfinished),
        "logs": [
            {
                "log": log.log,
                "slices": str(log.slices),
                "events": log.events,
                "state": log.state,
                "host": log.host,
                "carried_age_s": round(_age_s(log.carried_us, now_us), 1),
            }
            for log in place_survey.logs
        ],
    }


def _as_text(run: str, place_survey: PlaceSurvey, now_us: int) -> str:
    ended = sum(log.has_ended for log in place_survey.logs)
    logs = logs_text(len(place_survey.logs), ended, has_all=not place_survey.unfinished)
    rows = [
        (
            log.log[:12],
            str(log.slices),
            log.events,
            log.state,
            f"{duration(_age_s(log.carried_us, now_us))} ago by {log.host}",
        )
        for log in place_survey.logs
    ]
    columns = (
        Words("log"),
        Words("slices"),
        Numbers("events"),
        Words("state"),
        Words("shipped"),
    )
    lines: list[Block] = [f"run {run}  {logs}"]
    if rows:
        lines.append(TableBlock(columns, rows, is_wide=True))
    if place_survey.missing:
        lines.append(
            f"missing: slices {place_survey.missing}, which no shard has started"
        )
    if place_survey.unfinished:
        lines.append(f"unfinished: slices {place_survey.unfinished}")
    return as_text(lines)


def _age_s(at_us: int, now_us: int) -> float:
    # the other machine's clock may be ahead
    return max(0, now_us - at_us) / 1e6
