"""A text that a person takes along: on the clipboard, or in a file of the folder.

Each function says what kept it from that, with the next step; an empty sentence:
nothing did.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from textual.app import App

from tui.terminal import captures

CLIPBOARD = 50_000
"""Characters that are copied: terminals drop a longer sequence without a word."""


def copy(app: App[Any], text: str) -> str:
    """Copy *text*, as it is, by way of the terminal."""
    if len(text) > CLIPBOARD:
        size = f"{len(text):,} characters are too many for a clipboard"
        return f"{size}: w writes them to a file."
    app.copy_to_clipboard(_encodable(text))
    return ""


def copied(what: str) -> str:
    """That it was handed to the terminal, which tells nobody what it does with it."""
    return f"{what} copied, if the terminal allows it"


def write(app: App[Any], text: str, name: str) -> str:
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
        captures.write(Path.cwd(), name, text)
    except (captures.CaptureError, OSError) as error:
        return f"{error}."
    return ""


def _encodable(text: str) -> str:
    """It with halves of a character, which JSON may hold and UTF-8 may not, named."""
    return text.encode("utf-8", "backslashreplace").decode()
