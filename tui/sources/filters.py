"""The filters that a person has used: the last ones, and those with a star.

They are the person's and not a run's: they lie in the folder for a user's state
(`XDG_STATE_HOME`), and never in the folder of a run, which the monitor only reads.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from store.printable import printable

RECENT = 20
"""Filters that are remembered without a star."""
_LONGEST = 500
"""Characters of a filter that is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters as they were typed, the latest first."""

    starred: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()

    @property
    def offered(self) -> tuple[str, ...]:
        """All of them, each once, those with a star first."""
        return tuple(dict.fromkeys((*self.starred, *self.recent)))

    def used(self, expression: str) -> Filters:
        """After a filter was used."""
        recent = tuple(dict.fromkeys((expression, *self.recent)))
        return replace(self, recent=recent[:RECENT])

    def turned(self, expression: str) -> Filters:
        """After a filter was given its star, or lost it."""
        if expression in self.starred:
            remaining = tuple(
                starred for starred in self.starred if starred != expression
            )
            return replace(self, starred=remaining)
        return replace(self, starred=(expression, *self.starred))


@dataclass
class FilterMemory:
    """Remembers filters as long as the monitor is there."""

    filters: Filters = field(default_factory=Filters)

    def use(self, expression: str) -> None:
        """Remember a filter."""
        if 0 < len(expression) <= _LONGEST:
            self.filters = self.filters.used(expression)

    def turn(self, expression: str) -> bool:
        """Give a filter its star or take it away; whether it has one now."""
        if 0 < len(expression) <= _LONGEST:
            self.filters = self.filters.turned(expression)
        return expression in self.filters.starred


class FilterFile(FilterMemory):
    """Remembers them in a file as well; of two monitors the later word counts."""

    def __init__(self, path: Path) -> None:
        """What *path* remembers; where it is not there, nothing yet."""
        super().__init__(_read(path))
        self._path = path

    def use(self, expression: str) -> None:
        """Remember a filter."""
        self.filters = _read(self._path, self.filters)
        super().use(expression)
        self._write()

    def turn(self, expression: str) -> bool:
        """Give a filter its star or take it away; whether it has one now."""
        self.filters = _read(self._path, self.filters)
        is_starred = super().turn(expression)
        self._write()
        return is_starred

    def _write(self) -> None:
        contents = {"starred": self.filters.starred, "recent": self.filters.recent}
        fresh = self._path.with_suffix(f".{os.getpid()}")
        # a history is no reason to disturb anybody: it is kept in memory all the same
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(contents, indent=2), encoding="utf-8")
            fresh.replace(self._path)


_NONE = Filters()


def _read(path: Path, otherwise: Filters = _NONE) -> Filters:
    """What a file remembers; *otherwise* where it cannot be read."""
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        starred, recent = (_texts(contents[name]) for name in ("starred", "recent"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return otherwise
    return Filters(starred=starred, recent=recent[:RECENT])


def _texts(stored: object) -> tuple[str, ...]:
    texts = stored if isinstance(stored, list) else []
    # a file that somebody else wrote is no way into a terminal either
    return tuple(
        text
        for text in texts
        if isinstance(text, str) and text and text == printable(text)
    )
