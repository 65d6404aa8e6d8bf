"""Makes text from outside harmless for a terminal, and measures and cuts it in cells.

Model output and papers are untrusted: they can hold escape sequences that retitle a
window or copy to the clipboard, and invisible characters that reorder what is read.
Here each of them becomes a picture of itself. It does not escape the markup of any
library: callers that use one must also turn it off.

A character takes none, one or two cells, so text is measured after it was made
printable: a hidden character is shown as its number, and takes the room of that.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import accumulate, chain, takewhile

#: Longer lines are cut: they may hang a terminal.
LINE = 2_000
#: Maximum characters shown of a text.
LIMIT = 200_000
_CUT = "…"
_TAB = " " * 4
_WIDE = frozenset({"W", "F"})
_MARKS = frozenset({"Mn", "Me"})
#: Unicode's pictures of the C0 controls begin here; DEL has its own.
_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
#: Control, format (bidi, zero width), surrogate, private use, unassigned; separators
#: of lines and paragraphs. Of the rest, marks that join or hide are named one by one.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Invisible though Unicode does not class them as format characters: combining
#: grapheme joiner, Hangul and Khmer fillers, variation selectors, braille blank.
_INVISIBLE = frozenset(
    chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xE0100, 0xE01F0),
    )
)


def printable(text: str, *, limit: int = LIMIT, line: int = LINE) -> str:
    """Return *text* without characters that a terminal would act on or hide.

    Newlines stay, tabs become spaces, carriage returns before a newline are removed.

    Args:
        text: any text.
        limit: characters shown; an ellipsis marks a cut.
        line: characters shown of each line.
    """
    excerpt = text[:limit]
    lines = []
    for piece in excerpt.replace("\r\n", "\n").split("\n"):
        begun = piece[: line + 1]
        # most texts are plain, and known to be so forty times as fast
        is_plain = begun.isascii() and begun.isprintable()
        safe = begun if is_plain else "".join(map(_picture, begun))
        lines.append(safe if len(safe) <= line else safe[: line - 1] + _CUT)
    if len(text) > limit:
        lines.append(_CUT)
    return "\n".join(lines)


@lru_cache(maxsize=8192)
def _picture(character: str) -> str:
    """Return the replacement of one character."""
    code = ord(character)
    if character == "\t":
        return _TAB
    if code < ord(" "):
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    if code in _INVISIBLE or unicodedata.category(character) in _HIDDEN:
        return f"<{code:04X}>"
    return character


def one_line(text: str, *, line: int = LINE) -> str:
    """Makes a text from outside printable on one line of at most *line* characters."""
    return printable(text.replace("\n", "\N{SYMBOL FOR LINE FEED}"), line=line)


def display_width(text: str) -> int:
    """Counts the cells of a terminal that a printable text takes."""
    return sum(map(_cells, text))


def cut(text: str, width: int) -> str:
    """Returns the beginning of a printable text that takes at most *width* cells."""
    if display_width(text) <= width:
        return text
    return _beginning(text, width - len(_CUT)) + _CUT


def shortened(text: str, width: int) -> str:
    """Cuts a printable text in its middle, to at most *width* cells.

    For names of models, which differ at their ends more often than at their beginnings.
    """
    if display_width(text) <= width:
        return text
    room = width - len(_CUT)
    head = _beginning(text, room // 3)
    return head + _CUT + _beginning(text[::-1], room - display_width(head))[::-1]


def clip(text: str, width: int) -> str:
    """Makes a text from outside printable and cuts it to *width* cells."""
    return cut(one_line(text), width)


def padded(text: str, width: int, *, is_number: bool = False) -> str:
    """Fills a printable text with blanks to *width* cells; a number on its left."""
    blank = " " * (width - display_width(text))
    return blank + text if is_number else text + blank


def _beginning(text: str, room: int) -> str:
    """Returns as much of the beginning of a text as fits into *room* cells."""
    ends = takewhile(lambda end: end <= room, accumulate(map(_cells, text)))
    return text[: sum(1 for _ in ends)]


def _cells(character: str) -> int:
    if unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
