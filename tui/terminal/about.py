"""What a monitor is and what it runs on: the first thing to put into a bug report."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version

from store.runs import RunFolder
from tui.drawing.format import UNKNOWN, count
from tui.sources.sight import Snapshot
from tui.terminal.pace import Timings
from tui.terminal.shell import Shell

_TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "TMUX", "NO_COLOR")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
_LONGEST = 60


def about(
    app: Shell, folder: RunFolder | None, seen: Snapshot | None, *, is_read_only: bool
) -> str:
    """A line for each fact; none of them tells what a run is about.

    Args:
        app: the monitor.
        folder: of the run that is watched.
        seen: that run.
        is_read_only: whether it was told to offer nothing that changes a run.
    """
    size = app.size
    facts = {
        "siftlog": version("siftlog"),
        "Textual": f"{version('textual')}, Rich {version('rich')}",
        "Python": f"{platform.python_version()}, {platform.platform()}",
        "SQLite": sqlite3.sqlite_version,
        **{name: _variable(name) for name in (*_TERMINAL, *_LOCALE)},
        "remote": "yes, by ssh" if os.environ.get("SSH_CONNECTION") else "no",
        "size": f"{size.width} columns, {size.height} lines",
        "colours": app.console.color_system or "none",
        "mouse": "ours" if app.has_mouse else "the terminal's",
        "theme": app.theme,
        "refresh": f"{app.pace.rate:g} looks a second",
        "a look": _taken(app.pace.looks),
        "a frame": _taken(app.pace.frames),
        "--read-only": "yes" if is_read_only else "no",
        "log": _size(folder),
        "last event": count(seen.status.last_seq) if seen else UNKNOWN,
    }
    return "\n".join(f"{name:<12} {value}" for name, value in facts.items())


def _variable(name: str) -> str:
    value = os.environ.get(name)
    return "not set" if value is None else repr(value[:_LONGEST])


def _taken(timings: Timings) -> str:
    """Half of the latest times, and nearly all of them."""
    half, most = (timings.percentile(share) for share in (0.5, 0.99))
    if half is None or most is None:
        return "none yet"
    n = len(timings.taken)
    return f"p50 {half * 1e3:.1f} ms, p99 {most * 1e3:.1f} ms, last {n}"


def _size(folder: RunFolder | None) -> str:
    if folder is None:
        return UNKNOWN
    try:
        return f"{folder.log.stat().st_size / 1e6:,.1f} MB"
    except OSError:
        return "gone"
