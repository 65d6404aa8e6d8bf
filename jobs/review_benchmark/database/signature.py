"""The hash of all papers: two databases with one hash answer every question alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import sha256

import msgspec

from jobs.review_benchmark.database.statements import SQL


def content_hash(connection: sqlite3.Connection) -> str:
    """SHA-256 over the papers with their titles, in the order of their ids."""
    digest = sha256()
    titles = _Titles(connection.execute(SQL["titles"]))
    for row in connection.execute(SQL["papers"]):
        digest.update(msgspec.json.encode((*row, titles.of(row[0]))))
    return digest.hexdigest()


class _Titles:
    """Titles by paper, from rows in the order of papers; one paper's are held."""

    def __init__(self, rows: Iterator[tuple[int, str]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, paper: int) -> list[str]:
        """The titles of a paper; papers are asked for in order."""
        found = []
        while self._next is not None and self._next[0] == paper:
            found.append(self._next[1])
            self._next = next(self._rows, None)
        return found
