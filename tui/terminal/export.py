"""Exports texts and pictures: to a file, the clipboard or a pager.

Never into a run's folder: the monitor leaves no trace there.

Each function says what kept it from that, with the next step; an empty sentence:
nothing did.
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
from tui.render.sentences import utc

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 60
"""Characters of a name's part: the names of runs may have a hundred."""
_FETCHED = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class CaptureError(StoreError):
    """A file could not be written; the message says why and what to do."""


def file_name(run_id: str | None, label: str, at_us: int, ending: str) -> str:
    """A name that no file system takes amiss.

    >>> file_name("1120-a", "tasks", 1_767_225_600_000_000, "svg")
    'siftlog-1120-a-tasks-20260101T000000Z.svg'
    """
    parts = (_UNSAFE.sub("-", part)[:_LONGEST] for part in (run_id or "", label))
    words = [part.strip("-.") for part in parts]
    timestamp = utc(at_us).replace("-", "").replace(":", "")
    return "-".join(["siftlog", *filter(None, words), f"{timestamp}.{ending}"])


def picture_of(app: App[Any]) -> str:
    """The screen in front as SVG, without the fonts that it would fetch from elsewhere.

    Whoever opens it asks nobody for anything; a local font takes their place.
    """
    return _FETCHED.sub("", app.export_screenshot())


def text_of(screen: Screen[Any]) -> str:
    """The cells of a screen as lines of text."""
    # Textual gives its cells as a picture only
    strips = screen._compositor.render_strips()  # noqa: SLF001 - see above
    return "".join(f"{strip.text.rstrip()}\n" for strip in strips)


def write_new(folder: Path, name: str, text: str) -> Path:
    """Make a file; one that is there already is left as it is.

    Raises:
        CaptureError: it cannot be made, or the folder belongs to a run.
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
"""Characters that are copied: terminals drop a longer sequence without a word."""


def copy_text(app: App[Any], text: str) -> str:
    """Copy *text*, as it is, by way of the terminal."""
    if len(text) > CLIPBOARD:
        size = f"{len(text):,} characters are too many for a clipboard"
        return f"{size}: w writes them to a file."
    app.copy_to_clipboard(_encodable(text))
    return ""


def copied(name: str) -> str:
    """That it was handed to the terminal, which tells nobody what it does with it."""
    return f"{name} copied, if the terminal allows it"


def save_text(app: App[Any], text: str, name: str) -> str:
    """Write *text*, as it is, to a new file: here, or in the browser's folder.

    Args:
        app: on whose behalf.
        text: anything at all.
        name: of the file; one that is there is not replaced.
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
    """It with halves of a character, which JSON may hold and UTF-8 may not, named."""
    return text.encode("utf-8", "backslashreplace").decode()


_WIDEST = 8
"""Characters that stand for one at most, such as `<E0100>`."""
#: It shows what it is given and nothing else: no shell, no editor, no other files.
_SECURE = {"LESSSECURE": "1", "LESSCHARSET": "utf-8"}


def page(app: App[Any], text: str) -> str:
    """Show *text* in `less` until it is left.

    Returns:
        What kept it from being shown, with the next step; empty: nothing did.
    """
    less = shutil.which("less")
    if less is None:
        return "There is no 'less' on this machine: w writes the text to a file."
    safe = printable(text, limit=len(text), line=_WIDEST * len(text) + 1)
    try:
        with app.suspend():
            # ctrl+c is the pager's as long as it is there
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
