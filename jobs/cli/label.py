"""The command `siftlog label`: labels the items of a run, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jobs.cli.label_folders import (
    author_name,
    author_option,
    labels_option,
    target_of,
)
from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from jobs.kit.labels.desk import LabelSelection, SessionDesk
    from jobs.kit.labels.session import SessionProgress
    from jobs.kit.labels.source import LabelSource
    from store.runs import RunFolder

FRONT_ENDS = "siftlog.labelling"
"""Group of entry points: functions that run sessions of a `LabelDesk` for an author.
`screen` is used on a terminal unless --plain is given, `web` with --web, which also has
the arguments `port` and `say`."""
FrontEnd: TypeAlias = "Callable[[SessionDesk, str], Awaitable[None]]"
_LAST_PORT = 65_535

DESIGN_NAMES = ("random", "stratified", "disagreement", "uncertainty", "width")


@click.command()
@arguments.run_argument
@click.argument("items", nargs=-1, metavar="[ITEM...]")
@click.option("--plain", is_flag=True, help="Ask in plain text; reads a script too.")
@click.option(
    "--web", is_flag=True, help="Serve a page for browsers of this machine only."
)
@click.option(
    "--port",
    type=click.IntRange(0, _LAST_PORT),
    default=0,
    help="With --web: its port.  [default: any free one]",
)
@click.option(
    "--assisted", is_flag=True, help="Show the models' replies; recorded with labels."
)
@click.option(
    "--adjudicate",
    is_flag=True,
    help="Decide on disputed items, with all labels visible.",
)
@click.option(
    "--blind-names", is_flag=True, help="With --adjudicate: hide who gave a label."
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
    web: bool,
    port: int,
    author: str | None,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
    **options: Any,
) -> int:
    """Label the items of RUN, one at a time, one key per answer.

    Every label is stored immediately, with its author, the text, and what was
    visible. A later call continues. Labels are blind: replies are hidden until r is
    pressed, or with --assisted visible from the start. ITEMs are labelled first to
    last; without any, those of the draw, or all in the order of the run.
    """
    import asyncio

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
    if web and (plain or as_json):
        raise UsageError("--web is another way to label than --plain and --json.")
    show = (
        _web(port)
        if web
        else front_end(print_note if as_json else print_text, is_plain=plain or as_json)
    )
    selection = _selection(items, **options)
    after = asyncio.run(_label(target.run, target.folder, person, selection, show))
    if as_json:
        progress = after[person]
        print_json(
            "siftlog.labelling/1",
            {
                "run": target.run.run_id,
                "folder": str(target.folder),
                "author": person,
                "answered": progress.answered,
                "done": progress.done,
                "total": progress.total,
            },
        )
    from store.document import plural

    for name, progress in {} if as_json else after.items():
        left = progress.total - progress.done
        print_note(
            f"{plural(progress.answered, 'label')} recorded in {target.folder} by "
            f"{name}; {progress.done:,} of {progress.total:,} are done"
            + (f", {left:,} are left." if left else ".")
        )
    return DONE


def _selection(
    items: tuple[str, ...],
    *,
    design: str | None,
    size: int,
    seed: int,
    adjudicate: bool,
    blind_names: bool,
    assisted: bool,
    field_names: Sequence[str],
) -> LabelSelection:
    from jobs.kit.labels.desk import DrawRequest, LabelSelection

    return LabelSelection(
        items=items,
        fields=tuple(field_names),
        draw=None if design is None else DrawRequest(design=design, n=size, seed=seed),
        is_assisted=assisted,
        is_adjudicating=adjudicate,
        hides_names=blind_names,
    )


def front_end(write: Callable[[str], None], *, is_plain: bool) -> FrontEnd:
    """Return the function that asks the questions of a session.

    Args:
        write: prints text of the plain front end.
        is_plain: whether to return the plain front end.
    """
    if not is_plain and sys.stdin.isatty() and sys.stdout.isatty():
        front_end = _installed("screen")
        if front_end is not None:
            return front_end
    return partial(_ask_plainly, write=write)


def _web(port: int) -> FrontEnd:
    """Return the function that serves the page."""
    from runner.errors import UsageError

    front_end = _installed("web")
    if front_end is None:
        raise UsageError("No page is installed: leave out --web.")
    return partial(front_end, port=port, say=print_note)


def _installed(name: str) -> Callable[..., Awaitable[None]] | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=FRONT_ENDS, name=name):
        function: Callable[..., Awaitable[None]] = point.load()
        return function
    return None


async def _ask_plainly(
    desk: SessionDesk, author: str, *, write: Callable[[str], None]
) -> None:
    from jobs.cli.plain_labelling import key_of, label_plainly, line_of

    async with desk.session(author) as session:
        await label_plainly(
            session,
            write=write,
            read=lambda: key_of(sys.stdin),
            read_line=line_of,
        )


async def _label(
    run: RunFolder,
    folder: Path,
    author: str,
    selection: LabelSelection,
    show: FrontEnd,
) -> Mapping[str, SessionProgress]:
    """Run sessions and return their progress at the end, by author."""
    from jobs.kit.labels.desk import open_desk

    async with open_desk(run, folder, selection) as desk:
        _check_fields(desk.source, selection.fields)
        await show(desk, author)
        return desk.progress


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
