"""What screens can be asked by the application, which knows few of them by name."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Looking(Protocol):
    """A screen that is told when to look again; it owns no timer."""

    def look(self) -> None:
        """Look, and show what has changed."""


@runtime_checkable
class Filtering(Protocol):
    """A screen that can be told what to let through."""

    def filter_by(self, expression: str) -> None:
        """Let through what an expression of `store.query` does."""

    def open_task(self, number: int) -> None:
        """Show one of them."""
