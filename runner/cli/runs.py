"""Commands that list: runs, tasks of a run, events of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.console import (
    DONE,
    page_width,
    print_json,
    print_note,
    print_raw,
    print_text,
)
from store.clock import SystemClock
from store.document import as_text, wide_table
from store.printable import one_line

if TYPE_CHECKING:
    from store.events import RecordedEvent
    from store.query import Query
    from store.task import TaskRow


PAGE = 1000


POLL_S = 0.1


CLOCK = SystemClock()


@click.command()
@click.option(
    "--group", help="Only runs that siftlog run-all started under this group."
)
@arguments.runs_dir
@arguments.as_json
def runs(group: str | None, runs_dir: Path, as_json: bool) -> int:
    """List the runs, newest first, with progress, cost and headline metric.

    A run's id may be cut on a narrow terminal: what is left of it names the run too.
    """
    from runner.cli.run_list import listed_runs, run_json, run_table
    from store.runs import list_runs

    folders = list_runs(runs_dir)
    listed = [
        run
        for run in listed_runs(folders, CLOCK.now_us(), print_note)
        if group in {None, run.seen.status.group}
    ]
    if as_json:
        for run in listed:
            print_json("siftlog.run/2", run_json(run))
    elif listed:
        print_text(as_text([run_table(listed, CLOCK.now_us(), page_width())]))
    if not folders:
        print_note(
            f"There is no run in {runs_dir} yet; start one with siftlog run JOB."
        )
    elif group is not None and not listed:
        print_note(f"No run in {runs_dir} is of the group {group!r}.")
    return DONE


@click.command()
@arguments.run_argument
@arguments.filter_
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of tasks.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@arguments.runs_dir
@arguments.as_json
def tasks(
    run_name: str,
    expression: str,
    limit: int | None,
    as_csv: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """List RUN's tasks, all or those that a filter lets through."""
    from runner.errors import UsageError
    from runner.table_files import csv_lines
    from store.query import parse_query, with_keys
    from store.runs import resolve

    if as_csv and as_json:
        raise UsageError("--csv and --json are two forms: leave one of the two out.")
    query = parse_query(expression)
    folder = resolve(runs_dir, run_name)
    if as_csv:
        print_raw(csv_lines([_TASK_COLUMNS]))
    printed_n = 0
    for page, recovered in _task_pages(folder.log, query, limit):
        if not (as_json or as_csv):
            # column widths are fixed by a page's cells
            titles = ("",) * len(_TASK_HEADERS) if printed_n else _TASK_HEADERS
            cells = (_task_cells(row, recovered) for row in page)
            print_text(as_text([wide_table(titles, cells)]))
        printed_n += len(page)
        for task in page:
            values = _task_values(task)
            if as_json:
                print_json("siftlog.task/1", values)
            elif as_csv:
                print_raw(csv_lines([tuple(values.values())]))
    if not printed_n:
        meant = with_keys(expression)
        hint = f" Did you mean --filter '{meant}'?" if meant != expression else ""
        print_note(
            f"No task of {folder.run_id} fits {expression or 'anything'!r}.{hint}"
        )
    return DONE


_TASK_HEADERS = (
    *("task", "stage", "item", "model", "rep", "state", "tries", "took", "why"),
)


def _task_cells(row: TaskRow, recovered: Mapping[int, str]) -> tuple[str, ...]:
    latency = row.latency_ms
    why = f"{recovered[row.task]}, recovered" if row.task in recovered else _why(row)
    return (
        str(row.task),
        row.stage,
        row.key,
        row.model,
        str(row.replicate),
        row.state.name.lower(),
        str(row.attempts),
        "-" if latency is None else f"{latency / 1e3:.1f} s",
        why,
    )


def _why(row: TaskRow) -> str:
    """Return why a task failed, was skipped or could not be parsed."""
    from store.task import TaskState

    if row.reason and row.state is TaskState.COMPLETED:
        return f"unparsed: {row.reason}"
    return row.error or row.reason or ""


_TASK_COLUMNS = (
    "task",
    "stage",
    "key",
    "model",
    "replicate",
    "state",
    "attempts",
    "unknown",
    "error",
    "reason",
    "latency_ms",
    "cost_usd",
)


def _task_values(row: TaskRow) -> dict[str, Any]:
    values = (
        row.task,
        row.stage,
        row.key,
        row.model,
        row.replicate,
        row.state.name.lower(),
        row.attempts,
        row.abandoned,
        row.error,
        row.reason,
        row.latency_ms,
        row.cost_usd,
    )
    return dict(zip(_TASK_COLUMNS, values, strict=True))


def _task_pages(
    log: Path, query: Query, limit: int | None
) -> Iterator[tuple[Sequence[TaskRow], Mapping[int, str]]]:
    """Yield pages of tasks, and what they recovered from."""
    from store.database import open_reader
    from store.read.tasks import recoveries
    from store.read.tasks import tasks as page

    left = limit if limit is not None else -1
    after = 0
    with open_reader(log) as reader:
        while left:
            size = min(PAGE, left) if left > 0 else PAGE
            rows = page(reader, query, after=after, limit=size)
            if not rows:
                return
            yield rows, recoveries(reader, rows)
            after = rows[-1].task
            left -= len(rows) if left > 0 else 0


@click.command()
@arguments.run_argument
@click.option("--follow", is_flag=True, help="Wait for new events until the run ends.")
@click.option(
    "--after", type=int, default=0, help="Only events after this sequence number."
)
@click.option(
    "--kind", "kinds", multiple=True, help="Only events of this kind; repeatable."
)
@arguments.runs_dir
@arguments.as_json
def events(
    run_name: str,
    follow: bool,
    after: int,
    kinds: tuple[str, ...],
    runs_dir: Path,
    as_json: bool,
) -> int:
    """List RUN's events, oldest first.

    RUN may also be the file of a label log, such as runs/RUN/labels/ann.db.
    """
    from store.database import is_held, open_reader
    from store.events import KINDS
    from store.nearest import did_you_mean
    from store.read.tasks import events as page
    from store.runs import resolve

    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        hint = did_you_mean(unknown[0], KINDS, f"kinds are {', '.join(KINDS)}.")
        raise click.UsageError(f"No event is called {unknown[0]}; {hint}")
    log = Path(run_name)
    folder = None
    if log.suffix != ".db" or not log.is_file():
        folder = resolve(runs_dir, run_name)
        log = folder.log
    with open_reader(log) as reader:
        while True:
            # checked before reading, so that the last commit of a dying writer is not
            # missed
            alive = folder.is_alive() if folder else is_held(log.with_suffix(".lock"))
            rows = page(reader, after=after, limit=PAGE, kinds=kinds or None)
            for recorded in rows:
                values = _event_values(recorded)
                if as_json:
                    print_json("siftlog.event/1", values)
                else:
                    print_text(one_line(_event_line(values)))
            if rows:
                after = rows[-1].seq
            elif not (follow and alive):
                return DONE
            else:
                time.sleep(POLL_S)


def _event_values(row: RecordedEvent) -> dict[str, Any]:
    from store.events import UnknownEvent, fields_of, kind_of

    when = datetime.fromtimestamp(row.ts_us / 1e6, UTC)
    if isinstance(row.event, UnknownEvent):
        kind, facts = row.event.kind, json.loads(row.event.facts)
    else:
        kind, facts = kind_of(type(row.event)), fields_of(row.event)
    return {
        "seq": row.seq,
        "time": when.isoformat(timespec="microseconds"),
        "event": kind,
        "payload_bytes": row.payload_bytes,
        "facts": facts,
    }


def _event_line(values: dict[str, Any]) -> str:
    facts = " ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in values["facts"].items()
        if value is not None
    )
    return f"{values['seq']:>8} {values['time'][:23]} {values['event']:18} {facts}"
