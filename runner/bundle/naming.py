"""Which names a bundle's members may have: the same rule for making and for reading."""

from __future__ import annotations

import unicodedata
from typing import Final

LONGEST: Final = 255
"""Bytes of a part of a name: what file systems take."""

DEEPEST: Final = 40
"""Parts of a name."""

_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, halves of characters, and ends of lines."""


def problem(name: str) -> str | None:
    """Why a member may not be called so; None where it may.

    A good name leads to one file below the folder that it is unpacked into, on every
    system.
    """
    if any(unicodedata.category(c) in _UNSEEN for c in name):
        return "holds a character that cannot be shown"
    if "\\" in name:
        return "holds a backslash, which some systems take for a folder's end"
    if name.startswith("/") or name[1:2] == ":":
        return "is an absolute path"
    parts = name.split("/")
    if ".." in parts:
        return "leads out of the folder"
    if "" in parts or "." in parts:
        return "is not the name of a file"
    if len(parts) > DEEPEST or any(len(part.encode()) > LONGEST for part in parts):
        return "is too long"
    return None
