"""Which names a bundle's members may have: the same rule for making and for reading."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

LONGEST: Final = 255
"""Bytes of a part of a name: what file systems take."""

DEEPEST: Final = 40
"""Parts of a name."""

_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, halves of characters, and ends of lines."""

_RULES: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (
    (
        lambda name: any(unicodedata.category(c) in _UNSEEN for c in name),
        "holds a character that cannot be shown",
    ),
    (
        lambda name: "\\" in name,
        "holds a backslash, which some systems take for a folder's end",
    ),
    (
        lambda name: name.startswith("/") or name[1:2] == ":",
        "is an absolute path",
    ),
    (lambda name: ".." in name.split("/"), "leads out of the folder"),
    (lambda name: bool({"", "."} & {*name.split("/")}), "is not the name of a file"),
    (
        lambda name: (
            name.count("/") >= DEEPEST
            or any(len(part.encode()) > LONGEST for part in name.split("/"))
        ),
        "is too long",
    ),
)
"""What a name may not be, and what is said of one that is; the first counts."""


def problem(name: str) -> str | None:
    """Why a member may not be called so; None where it may.

    A good name leads to one file below the folder that it is unpacked into, on every
    system.
    """
    return next((said for is_broken, said in _RULES if is_broken(name)), None)
