"""The verbs watch and serve: to a screen, to a browser, or to plain lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from store.runs import RunFolder
    from tui.drawing.glyphs import Glyphs
    from tui.pace import Pace

LAST = "last"
RATES = ("0.5", "1", "2", "4")
PORT = 8177

_F = TypeVar("_F", bound=Callable[..., object])


def _shared(command: _F) -> _F:
    """Options that both verbs have, and that serve hands on to watch."""
    for option in (
        click.option(
            "--runs-dir",
            envvar="SIFTLOG_RUNS_DIR",
            type=click.Path(path_type=Path),
            default=Path("runs"),
            show_default=True,
            help="Folder that holds the runs.",
        ),
        click.option(
            "--rate",
            type=click.Choice(RATES),
            help="Looks a second; without it 2, and 1 over ssh or a slow line.",
        ),
        click.option(
            "--theme",
            envvar="TEXTUAL_THEME",
            help="Colours: dark, light, contrast, monochrome, ansi-dark, ansi-light, "
            "or another of Textual's.",
        ),
        click.argument("run_name", metavar="[RUN]", required=False),
    ):
        command = option(command)
    return command


@click.command()
@_shared
@click.option(
    "--plain",
    is_flag=True,
    help="Lines instead of a screen: one every 30 s and with every change of state.",
)
@click.option(
    "--inline",
    is_flag=True,
    help="Eight lines under the prompt, until the run has ended (not on Windows).",
)
@click.option(
    "--read-only", is_flag=True, help="Offer nothing that could change the run."
)
@click.option("--ascii", "as_ascii", is_flag=True, help="Only ASCII on the screen.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option(
    "--keymap",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Keys of your own: a TOML file of binding = keys. Without it, keymap.toml "
    "in the folder siftlog of your configuration, if it is there.",
)
@click.option(
    "--print-keymap", is_flag=True, help="Print all bindings as such a file, and end."
)
def watch(
    run_name: str | None,
    theme: str | None,
    rate: str | None,
    runs_dir: Path,
    plain: bool,
    inline: bool,
    read_only: bool,
    as_ascii: bool,
    no_mouse: bool,
    keymap: Path | None,
    print_keymap: bool,
) -> int:
    """Watch RUN, or all runs, as they go on.

    It disturbs nothing. On the screen ? lists the keys, : everything there is;
    q leaves, and the run goes on. Without a terminal, in CI, and with --plain (the form
    for screen readers), it prints lines until the run has ended; RUN is then last by
    default, as with --inline.
    """
    if plain and inline:
        raise click.UsageError("--plain and --inline are two ways to watch: take one.")
    if print_keymap:
        return _print_keymap()
    if plain or not _is_screen():
        return _say(runs_dir, run_name or LAST)
    # read by textual when it is imported
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    if not _is_browser():
        # a size that was exported once would hide every later one of the terminal
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)
    from store.runs import resolve
    from tui.drawing.glyphs import ASCII, UNICODE, glyphs_for
    from tui.pace import Pace

    glyphs = ASCII if as_ascii else glyphs_for(os.environ)
    if _is_browser() and not as_ascii:
        glyphs = UNICODE
    pace = Pace(None if rate is None else float(rate), os.environ)
    colours = _theme(theme)
    if inline:
        run = resolve(runs_dir, run_name or LAST)
        return _show_inline(run, glyphs, colours, pace)
    named = None if run_name is None else resolve(runs_dir, run_name)
    keys = _read_keymap(keymap)
    return _show(
        runs_dir,
        named,
        glyphs,
        colours,
        pace,
        keys=keys,
        has_mouse=not no_mouse,
        is_read_only=read_only,
    )


@click.command()
@_shared
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option(
    "--port", default=PORT, show_default=True, help="Port; 0: any that is free."
)
@click.option(
    "--allow-remote", is_flag=True, help="Let --host be one that others can reach."
)
@click.option(
    "--allow-control", is_flag=True, help="Let the browser pause, retry and cancel."
)
def serve(
    run_name: str | None,
    theme: str | None,
    rate: str | None,
    runs_dir: Path,
    host: str,
    port: int,
    allow_remote: bool,
    allow_control: bool,
) -> int:
    """Show the monitor in a browser.

    It is for browsers on this machine, and read-only, unless told otherwise. Whoever
    reaches the port sees all runs, without a password. To watch from another machine,
    forward the port: ssh -L 8177:127.0.0.1:8177 HOST.
    """
    try:
        from tui.browser import Page, is_loopback, listen
    except ImportError as error:
        raise click.ClickException(
            "The browser needs one more package: install it with "
            "pip install 'siftlog[web]'."
        ) from error
    import shlex

    from store.runs import resolve

    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - refused
        raise click.UsageError(
            "Name the one address that browsers will use: requests that call the "
            "monitor by another name are refused."
        )
    if not (allow_remote or is_loopback(host)):
        raise click.UsageError(
            f"Everybody who reaches {host} would see all runs, without a password and "
            "in clear text: add --allow-remote if that is meant, or keep the default "
            "and forward the port with ssh -L."
        )
    _theme(theme)
    # the command that was typed, for another verb
    words = [sys.executable, str(Path(sys.argv[0]).absolute()), "watch"]
    words += ["--runs-dir", str(runs_dir)]
    words += [] if run_name is None else [resolve(runs_dir, run_name).run_id]
    words += [] if theme is None else ["--theme", theme]
    words += [] if rate is None else ["--rate", rate]
    words += [] if allow_control else ["--read-only"]
    try:
        listening = listen(host, port)
    except OSError as error:
        raise click.ClickException(
            f"{host} port {port} cannot be listened on ({error.strerror}): choose "
            "another with --port, or 0 for any that is free."
        ) from error
    how = "with control of the runs" if allow_control else "read-only"

    def say(url: str) -> None:
        click.echo(f"{url}  ({how}; end with ctrl-c)")
        sys.stdout.flush()

    Page(shlex.join(words), listening, host, say).run()
    return 0


def _is_browser() -> bool:
    """Whether a page's process is asked for a screen, through a pipe."""
    return "TEXTUAL_DRIVER" in os.environ


def _is_screen() -> bool:
    """Whether there is something that a screen can be drawn on."""
    is_drawn = os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
    return _is_browser() or (is_drawn and _is_terminal())


def _is_terminal() -> bool:
    """Whether somebody can see what is said, and answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _theme(name: str | None) -> str:
    """The theme that a person means.

    Raises:
        click.UsageError: there is none of that name.
    """
    from textual.theme import BUILTIN_THEMES

    from tui.drawing.palette import DARK, MONOCHROME, PALETTES

    if name is None:
        return (MONOCHROME if os.environ.get("NO_COLOR") else DARK).name
    short = {
        palette.name.removeprefix("siftlog-"): palette.name for palette in PALETTES
    }
    found = short.get(name, name)
    if found in {*short.values(), *BUILTIN_THEMES}:
        return found
    known = ", ".join([*short, *sorted(BUILTIN_THEMES)])
    raise click.UsageError(
        f"There is no theme {name!r} (--theme, or TEXTUAL_THEME in the environment). "
        f"There are {known}."
    )


def _print_keymap() -> int:
    from tui.keymap import known_bindings, printed

    click.echo(printed(known_bindings()), nl=False)
    return 0


def _read_keymap(path: Path | None) -> dict[str, str]:
    """A person's keys: of the file that was named, or of the usual one.

    Raises:
        click.UsageError: something in the file cannot be followed.
    """
    from tui.keymap import KeymapError, default_path, known_bindings, read_keymap

    if path is None:
        path = default_path()
        if not path.exists():
            return {}
    try:
        return read_keymap(path, known_bindings())
    except KeymapError as error:
        raise click.UsageError(f"{error}.") from error


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
    runs_dir: Path,
    run: RunFolder | None,
    glyphs: Glyphs,
    theme: str,
    pace: Pace,
    *,
    keys: dict[str, str],
    has_mouse: bool,
    is_read_only: bool,
) -> int:
    from store.clock import SystemClock
    from tui.app import Monitor
    from tui.watched import Sources

    monitor = Monitor(
        Sources.of(runs_dir, SystemClock(), is_read_only=is_read_only),
        glyphs=glyphs,
        run=run,
        theme=theme,
        pace=pace,
        has_mouse=has_mouse,
    )
    monitor.set_keymap(keys)
    said = monitor.run(mouse=has_mouse)
    if said:
        click.echo(said, err=True)
    return monitor.return_code or 0


def _show_inline(run: RunFolder, glyphs: Glyphs, theme: str, pace: Pace) -> int:
    from store.clock import SystemClock
    from tui.inline import InlineMonitor
    from tui.sources.run import RunSource

    clock = SystemClock()
    monitor = InlineMonitor(
        RunSource(run, clock), clock, glyphs=glyphs, theme=theme, pace=pace
    )
    # what was seen last stays on the terminal, as the output of any command
    said = monitor.run(inline=True, inline_no_clear=True, mouse=False)
    if said:
        click.echo(said, err=True)
    return monitor.return_code or 0
