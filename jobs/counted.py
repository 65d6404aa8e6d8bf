"""How many of what, in words."""

from __future__ import annotations


def counted(n: int, noun: str, many: str = "") -> str:
    """`1 sentence`, `2 sentences`; *many* where it is not made by an s."""
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"
