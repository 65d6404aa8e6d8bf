"""Renders the list of runs: a line each, in as many columns as there are cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runner.cli.status import status_json
from store.database import open_reader
from store.document import NONE, Column, Numbers, TableBlock, Words
from store.errors import StoreError
from store.events import ScoringRecorded
from store.printable import display_width
from store.read.forecast import share_text
from store.read.live import LiveStatus, live_status
from store.read.status import newest_scoring
from store.read.usage import dollars
from store.runs import RunFolder

GAP = 2
"""Cells between two columns."""

ROOMY = 120
"""Cells from which on nothing is shortened, and metrics have their names."""

LEAST: Mapping[str, int] = {"job": 6, "models": 6, "headline": 11, "run": 15}
"""Columns that give way to others, the first ones first, with the cells they keep."""


@dataclass(frozen=True, slots=True)
class RunListing:
    """A run with what the list says of it."""

    name: str  #: of its folder, which commands take
    seen: LiveStatus
    scoring: ScoringRecorded | None  #: the newest one; None: it has none


def listed_runs(
    folders: Iterable[RunFolder], now_us: int, notify: Callable[[str], None]
) -> list[RunListing]:
    """Return the runs, newest first.

    Args:
        folders: of runs.
        now_us: microseconds since 1970 UTC.
        notify: called for each unreadable run, which is left out.
    """
    listed = []
    for folder in folders:
        try:
            folder.refresh()
            is_held = folder.is_alive()
            with open_reader(folder.log) as reader:
                seen = live_status(reader, now_us, is_held=is_held)
                newest = newest_scoring(reader)
        except StoreError as error:
            notify(f"{folder.run_id}: {error}")
            continue
        event = None if newest is None else newest.event
        scoring = event if isinstance(event, ScoringRecorded) else None
        listed.append(RunListing(folder.run_id, seen, scoring))
    return sorted(
        listed,
        key=lambda run: (run.seen.status.created_us, run.name),
        reverse=True,
    )


def run_json(run: RunListing) -> dict[str, Any]:
    """Return the object of `siftlog runs --json`: that of status, with a headline."""
    scoring = run.scoring
    headline = None
    if scoring is not None and scoring.headline:
        headline = {"metric": scoring.headline, "values": dict(scoring.reached)}
    return {**status_json(run.seen), "headline": headline}


def run_table(runs: Sequence[RunListing], now_us: int, width: int) -> TableBlock:
    """Return the table of runs for *width* cells.

    On narrow terminals, times, ids and models are short, and texts are cut: jobs and
    models before ids, which commands take. The beginning of an id names a run too.
    """
    is_roomy = width >= ROOMY
    rows = [_cells(run, now_us, is_roomy=is_roomy) for run in runs]
    columns: list[Column] = [
        Words("started"),
        Words("run"),
        Words("job"),
        Words("models"),
        Words("state"),
        Numbers("cost"),
        Words("headline"),
    ]
    return TableBlock(
        list(_narrowed(columns, rows, width)), rows, indent=0, is_wide=True
    )


def _narrowed(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> Iterator[Column]:
    """Yield the columns, narrowed one after the other until all fit."""
    widths = [
        max(display_width(text) for text in (column.title, *(row[at] for row in rows)))
        for at, column in enumerate(columns)
    ]
    least = [LEAST.get(column.title, 0) for column in columns]
    excess = sum(widths) + GAP * (len(columns) - 1) - width
    titles = [column.title for column in columns]
    for at in map(titles.index, LEAST):
        spare = min(max(0, excess), max(0, widths[at] - least[at]))
        widths[at] -= spare
        excess -= spare
    for at, column in enumerate(columns):
        is_cut = column.title in LEAST and isinstance(column, Words)
        yield Words(column.title, widths[at]) if is_cut else column


def _cells(run: RunListing, now_us: int, *, is_roomy: bool) -> tuple[str, ...]:
    status = run.seen.status
    return (
        _started(status.created_us, now_us, is_roomy=is_roomy),
        # the default id ends with the name of the job, which stands beside it
        run.name if is_roomy else run.name.removesuffix(f"-{status.job}"),
        status.job,
        _models(status.models.get("subject", ()), is_roomy=is_roomy),
        _state(run.seen),
        NONE if status.imported else dollars(status.cost_usd),
        _headline(run.scoring, is_roomy=is_roomy),
    )


def _state(seen: LiveStatus) -> str:
    """Name the state, with the progress of an unfinished run."""
    if seen.state == "finished":
        return seen.state
    return f"{seen.state} {share_text(seen.progress.share)}"


def _started(at_us: int, now_us: int, *, is_roomy: bool) -> str:
    """Format a time in UTC: of today, of this year or of an earlier one."""
    when, now = (datetime.fromtimestamp(us / 1e6, UTC) for us in (at_us, now_us))
    if is_roomy:
        return f"{when:%Y-%m-%d %H:%M}"
    if when.date() == now.date():
        return f"{when:%H:%M}"
    return f"{when:%b %d}" if when.year == now.year else f"{when:%Y-%m}"


def _models(models: Sequence[str], *, is_roomy: bool) -> str:
    if is_roomy:
        return ", ".join(models)
    if len(models) == 1:
        return models[0].rpartition("/")[2]
    return str(len(models))


def _headline(scoring: ScoringRecorded | None, *, is_roomy: bool) -> str:
    """Format the headline metric: its value by model, of many the lowest and highest.

    Values are in the order of the models.
    """
    if scoring is None or not scoring.headline:
        return NONE
    if all(value is None for value in scoring.reached.values()):
        return NONE
    values = [
        NONE if value is None else f"{value:.3f}" for value in scoring.reached.values()
    ]
    known = [value for value in scoring.reached.values() if value is not None]
    if len(values) > 2 and known:  # noqa: PLR2004
        values = [f"{min(known):.3f} to {max(known):.3f}"]
    name = f"{scoring.headline} " if is_roomy else ""
    return name + " ".join(values)
