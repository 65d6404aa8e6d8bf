"""What every screen has that is about some of the tasks of a run."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Aiming(Protocol):
    """A screen that can say which tasks a retry would be about."""

    @property
    def aim(self) -> str:
        """A filter; empty: the failed ones."""
        ...
