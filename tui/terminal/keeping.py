"""A text that a person takes along: on the clipboard, or in a file of the folder.

Each function says what kept it from that, with the next step; an empty sentence:
nothing did.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App

CLIPBOARD = 50_000
"""Characters that are copied: terminals drop a longer sequence without a word."""


def copy(app: App[Any], text: str) -> str:
    """Copy *text*, as it is, by way of the terminal."""
    if len(text) > CLIPBOARD:
        size = f"{len(text):,} characters are too many for a clipboard"
        return f"{size}: w writes them to a file."
    app.copy_to_clipboard(text)
    return ""


def copied(what: str) -> str:
    """That it was handed to the terminal, which tells nobody what it does with it."""
    return f"{what} copied, if the terminal allows it"


def write(text: str, name: str, *, run: Path) -> str:
    """Write *text*, as it is, to a new file of the current folder.

    Args:
        text: anything at all.
        name: of the file; one that is there is not replaced.
        run: the folder of a run, where nothing may be written.
    """
    if Path.cwd().resolve().is_relative_to(run.resolve()):
        return "This is the run's own folder: start the monitor elsewhere."
    try:
        with Path(name).open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError:
        return f"{name} is there already, and was not written: move it away."
    except OSError as error:
        why = error.strerror or type(error).__name__
        return f"{name} was not written ({why}): start the monitor in another folder."
    return ""
