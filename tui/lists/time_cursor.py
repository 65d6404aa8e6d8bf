"""The minute of a run that is read off its charts, whatever their columns are. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tui.sources.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCursor:
    """Stands on a minute, or follows the present: the last column, whichever it is."""

    minute: int | None = None  #: since 1970 UTC; None: it follows the present

    def position(self, history: History) -> int | None:
        """The column that it is on; None: the last."""
        columns = history.columns
        if self.minute is None or not columns:
            return None
        position = (self.minute - columns[0].first) // history.width
        return max(0, min(len(columns) - 1, position))

    def put(self, history: History, position: int) -> TimeCursor:
        """On a column; past the last one it follows the present."""
        columns = history.columns
        if not columns:
            return self
        is_past = position >= len(columns)
        return TimeCursor(minute=None if is_past else columns[max(0, position)].first)

    def moved(self, history: History, by: int) -> TimeCursor:
        """Some columns earlier or later."""
        position, last = self.position(history), len(history.columns) - 1
        return self.put(history, by + (last if position is None else position))
