"""What differs between two texts, line by line; pure, and bounded."""

from __future__ import annotations

from difflib import unified_diff
from types import MappingProxyType

MOST = 5_000
"""Lines of either text that are compared: the time grows with their product."""

TONES = MappingProxyType({"+": "added", "-": "removed", "@": "dim"})
"""The colours of a difference's lines, by the sign that each begins with."""


def difference(before: str, after: str) -> str:
    """Both texts as one: `-` was, `+` is, with three lines around each change."""
    old, new = before.split("\n"), after.split("\n")
    lines = unified_diff(old[:MOST], new[:MOST], lineterm="")
    # the first two name files, of which there are none
    said = [line for number, line in enumerate(lines) if number > 1]
    if max(len(old), len(new)) > MOST:
        said.append(f"… only the first {MOST:,} lines are compared")
    return "\n".join(said)
