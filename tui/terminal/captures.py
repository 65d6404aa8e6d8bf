"""What the monitor writes for a person: pictures and texts, in the current folder.

Never into a run's folder: the monitor leaves no trace there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from textual.app import App
from textual.screen import Screen

from store.errors import StoreError
from store.runs import RunFolder
from tui.drawing.words import utc

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 60
"""Characters of a name's part: the names of runs may have a hundred."""
_FETCHED = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class CaptureError(StoreError):
    """A file could not be written; the message says why and what to do."""


def file_name(run_id: str | None, what: str, at_us: int, ending: str) -> str:
    """A name that no file system takes amiss.

    >>> file_name("1120-a", "tasks", 1_767_225_600_000_000, "svg")
    'siftlog-1120-a-tasks-20260101T000000Z.svg'
    """
    parts = (_UNSAFE.sub("-", part)[:_LONGEST] for part in (run_id or "", what))
    words = [part.strip("-.") for part in parts]
    moment = utc(at_us).replace("-", "").replace(":", "")
    return "-".join(["siftlog", *filter(None, words), f"{moment}.{ending}"])


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


def write(folder: Path, name: str, text: str) -> Path:
    """Make a file; one that is there already is left as it is.

    Raises:
        CaptureError: it cannot be made, or the folder belongs to a run.
    """
    for above in (folder, *folder.parents):
        if RunFolder(above).log.exists():
            raise CaptureError(
                f"the current folder belongs to the run {above.name}, and nothing is "
                "written there: start the monitor from another folder"
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
