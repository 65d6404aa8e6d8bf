"""Ways to damage a log that was closed in good order."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

PAGE = 8192


def _emptied(log: Path) -> None:
    log.write_bytes(b"")


def _cut(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: 5 * PAGE + 100])


def _not_sqlite(log: Path) -> None:
    log.write_bytes(b"\x1b[31mnot a log\n" * 1000)


def _foreign(log: Path) -> None:
    log.unlink()
    with closing(sqlite3.connect(log)) as db:
        db.execute("CREATE TABLE theirs(x)")
        db.commit()


def _newer_tables(log: Path) -> None:
    with closing(sqlite3.connect(log)) as db:
        db.execute("UPDATE run SET schema_ver = 99")
        db.commit()


def _zeroed(log: Path) -> None:
    """All pages but the first: the tables are known, and none can be read."""
    data = log.read_bytes()
    log.write_bytes(data[:PAGE] + bytes(len(data) - PAGE))


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "emptied": _emptied,
    "cut": _cut,
    "not a database": _not_sqlite,
    "another program's": _foreign,
    "of a later siftlog": _newer_tables,
    "zeroed": _zeroed,
}
"""Nothing of a log damaged so can be shown."""


def beheaded(log: Path) -> None:
    """The first event is gone."""
    with closing(sqlite3.connect(log)) as db:
        for (trigger,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("DELETE FROM event WHERE seq = 1")
        db.commit()


def scratched(data: bytes, chance: random.Random) -> bytes:
    """*data* with bits turned, a stretch overwritten, its end cut or a page blank."""
    damaged = bytearray(data)
    at = chance.randrange(100, len(data))
    match chance.randrange(4):
        case 0:
            for _ in range(chance.randint(1, 30)):
                damaged[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
        case 1:
            end = min(at + chance.randint(1, 4000), len(data))
            damaged[at:end] = chance.randbytes(end - at)
        case 2:
            del damaged[at:]
        case _:
            page = at // PAGE * PAGE
            damaged[page : page + PAGE] = bytes(min(PAGE, len(data) - page))
    return bytes(damaged)
