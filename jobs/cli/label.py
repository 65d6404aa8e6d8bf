"""The command `siftlog label`: labels the items of a run, one at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.label_folders import (
    LabelTarget,
    author_name,
    author_option,
    labels_option,
    target_of,
    writing,
)
from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from jobs.kit.labels.session import LabelSession, SessionProgress
    from jobs.kit.labels.source import LabelSource
    from store.labels.fold import ItemField, LabelSet
    from store.labels.writer import LabelWriter

FRONT_ENDS = "siftlog.labelling"
"""Group of entry points: an async function of a `LabelSession`, by name. `screen` is
used on a terminal unless --plain is given."""

DESIGN_NAMES = ("random", "stratified", "disagreement", "uncertainty", "width")


@click.command()
@arguments.run_argument
@click.argument("items", nargs=-1, metavar="[ITEM...]")
@click.option("--plain", is_flag=True, help="Ask in plain text; reads a script too.")
@click.option(
    "--assisted", is_flag=True, help="Show the models' replies; recorded with labels."
)
@click.option(
    "--adjudicate",
    is_flag=True,
    help="Decide on disputed items, with all labels in sight.",
)
@click.option(
    "--field",
    "field_names",
    multiple=True,
    metavar="NAME",
    help="Field to label; repeatable.  [default: all]",
)
@click.option(
    "--draw",
    "design",
    type=click.Choice(DESIGN_NAMES),
    help="Draw items by a design and record each one's probability.",
)
@click.option(
    "--n",
    "size",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="With --draw: number of items.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="With --draw: seed; the same seed draws the same items.",
)
@author_option
@labels_option
@arguments.runs_dir
@arguments.as_json
def label(
    run_name: str,
    items: tuple[str, ...],
    plain: bool,
    author: str | None,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
    **options: Any,
) -> int:
    """Label the items of RUN, one at a time, one key an answer.

    Every label is stored at once, with its author, the text, and what was visible. A
    later call continues. Labels are blind: replies are hidden until r is pressed, or
    with --assisted visible from the start. ITEMs are labelled first to last; without
    any, those of the draw, or all in the order of the run.
    """
    from runner.errors import UsageError

    person = author_name(author)
    target = target_of(runs_dir, run_name, labels_dir)
    if target.run is None:
        raise UsageError(
            f"{run_name} is a folder of labels: name a run to label its items, and "
            "the folder with --labels."
        )
    if options["design"] and (items or options["adjudicate"]):
        raise UsageError("--draw chooses the items: leave out ITEM and --adjudicate.")
    show = front_end(print_note if as_json else print_text, is_plain=plain or as_json)
    after = asyncio.run(_label(target, person, items, show=show, **options))
    if as_json:
        print_json(
            "siftlog.labelling/1",
            {
                "run": target.run.run_id,
                "folder": str(target.folder),
                "author": person,
                "answered": after.answered,
                "done": after.done,
                "total": after.total,
            },
        )
    else:
        left = after.total - after.done
        print_note(
            f"{after.answered:,} labels recorded in {target.folder}; "
            f"{after.done:,} of {after.total:,} are done"
            + (f", {left:,} are left." if left else ".")
        )
    return DONE


def front_end(
    write: Callable[[str], None], *, is_plain: bool
) -> Callable[[LabelSession], Awaitable[None]]:
    """Return the function that asks the questions of a session.

    Args:
        write: prints text of the plain one.
        is_plain: whether it must be that.
    """
    from importlib.metadata import entry_points

    from jobs.cli.plain_labelling import key_of, label_plainly, line_of

    if not is_plain and sys.stdin.isatty() and sys.stdout.isatty():
        for point in entry_points(group=FRONT_ENDS, name="screen"):
            screen: Callable[[LabelSession], Awaitable[None]] = point.load()
            return screen
    return partial(
        label_plainly,
        write=write,
        read=lambda: key_of(sys.stdin),
        read_line=line_of,
    )


async def _label(
    target: LabelTarget,
    author: str,
    items: Sequence[str],
    *,
    show: Callable[[LabelSession], Awaitable[None]],
    design: str | None,
    size: int,
    seed: int,
    adjudicate: bool,
    assisted: bool,
    field_names: Sequence[str],
) -> SessionProgress:
    """Run a session; return its progress at the end."""
    from jobs.kit.labels.label_rows import known_item
    from jobs.kit.labels.session import LabelSession
    from store.clock import SystemClock
    from store.labels.folder import LabelFolder

    with target.source() as source:
        if source is None:
            raise TypeError("a run has a source")
        for item in items:
            known_item(source, source.items, item)
        _check_fields(source, field_names)
        folder = LabelFolder(target.folder)
        async with writing(target.folder, author) as writer:
            labels = folder.refresh()
            if adjudicate:
                questions = labels.disputed(source.text_hashes(_labelled(labels)))
                questions = [q for q in questions if q.item in set(source.items)]
            else:
                keys = items or source.items
                if design is not None:
                    keys = await _drawn(
                        source, writer, labels, design, size, seed, field_names
                    )
                    labels = folder.refresh()
                questions = list(source.questions(keys))
            chosen = [
                question
                for question in questions
                if (not field_names or question.field in field_names)
                and (not items or question.item in items)
            ]
            session = LabelSession(
                source,
                writer,
                chosen,
                labels=labels,
                clock=SystemClock(),
                is_assisted=assisted,
                needs_reply=source.labelling.needs_reply,
                is_adjudicating=adjudicate,
            )
            await show(session)
            return session.progress


def _labelled(labels: LabelSet) -> list[str]:
    abouts: set[ItemField] = labels.by_field.keys() | labels.decided.keys()
    return sorted({about.item for about in abouts})


def _check_fields(source: LabelSource, names: Sequence[str]) -> None:
    from runner.errors import UsageError
    from store.nearest import did_you_mean

    known = [field.name for field in source.fields]
    for name in names:
        if name not in known:
            hint = did_you_mean(
                name, known, f"there are {', '.join(filter(None, known)) or 'none'}."
            )
            raise UsageError(f"Run {source.run} has no field {name!r}; {hint}")


async def _drawn(
    source: LabelSource,
    writer: LabelWriter,
    labels: LabelSet,
    design: str,
    size: int,
    seed: int,
    field_names: Sequence[str],
) -> list[str]:
    """Return the items of a draw, recorded before any of them is shown."""
    from jobs.kit.labels.draw_events import draw_events, recorded_draw

    events = draw_events(
        source,
        labels,
        design=design,
        n=size,
        seed=seed,
        author=writer.author,
        field=field_names[0] if len(field_names) == 1 else "",
    )
    before = recorded_draw(labels, events[0])
    if before:
        return [draw.event.item for draw in before]
    await writer.drawn(*events)
    return [event.item for event in events]
