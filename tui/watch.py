"""The command `watch`: on a screen, under the prompt, or as lines."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.options import resolve_theme, shared

if TYPE_CHECKING:
    from store.runs import RunFolder
    from tui.render.glyphs import Glyphs
    from tui.terminal.shell import RefreshRate


LAST = "last"


@click.command()
@shared
@click.option(
    "--plain",
    is_flag=True,
    help="Print lines instead of a screen: every 30 s and on every change of state.",
)
@click.option(
    "--inline",
    is_flag=True,
    help="Show eight lines under the prompt until the run ends (not on Windows).",
)
@click.option(
    "--read-only", is_flag=True, help="Disable everything that changes the run."
)
@click.option(
    "--replay",
    "speed_name",
    metavar="SPEED",
    help="Replay the run at this speed: 10x, or max.",
)
@click.option(
    "--at",
    "moment_name",
    metavar="SEQ|TIME",
    help="Start of the replay: an event's number, a time, or -10m before the end.",
)
@click.option("--ascii", "as_ascii", is_flag=True, help="Use ASCII characters only.")
@click.option("--no-mouse", is_flag=True, help="Do not capture the mouse.")
@click.option(
    "--keymap",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Custom key bindings: a TOML file of binding = keys.  [default: "
    "keymap.toml in siftlog's configuration folder]",
)
@click.option(
    "--print-keymap", is_flag=True, help="Print all bindings as such a file, and exit."
)
def watch(
    run_name: str | None,
    theme: str | None,
    rate: str | None,
    runs_dir: Path,
    plain: bool,
    inline: bool,
    read_only: bool,
    speed_name: str | None,
    moment_name: str | None,
    as_ascii: bool,
    no_mouse: bool,
    keymap: Path | None,
    print_keymap: bool,
) -> int:
    """Watch RUN, or all runs, live.

    Watching never disturbs a run. On the screen, ? lists the keys, : all commands, and
    q quits while the run continues. With --replay, space pauses, + and - change the
    speed, [ and ] move by a minute, comma and full stop by an event, < and > to the
    ends. Without a terminal, in CI, and with --plain (for screen readers), prints lines
    until the run ends; RUN then defaults to last, as with --inline.
    """
    if plain and inline:
        raise click.UsageError("--plain and --inline are two ways to watch: take one.")
    if print_keymap:
        return _print_keymap()
    speed = _speed(speed_name, moment_name, is_screen=not (plain or inline))
    if plain or not _is_screen():
        return _say(runs_dir, run_name or LAST)
    # read by Textual when it is imported
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    # a changed line waits up to two periods: 33 ms at Textual's 60 per second
    os.environ.setdefault("TEXTUAL_FPS", "240")
    if not _is_browser():
        # an exported size would hide later changes of the terminal's size
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)
    from store.runs import resolve
    from tui.render.glyphs import ASCII, UNICODE, glyphs_for
    from tui.terminal.shell import RefreshRate

    glyphs = ASCII if as_ascii else glyphs_for(os.environ)
    if _is_browser() and not as_ascii:
        glyphs = UNICODE
    pace = RefreshRate(None if rate is None else float(rate), os.environ)
    colours = resolve_theme(theme)
    if inline:
        run = resolve(runs_dir, run_name or LAST)
        return _show_inline(run, glyphs, colours, pace)
    folder = None if run_name is None else resolve(runs_dir, run_name)
    keys = _read_keymap(keymap)
    if speed is not None:
        return _show_past(
            runs_dir,
            folder or resolve(runs_dir, LAST),
            glyphs,
            colours,
            pace,
            speed=speed,
            begin=moment_name or "1",
            keys=keys,
            has_mouse=not no_mouse,
        )
    return _show(
        runs_dir,
        folder,
        glyphs,
        colours,
        pace,
        keys=keys,
        has_mouse=not no_mouse,
        is_read_only=read_only,
    )


def _speed(
    speed_name: str | None, moment_name: str | None, *, is_screen: bool
) -> float | None:
    """Return the replay speed; None: watch the present."""
    if speed_name is None:
        if moment_name is not None:
            raise click.UsageError("--at sets the start of a replay: add --replay 10x.")
        return None
    if not (is_screen and _is_screen()):
        raise click.UsageError(
            "--replay needs a whole screen: without one, use siftlog "
            "status RUN --at TIME."
        )
    from tui.replay import parse_speed

    try:
        return parse_speed(speed_name)
    except ValueError as error:
        raise click.UsageError(f"{error} (--replay).") from error


def _is_browser() -> bool:
    """Return whether this process serves a browser page, through a pipe."""
    return "TEXTUAL_DRIVER" in os.environ


def _is_screen() -> bool:
    """Return whether a screen can be drawn."""
    can_draw = os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
    return _is_browser() or (can_draw and _is_terminal())


def _is_terminal() -> bool:
    """Return whether a user can see the output and answer."""
    # Textual draws on stderr
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _print_keymap() -> int:
    from tui.terminal.keymap import all_bindings, printed

    click.echo(printed(all_bindings()), nl=False)
    return 0


def _read_keymap(path: Path | None) -> dict[str, str]:
    """Read the user's keys from the given file, or the default one.

    Raises:
        click.UsageError: the file is invalid.
    """
    from tui.terminal.keymap import (
        KeymapError,
        all_bindings,
        default_path,
        read_keymap,
    )

    if path is None:
        path = default_path()
        if not path.exists():
            return {}
    try:
        return read_keymap(path, all_bindings())
    except KeymapError as error:
        raise click.UsageError(f"{error}.") from error


def _say(runs_dir: Path, run_name: str) -> int:
    import asyncio

    from store.clock import SystemClock
    from store.runs import resolve
    from tui.plain import follow
    from tui.sources.run_snapshot import RunSource

    def say(line: str) -> None:
        click.echo(line)
        sys.stdout.flush()

    clock = SystemClock()
    with RunSource(resolve(runs_dir, run_name), clock) as source:
        try:
            asyncio.run(follow(source, clock, say))
        except KeyboardInterrupt:
            return 0  # detached; the run is not affected
    return 0


def _show(
    runs_dir: Path,
    run: RunFolder | None,
    glyphs: Glyphs,
    theme: str,
    pace: RefreshRate,
    *,
    keys: dict[str, str],
    has_mouse: bool,
    is_read_only: bool,
) -> int:
    from store.clock import SystemClock
    from tui.app import Monitor
    from tui.run_screens import MonitorSources

    monitor = Monitor(
        MonitorSources.of(runs_dir, SystemClock(), is_read_only=is_read_only),
        glyphs=glyphs,
        run=run,
        theme=theme,
        pace=pace,
        has_mouse=has_mouse,
    )
    monitor.set_keymap(keys)
    message = monitor.run(mouse=has_mouse)
    if message:
        click.echo(message, err=True)
    return monitor.return_code or 0


def _show_past(
    runs_dir: Path,
    run: RunFolder,
    glyphs: Glyphs,
    theme: str,
    pace: RefreshRate,
    *,
    speed: float,
    begin: str,
    keys: dict[str, str],
    has_mouse: bool,
) -> int:
    from contextlib import closing

    from store.clock import SystemClock
    from tui.replay import Replay
    from tui.replay_monitor import ReplayMonitor, past_sources

    with closing(Replay(run, SystemClock(), speed, begin=begin)) as past:
        monitor = ReplayMonitor(
            past_sources(runs_dir, past),
            past,
            glyphs=glyphs,
            theme=theme,
            pace=pace,
            has_mouse=has_mouse,
        )
        monitor.set_keymap(keys)
        monitor.run(mouse=has_mouse)
    return monitor.return_code or 0


def _show_inline(run: RunFolder, glyphs: Glyphs, theme: str, pace: RefreshRate) -> int:
    from store.clock import SystemClock
    from tui.inline import InlineMonitor
    from tui.sources.run_snapshot import RunSource

    clock = SystemClock()
    monitor = InlineMonitor(
        RunSource(run, clock), clock, glyphs=glyphs, theme=theme, pace=pace
    )
    # the last figures stay on the terminal, like the output of any command
    message = monitor.run(inline=True, inline_no_clear=True, mouse=False)
    if message:
        click.echo(message, err=True)
    return monitor.return_code or 0
