"""Makes untrusted text safe for a terminal.

Model output and papers are untrusted: they can hold escape sequences that retitle a
window or copy to the clipboard, and invisible characters that reorder what is read.
Here each is replaced by a visible symbol. Markup of libraries is not escaped: callers
that use one must also turn it off.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import chain

#: Longer lines are cut: they may hang a terminal.
LINE = 2_000
#: Maximum characters shown of a text.
LIMIT = 200_000
_CUT = "…"
_TAB = " " * 4
#: Unicode's pictures of the C0 controls start here; DEL has its own.
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
