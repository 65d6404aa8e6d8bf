"""What every screen has that shows something alive."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Looking(Protocol):
    """A screen that is told when to look again; it owns no timer."""

    def look(self) -> None:
        """Look, and show what has changed."""
