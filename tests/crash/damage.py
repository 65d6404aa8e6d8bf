"""Ways to damage a log: one that was closed in good order, or one that was not."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PAGE = 16384
BLOCK = 4096
"""Of the disk."""


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


@dataclass(frozen=True, slots=True)
class Damage:
    """What happens to the files of a log whose process was killed."""

    target: str  #: "database", "WAL" or "both"
    how: str  #: a key of `HARMS`
    seed: int

    def do(self, log: Path) -> bool:
        """Do it; False where there is nothing to be damaged."""
        wal = log.with_name(f"{log.name}-wal")
        files = {"database": [log], "WAL": [wal], "both": [log, wal]}[self.target]
        chance = random.Random(self.seed)
        if not all(file.exists() and file.stat().st_size for file in files):
            return False
        for file in files:
            HARMS[self.how](file, chance)
        return True


def _flip(file: Path, chance: random.Random, times: int = 1) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(times):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def _flips(file: Path, chance: random.Random) -> None:
    _flip(file, chance, chance.randint(2, 30))


def _truncate(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def _blank(file: Path, chance: random.Random) -> None:
    """A block of the disk reads as zeros."""
    data = bytearray(file.read_bytes())
    at = chance.randrange(len(data)) // BLOCK * BLOCK
    end = min(at + BLOCK, len(data))
    data[at:end] = bytes(end - at)
    file.write_bytes(data)


def _delete(file: Path, _chance: random.Random) -> None:
    file.unlink()


HARMS: Mapping[str, Callable[[Path, random.Random], None]] = {
    "bit flipped": _flip,
    "bits flipped": _flips,
    "cut short": _truncate,
    "block blank": _blank,
    "deleted": _delete,
}


def damages(count: int, seed: int) -> list[Damage]:
    """Damages of all kinds; a file is deleted once, for no chance is in that."""
    chance = random.Random(seed)
    targets = ("database", "WAL", "both")
    hows = [how for how in HARMS if how != "deleted"]
    found = [Damage(target, "deleted", 0) for target in targets][:count]
    return found + [
        # the WAL more often: its damage leaves a sound database
        Damage(
            chance.choice(("database", "WAL", "WAL", "both")),
            chance.choice(hows),
            chance.getrandbits(32),
        )
        for _ in range(count - len(found))
    ]
