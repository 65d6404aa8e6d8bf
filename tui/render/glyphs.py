"""Defines the characters of the monitor, and their ASCII replacements.

A state has a glyph, a word and a colour. If the terminal or the locale does not support
the glyphs, ASCII replaces all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter

from store.task import TaskState


# compared by identity, so that drawings can be cached by what they are drawn with
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Glyphs:
    """A set of characters; each takes one cell."""

    states: Mapping[TaskState, str]
    paused: str
    stalled: str
    cursor: str  #: marks the current row
    loading: str  #: for a row that is not read yet
    rule: str
    levels: str  #: from empty to full: eight steps in one cell, or fewer
    eighths: str  #: parts of a bar's last cell, ascending; "" for whole cells only
    full: str
    blank: str
    mark: str  #: a position on a bar, such as a projection
    flag: str  #: an event on a time axis
    tick: str  #: a tick on a time axis, above its time
    has_braille: bool
    plain: Mapping[int, int]  #: for `str.translate`: replacements


UNICODE = Glyphs(
    states={
        TaskState.QUEUED: "·",
        TaskState.RUNNING: "▶",
        TaskState.WAITING: "↻",
        TaskState.COMPLETED: "✓",
        TaskState.FAILED: "✗",
        TaskState.SKIPPED: "–",
    },
    paused="‖",
    stalled="!",
    cursor="▸",
    loading="·",
    rule="─",
    levels=" ▁▂▃▄▅▆▇█",
    eighths="▏▎▍▌▋▊▉",
    full="█",
    blank="░",
    mark="│",
    flag="▲",
    tick="┬",
    has_braille=True,
    plain={},
)

ASCII = Glyphs(
    states={
        TaskState.QUEUED: ".",
        TaskState.RUNNING: ">",
        TaskState.WAITING: "~",
        TaskState.COMPLETED: "+",
        TaskState.FAILED: "x",
        TaskState.SKIPPED: "-",
    },
    paused="=",
    stalled="!",
    cursor=">",
    loading=".",
    rule="-",
    levels=" .:#",
    eighths="",
    full="#",
    blank="-",
    mark="|",
    flag="^",
    tick="+",
    has_braille=False,
    plain=str.maketrans("·…≥–−↔⟪⟫", "|~>--=[]"),
)

#: Terminals with no characters beyond ASCII, or too few.
_PLAIN_TERMINALS = frozenset({"dumb", "linux"})


def glyphs_for(environment: Mapping[str, str]) -> Glyphs:
    """Return the characters that a terminal supports, by `TERM` and locale.

    >>> glyphs_for({"TERM": "xterm", "LANG": "en_GB.UTF-8"}) is UNICODE
    True
    """
    # the first one set decides, as in setlocale(3)
    names = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "")
    is_plain = environment.get("TERM") in _PLAIN_TERMINALS
    is_utf8 = locale.lower().replace("-", "").endswith("utf8")
    return UNICODE if is_utf8 and not is_plain else ASCII


STATE_WORDS: Mapping[TaskState, str] = {
    TaskState.QUEUED: "queued",
    TaskState.RUNNING: "running",
    TaskState.WAITING: "waiting",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "failed",
    TaskState.SKIPPED: "skipped",
}
"""Names of states on the screen; filters accept each of them."""


_OTHER = "?"
#: Frames and bars drawn by Textual: notices, scroll bars and the palette.
_FRAMES = str.maketrans(
    {
        **dict.fromkeys("─━▔▁", "-"),
        **dict.fromkeys("│┃▌▐▎▊▏▕", "|"),
        **dict.fromkeys("╭╮╰╯┌┐└┘", "+"),
        **dict.fromkeys("▂▃▄▅▆▇█", "#"),
    }
)


def substitute_glyphs(glyphs: Glyphs, content: Content) -> Content:
    """Replace unsupported characters in *content*, keeping the style."""
    if not glyphs.plain or content.plain.isascii():
        return content
    text = content.plain.translate(glyphs.plain)
    signs = (character if character.isascii() else _OTHER for character in text)
    return Content("".join(signs), spans=list(content.spans))


def displayable_text(glyphs: Glyphs, text: str) -> str:
    """Replace unsupported characters in *text*, keeping its width."""
    if not glyphs.plain or text.isascii():
        return text
    return "".join(
        character
        if character.isascii()
        else _OTHER * get_character_cell_size(character)
        for character in text.translate(glyphs.plain)
    )


class OnlyAscii(LineFilter):
    """A last filter of all output, including frames of Textual's widgets."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return segments of the same width in ASCII."""
        del background
        return [
            segment
            if segment.text.isascii()
            else segment._replace(
                text=displayable_text(self._glyphs, segment.text.translate(_FRAMES))
            )
            for segment in segments
        ]
