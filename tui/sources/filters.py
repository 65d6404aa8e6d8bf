"""Remembers the user's filters: recent ones, and starred ones.

They belong to the user and not to a run: they are stored in the user's state folder
(`XDG_STATE_HOME`), never in the folder of a run, which the monitor only reads.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from store.printable import printable

RECENT = 20
"""Maximum number of filters remembered without a star."""
_LONGEST = 500
"""Maximum characters of a remembered filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters as typed, the latest first."""

    starred: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()

    @property
    def offered(self) -> tuple[str, ...]:
        """All filters once, starred ones first."""
        return tuple(dict.fromkeys((*self.starred, *self.recent)))

    def used(self, expression: str) -> Filters:
        """Return the filters after one was used."""
        recent = tuple(dict.fromkeys((expression, *self.recent)))
        return replace(self, recent=recent[:RECENT])

    def turned(self, expression: str) -> Filters:
        """Return the filters after a star was set or removed."""
        if expression in self.starred:
            remaining = tuple(
                starred for starred in self.starred if starred != expression
            )
            return replace(self, starred=remaining)
        return replace(self, starred=(expression, *self.starred))


@dataclass
class FilterMemory:
    """Remembers filters while the monitor runs."""

    filters: Filters = field(default_factory=Filters)

    def use(self, expression: str) -> None:
        """Remember a filter."""
        if 0 < len(expression) <= _LONGEST:
            self.filters = self.filters.used(expression)

    def turn(self, expression: str) -> bool:
        """Set or remove a filter's star; return whether it has one now."""
        if 0 < len(expression) <= _LONGEST:
            self.filters = self.filters.turned(expression)
        return expression in self.filters.starred


class FilterFile(FilterMemory):
    """Remembers filters in a file too; the last write of two monitors wins."""

    def __init__(self, path: Path) -> None:
        """Read *path*, if it exists."""
        super().__init__(_read(path))
        self._path = path

    def use(self, expression: str) -> None:
        """Remember a filter."""
        self.filters = _read(self._path, self.filters)
        super().use(expression)
        self._write()

    def turn(self, expression: str) -> bool:
        """Set or remove a filter's star; return whether it has one now."""
        self.filters = _read(self._path, self.filters)
        is_starred = super().turn(expression)
        self._write()
        return is_starred

    def _write(self) -> None:
        contents = {"starred": self.filters.starred, "recent": self.filters.recent}
        fresh = self._path.with_suffix(f".{os.getpid()}")
        # write errors are ignored: the history is still in memory
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(contents, indent=2), encoding="utf-8")
            fresh.replace(self._path)


_NONE = Filters()


def _read(path: Path, otherwise: Filters = _NONE) -> Filters:
    """Read a file; return *otherwise* if it is unreadable."""
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        starred, recent = (_texts(contents[name]) for name in ("starred", "recent"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return otherwise
    return Filters(starred=starred, recent=recent[:RECENT])


def _texts(stored: object) -> tuple[str, ...]:
    texts = stored if isinstance(stored, list) else []
    # the file is untrusted: unsafe text must not reach the terminal
    return tuple(
        text
        for text in texts
        if isinstance(text, str) and text and text == printable(text)
    )
