"""The command show: prints one task, or all tasks of an item, with their texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from store.document import as_text
from store.printable import clip

if TYPE_CHECKING:
    import sqlite3

    from runner.job import Answer, QuotedPassage
    from runner.task_detail import ReplyReader, TaskReader
    from runner.task_page import TaskPage
    from store.query import Query
    from store.runs import RunFolder
    from store.task import TaskRow

LIMIT: Final = 20
"""Tasks of an item that are shown."""

ONE_CHARS: Final = 3_000
"""Characters of a text of the only task that is shown."""

MANY_CHARS: Final = 600
"""Characters of a text where several tasks are shown."""

NAME_CHARS: Final = 60
"""Characters of a name that an error repeats."""


@click.command()
@arguments.run_argument
@click.argument("name", metavar="ITEM|TASK", required=False)
@arguments.filter_
@click.option("--full", is_flag=True, help="Print whole texts.")
@click.option(
    "--parse/--no-parse",
    default=True,
    help="Parse replies and find their quotes, which loads the job and its data.  "
    "[default: parse]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="Maximum number of tasks.",
)
@arguments.runs_dir
@arguments.as_json
def show(
    run_name: str,
    name: str | None,
    expression: str,
    full: bool,
    parse: bool,
    limit: int,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Show a task of RUN, or all tasks of an ITEM: prompt, reply, score, attempts.

    ITEM is a key that siftlog tasks lists, or its first part, such as a paper's id; its
    follow-ups are shown too. TASK is a number, such as 12 or T-12. Long texts are
    shortened in the middle; --full prints them whole, and so does --json. Works on live
    and imported runs, and writes nothing.
    """
    from runner.errors import UsageError
    from runner.task_detail import TaskReader
    from store.database import open_reader
    from store.query import parse_query
    from store.read.status import run_started
    from store.read.tasks import example_item
    from store.runs import resolve

    query = parse_query(expression)
    folder = resolve(runs_dir, run_name)
    folder.refresh()
    with open_reader(folder.log) as reader:
        if name is None:
            raise UsageError(
                f"Name an item of {folder.run_id}, such as siftlog show "
                f"{folder.run_id} {example_item(reader)}, or a task by its number; "
                f"siftlog tasks {folder.run_id} lists them."
            )
        rows, total = _chosen(reader, folder, name, query, limit)
        tasks = TaskReader(reader, folder)
        replies = None
        if parse and any(row.reply_seq is not None for row in rows):
            replies = _reply_reader(folder)
        pages = (_page(tasks, replies, row) for row in rows)
        is_only = len(rows) == 1
        if as_json:
            for page in pages:
                print_json("siftlog.task-detail/1", page.json)
        else:
            chars = None if full else ONE_CHARS if is_only else MANY_CHARS
            print_text(f"run {folder.run_id}  {run_started(reader).job}")
            for page in pages:
                blocks = page.blocks(chars, has_prompt=is_only or full)
                print_text(as_text(blocks))
    if total > len(rows):
        print_note(
            f"{len(rows)} of {total:,} tasks are shown: choose others by --filter, "
            f"such as --filter 'stage:{rows[0].stage}', or more by --limit."
        )
    return DONE


def _chosen(
    reader: sqlite3.Connection,
    folder: RunFolder,
    name: str,
    query: Query,
    limit: int,
) -> tuple[list[TaskRow], int]:
    """Return the tasks to show, at most *limit*, and how many there are.

    Raises:
        UsageError: no task has that number or belongs to that item.
    """
    from runner.errors import UsageError
    from store.query import Query, task_number
    from store.read.tasks import count_by_queue, near_items, of_item, tasks_by_root
    from store.tables import planning, tasks_numbered

    of = of_item(name)
    narrowed = Query((*of.terms, *query.terms))
    rows = tasks_by_root(reader, narrowed, limit=limit)
    if rows:
        return rows, sum(count_by_queue(reader, narrowed).values())
    if tasks_by_root(reader, of, limit=1):
        raise UsageError(f"No task of {name!r} in {folder.run_id} fits the filter.")
    number = task_number(name)
    if number is not None and (numbered := tasks_numbered(reader, [number])):
        if query.terms:
            raise UsageError(f"Task {number} is one task: leave out --filter.")
        return numbered, 1
    near = near_items(reader, name)
    if number is not None and not near:
        raise UsageError(
            f"Run {folder.run_id} has no item and no task {name!r}: its tasks are "
            f"numbered from 1 to {planning(reader).tasks:,}."
        )
    names = ", ".join(clip(item, NAME_CHARS) for item in near)
    verb = "are" if near[1:] else "is"
    hint = f"the nearest {verb} {names}." if near else "siftlog tasks RUN lists them."
    raise UsageError(
        f"Run {folder.run_id} has no item {clip(name, NAME_CHARS)!r}; {hint}"
    )


def _reply_reader(folder: RunFolder) -> ReplyReader | None:
    """Return the reader of replies; None, with a note, if the job cannot be loaded."""
    from runner.errors import RunnerError
    from runner.score.scoring import loaded
    from runner.task_detail import ReplyReader
    from store.errors import StoreError

    try:
        return ReplyReader(*loaded(folder))
    except (RunnerError, StoreError) as error:
        print_note(f"Replies are shown without their parsed values: {error}")
        return None


def _page(tasks: TaskReader, replies: ReplyReader | None, row: TaskRow) -> TaskPage:
    """Return a task with its parsed reply and quotes."""
    from runner.errors import RunnerError
    from runner.task_page import TaskPage
    from store.errors import StoreError

    detail = tasks.read(row)
    answer: Answer | None = None
    quotes: tuple[QuotedPassage, ...] = ()
    if replies is not None:
        try:
            if detail.prompt is None:
                detail = replace(detail, prompt=replies.prompt(row))
            answer = replies.parsed(detail)
            quotes = () if answer is None else replies.quotes(answer)
        except (RunnerError, StoreError) as error:
            print_note(f"Task {row.task}: {error}")
    return TaskPage(detail=detail, scoring=tasks.scoring, answer=answer, quotes=quotes)
