"""Exports texts and pictures: to a file, the clipboard or a pager.

Never writes into a run's folder.

Each function returns an error message with the next step, or an empty string.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported
from textual.screen import Screen

from store.errors import StoreError
from store.printable import printable
from store.runs import RunFolder
from tui.render.format import utc

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 60
"""Maximum characters of a name's part: names of runs may have a hundred."""
_FETCHED = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class CaptureError(StoreError):
    """A file could not be written; the message has the reason and the next step."""


def file_name(run_id: str | None, label: str, at_us: int, ending: str) -> str:
    """Return a name that is valid on every file system.

    >>> file_name("1120-a", "tasks", 1_767_225_600_000_000, "svg")
    'siftlog-1120-a-tasks-20260101T000000Z.svg'
    """
    parts = (_UNSAFE.sub("-", part)[:_LONGEST] for part in (run_id or "", label))
    words = [part.strip("-.") for part in parts]
    timestamp = utc(at_us).replace("-", "").replace(":", "")
    return "-".join(["siftlog", *filter(None, words), f"{timestamp}.{ending}"])


def picture_of(app: App[Any]) -> str:
    """Return the screen as SVG, without references to web fonts.

    Opening it needs no network; a local font replaces them.
    """
    return _FETCHED.sub("", app.export_screenshot())


def text_of(screen: Screen[Any]) -> str:
    """Return the cells of a screen as lines of text."""
    # Textual exports its cells as a picture only
    strips = screen._compositor.render_strips()  # noqa: SLF001 - see above
    return "".join(f"{strip.text.rstrip()}\n" for strip in strips)


def write_new(folder: Path, name: str, text: str) -> Path:
    """Create a file; an existing one is not replaced.

    Raises:
        CaptureError: it cannot be created, or the folder belongs to a run.
    """
    for above in (folder, *folder.parents):
        if RunFolder(above).log.exists():
            raise CaptureError(
                f"the current folder belongs to the run {above.name}, which "
                "must not be changed: start the monitor from another folder"
            )
    path = folder / name
    try:
        with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError as error:
        raise CaptureError(
            f"{path} is there already, and was not written: move it away"
        ) from error
    except OSError as error:
        raise CaptureError(
            f"{path} cannot be written ({error.strerror}): start the monitor from a "
            "folder where you may write"
        ) from error
    return path


CLIPBOARD = 50_000
"""Maximum characters to copy: terminals silently drop longer sequences."""


def copy_text(app: App[Any], text: str) -> str:
    """Copy *text* unchanged through the terminal."""
    if len(text) > CLIPBOARD:
        size = f"{len(text):,} characters are too many for a clipboard"
        return f"{size}: w writes them to a file."
    app.copy_to_clipboard(_encodable(text))
    return ""


def copied(name: str) -> str:
    """Describe a copy, which the terminal may silently ignore."""
    return f"{name} copied, if the terminal allows it"


def save_text(app: App[Any], text: str, name: str) -> str:
    """Write *text* unchanged to a new file: here, or in the browser's folder.

    Args:
        app: the application.
        text: any text.
        name: name of the file; an existing one is not replaced.
    """
    if app.is_web:
        app.deliver_text(StringIO(_encodable(text)), save_filename=name)
        return ""
    try:
        write_new(Path.cwd(), name, text)
    except (CaptureError, OSError) as error:
        return f"{error}."
    return ""


def _encodable(text: str) -> str:
    """Escape lone surrogates, which JSON may contain and UTF-8 may not."""
    return text.encode("utf-8", "backslashreplace").decode()


_WIDEST = 8
"""Maximum characters that replace one, such as `<E0100>`."""
#: It shows only its input: no shell, no editor, no other files.
_SECURE = {"LESSSECURE": "1", "LESSCHARSET": "utf-8"}


def page(app: App[Any], text: str) -> str:
    """Show *text* in `less` until the user quits.

    Returns:
        An error message with the next step; empty: none.
    """
    less = shutil.which("less")
    if less is None:
        return "There is no 'less' on this machine: w writes the text to a file."
    safe = printable(text, limit=len(text), line=_WIDEST * len(text) + 1)
    try:
        with app.suspend():
            # ctrl+c belongs to the pager while it runs
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                subprocess.run(  # noqa: S603 - a program of the user's own path
                    [less], input=safe.encode(), env=os.environ | _SECURE, check=False
                )
            finally:
                signal.signal(signal.SIGINT, before)
    except SuspendNotSupported:
        return "This terminal cannot be lent to a pager: w writes the text to a file."
    return ""
