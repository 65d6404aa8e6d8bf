"""What every screen has that shows something alive."""

from __future__ import annotations

from abc import abstractmethod

from textual.screen import Screen


class LookingScreen(Screen[None]):
    """A screen that is told when to look again; it owns no timer."""

    @abstractmethod
    def look(self) -> None:
        """Look, and show what has changed."""
