"""A promise that was not kept."""

from __future__ import annotations


class Broken(Exception):
    """An invariant that a simulated run violates.

    Attributes:
        invariant: its name, as the list in `design/simulation.md` has it.
    """

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant
