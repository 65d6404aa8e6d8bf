"""The command sql: answers a query of a run's log, read-only."""

from __future__ import annotations

import math
import re
import sqlite3
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_raw, print_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from runner.scorecard import Cell
    from store.database import LogReader

MOST_ROWS: Final = 200
"""Rows of a table on the page; files and JSON have all of them."""

CHUNK_ROWS: Final = 500
"""Rows held at a time."""

_REFUSED: Final = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
"""Actions beside writing that a query has no need of: attaching creates files."""

_READING_PRAGMA: Final = "table_info"
"""The pragma that is allowed: it lists the columns of a table or view."""

_STEPS: Final = 100_000
"""Steps of SQLite's machine between two looks for Ctrl-C; some milliseconds."""


@click.command()
@arguments.run_argument
@click.argument("query", metavar="SELECT")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@arguments.runs_dir
@arguments.as_json
def sql(run_name: str, query: str, runs_dir: Path, as_csv: bool, as_json: bool) -> int:
    """Query RUN's log in SQL, read-only; - reads the query from standard input.

    The views v_answers, v_attempts, v_costs and v_scores keep their columns in later
    versions. In any query, reply(TASK) is the text of a task's reply, prompt(TASK) the
    last request to its model as JSON, and body(SEQ) what an event stores beside its
    fields. A live run may be queried, too: tables of tasks are then up to a quarter of
    a second behind the events.
    """
    from runner.errors import UsageError
    from store.database import read_only
    from store.runs import resolve

    if as_csv and as_json:
        raise UsageError("--csv and --json are two formats: choose one of them.")
    if query == "-":
        query = sys.stdin.read()
    folder = resolve(runs_dir, run_name)
    folder.refresh()
    # functions read by a connection of their own: the query's is at a row meanwhile
    with folder.open_reader() as reader, read_only(reader.path) as inner:
        failures: list[BaseException] = []
        _prepare(reader, inner, failures)
        try:
            cursor = reader.execute(query)
            if cursor.description is None:
                raise UsageError(
                    "The query returns no columns: siftlog sql takes one SELECT."
                )
            names = [column[0] for column in cursor.description]
            rows = _rows(cursor)
            if as_json:
                _print_objects(names, rows)
            elif as_csv:
                _print_csv(names, rows)
            else:
                _print_table(names, rows)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _cause(error, reader, failures) from error
    return DONE


def _prepare(
    reader: LogReader, inner: LogReader, failures: list[BaseException]
) -> None:
    """Add the views and functions, and refuse everything but reading.

    Args:
        reader: the query's connection.
        inner: the connection of its functions.
        failures: takes why a function failed, which SQLite does not say.
    """
    from store.database import add_public_views, open_reader
    from store.forked import serve_bodies

    add_public_views(reader)
    inner.forked = serve_bodies(inner, reader.path, open_reader)
    for name, function in _functions(inner).items():
        noting = _noting(name, function, inner, failures)
        reader.create_function(name, 1, noting, deterministic=True)
    reader.set_authorizer(_authorize)
    # python handles a signal in python code only, and one step may be the whole query
    reader.set_progress_handler(lambda: 0, _STEPS)


def _authorize(action: int, name: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_PRAGMA and str(name).lower() == _READING_PRAGMA:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY if action in _REFUSED else sqlite3.SQLITE_OK


def _noting(
    name: str,
    function: Callable[[Any], str | bytes | None],
    inner: LogReader,
    failures: list[BaseException],
) -> Callable[[Any], str | bytes | None]:
    """Let a function put the reason for which it fails into *failures*."""
    from runner.errors import RunnerError
    from store.errors import StoreError

    def noting(key: object) -> str | bytes | None:
        try:
            return function(key)
        except sqlite3.DatabaseError as error:
            failures.append(inner.failure(error))
            raise
        except (StoreError, KeyboardInterrupt) as error:
            failures.append(error)
            raise
        except RunnerError as error:
            failures.append(RunnerError(f"{name}({key}): {error}"))
            raise

    return noting


def _cause(
    error: Exception, reader: LogReader, failures: Sequence[BaseException]
) -> BaseException:
    """Return what to raise when SQLite ended a query with *error*."""
    from runner.errors import UsageError

    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
        return KeyboardInterrupt()
    if failures:
        return failures[0]
    if reader.forked is not None and reader.forked.failure is not None:
        return reader.forked.failure
    return UsageError(_sentence(error))


def _functions(inner: LogReader) -> dict[str, Callable[[Any], str | bytes | None]]:
    """Return the functions that decode what the log stores compressed."""
    from runner.clients.wire import decode_reply
    from runner.sent_requests import SentRequests, reply_text
    from store import tables

    requests = SentRequests(inner)

    def body(seq: int) -> str | bytes | None:
        stored = tables.payload(inner, seq)
        if stored is None:
            return None
        try:
            return stored.decode()
        except UnicodeDecodeError:
            return stored

    def reply(task: int) -> str | None:
        stored = tables.reply(inner, task)
        if stored is None:
            return None
        return reply_text(decode_reply(stored.answered.form, stored.body))

    def prompt(task: int) -> str | None:
        sent = requests.of_task(task)
        return None if sent is None else sent[1].json

    return {"body": body, "reply": reply, "prompt": prompt}


def _rows(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(CHUNK_ROWS):
        yield from rows


def _cell(value: object) -> Cell:
    """Return a value as a cell: bytes in hex, infinity as a text, for JSON lacks it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return cast("Cell", value)  # SQLite has no other types


def _print_objects(names: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from runner.errors import UsageError

    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise UsageError(
            f"Two columns have the name {twice[0]!r}: name one of them with AS."
        )
    for row in rows:
        values = dict(zip(names, map(_cell, row), strict=True))
        print_json("siftlog.sql-row/1", {"row": values})


def _print_csv(names: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from runner.table_files import csv_lines

    print_raw(csv_lines([tuple(names)]))
    while chunk := list(islice(rows, CHUNK_ROWS)):
        print_raw(csv_lines([tuple(map(_cell, row)) for row in chunk]))


def _print_table(names: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from store.document import NONE, as_text, wide_table

    visible = list(islice(rows, MOST_ROWS))
    texts = (
        [NONE if cell is None else str(cell) for cell in map(_cell, row)]
        for row in visible
    )
    print_text(as_text([wide_table(names, texts)]))
    if next(rows, None) is not None:
        print_note(
            f"The first {MOST_ROWS:,} rows are shown: --csv and --json print all."
        )


def _sentence(error: Exception) -> str:
    """Say what is wrong with a query, and what there is instead."""
    words = str(error)
    if words == "not authorized" or re.search(r"readonly|read-only", words):
        return "A log is never changed: siftlog sql takes SELECT only."
    if words.startswith("no such table"):
        return (
            f"{words[0].upper()}{words[1:]}; the views are v_answers, v_attempts, "
            "v_costs and v_scores, and docs/log-format.md has the tables."
        )
    return f"The query is not valid: {words.rstrip('.')}."
