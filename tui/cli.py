"""The verb watch: to a screen, or to plain lines where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

LAST = "last"


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option(
    "--plain",
    is_flag=True,
    help="Lines instead of a screen: one every 30 s and with every change of state.",
)
@click.option("--ascii", "as_ascii", is_flag=True, help="Only ASCII on the screen.")
@click.option("--theme", help="Colours; see the command palette for names.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option(
    "--runs-dir",
    envvar="SIFTLOG_RUNS_DIR",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder that holds the runs.",
)
def watch(
    run_name: str | None,
    plain: bool,
    as_ascii: bool,
    theme: str | None,
    no_mouse: bool,
    runs_dir: Path,
) -> int:
    """Watch RUN, or all runs, without disturbing them.

    The monitor only reads; leaving it changes nothing. Without a terminal, and with
    --plain, it prints lines until the run has ended; RUN is then last by default.
    """
    if plain or not _is_screen():
        return _say(runs_dir, run_name or LAST)
    return _show(runs_dir, run_name, as_ascii, theme, not no_mouse)


def _is_screen() -> bool:
    """Whether there is a terminal that a screen can be drawn on."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM") != "dumb"


def _say(runs_dir: Path, run_name: str) -> int:
    import asyncio

    from store.clock import SystemClock
    from store.runs import resolve
    from tui.plain import follow
    from tui.sources.run import RunSource

    def say(line: str) -> None:
        click.echo(line)
        sys.stdout.flush()

    clock = SystemClock()
    with RunSource(resolve(runs_dir, run_name), clock) as source:
        try:
            asyncio.run(follow(source, clock, say))
        except KeyboardInterrupt:
            return 0  # detached; the run knows nothing of it
    return 0


def _show(
    runs_dir: Path, run_name: str | None, as_ascii: bool, theme: str | None, mouse: bool
) -> int:
    # read by textual when it is imported
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    from store.clock import SystemClock
    from store.runs import resolve
    from tui.app import Monitor
    from tui.drawing.glyphs import ASCII, glyphs_for
    from tui.drawing.palette import DARK, MONOCHROME
    from tui.watched import Sources

    colours = MONOCHROME if os.environ.get("NO_COLOR") else DARK
    monitor = Monitor(
        Sources.of(runs_dir, SystemClock()),
        glyphs=ASCII if as_ascii else glyphs_for(os.environ),
        run=None if run_name is None else resolve(runs_dir, run_name),
        theme=theme or colours.name,
        rate=1.0 if "SSH_CONNECTION" in os.environ else 2.0,
    )
    said = monitor.run(mouse=mouse)
    if said:
        click.echo(said, err=True)
    return monitor.return_code or 0
