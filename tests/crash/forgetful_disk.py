"""A disk in memory that forgets what was not synced, as an SQLite VFS.

For every file it keeps the content at the last sync and the writes since. A power cut
may then leave any of them out, or tear one: `Image.after_cut` draws what is left.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import apsw

Cut: TypeAlias = Literal["drop", "subset", "torn"]
CUTS: tuple[Cut, ...] = ("drop", "subset", "torn")


@dataclass(frozen=True, slots=True)
class Write:
    """One write since the last sync; `data` None: the file was cut to `offset`."""

    offset: int
    data: bytes | None

    def onto(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.offset :]
            return
        if len(content) < self.offset:
            content.extend(bytes(self.offset - len(content)))
        content[self.offset : self.offset + len(self.data)] = self.data


@dataclass(slots=True)
class File:
    """A file as programs see it, and as much of it as a cut cannot take away."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes | None = None  #: None: not even the file's name is safe
    pending: list[Write] = field(default_factory=list)

    def write(self, write: Write) -> None:
        write.onto(self.content)
        self.pending.append(write)

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.pending.clear()


@dataclass(frozen=True, slots=True)
class Image:
    """The disk at one moment."""

    files: dict[str, tuple[bytes | None, tuple[Write, ...]]]

    def after_cut(self, folder: Path, cut: Cut, chance: random.Random) -> None:
        """Write into *folder* what a power cut at this moment could leave."""
        for name, (durable, pending) in sorted(self.files.items()):
            kept = _kept(pending, cut, chance)
            if durable is None and not kept:
                continue
            content = bytearray(durable or b"")
            for write in kept:
                write.onto(content)
            (folder / Path(name).name).write_bytes(content)


def _kept(pending: Sequence[Write], cut: Cut, chance: random.Random) -> Iterable[Write]:
    if cut == "drop" or not pending:
        return []
    if cut == "subset":
        return [write for write in pending if chance.random() < 0.5]
    last = chance.randrange(len(pending))
    torn = pending[last]
    if torn.data is not None:
        torn = Write(torn.offset, torn.data[: chance.randrange(len(torn.data) + 1)])
    return [*pending[:last], torn]


class Disk(apsw.VFS):
    """The file system; `watch` is told before every write and sync."""

    def __init__(self, name: str, watch: Callable[[], None]) -> None:
        self.files: dict[str, File] = {}
        self.watch = watch
        super().__init__(name, base="")

    def image(self) -> Image:
        return Image(
            {
                name: (file.durable, tuple(file.pending))
                for name, file in self.files.items()
            }
        )

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - SQLite's names
        return name

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: ARG002, N802
        return name in self.files

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: ARG002, N802
        self.files.pop(name, None)

    def xOpen(self, name: Any, flags: list[int]) -> _Handle:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        flags[1] = flags[0]
        return _Handle(self.files.setdefault(path, File()), self.watch)

    def open_slots(self, path: Path) -> Slots:
        """The sidecar of a log on this disk."""
        return Slots(self.files.setdefault(str(path), File()), self.watch)


class Slots:
    """The file of a sidecar: what is written to it and not synced may be forgotten."""

    def __init__(self, file: File, watch: Callable[[], None]) -> None:
        self._file = file
        self._watch = watch

    def write(self, offset: int, data: bytes) -> None:
        self._watch()
        self._file.write(Write(offset, data))

    def sync(self) -> None:
        self._watch()
        self._file.sync()

    def close(self) -> None:
        pass


class _Handle:
    """An open file, in the form apsw asks for; one process, so locks always hold."""

    def __init__(self, file: File, watch: Callable[[], None]) -> None:
        self._file = file
        self._watch = watch

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._file.content[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._watch()
        self._file.write(Write(offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._watch()
        self._file.write(Write(size, None))

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        self._watch()
        self._file.sync()

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._file.content)

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        # as SQLite's own file system for Unix says of itself
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: ARG002, N802
        return False

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xClose(self) -> None:  # noqa: N802
        pass


class ApswConnection:
    """As much of `sqlite3.Connection` as the writer uses, over apsw.

    `replaced` maps statements to others, so that a test can say "the same writer, but
    with synchronous=NORMAL".
    """

    def __init__(self, path: Path, vfs: str, replaced: dict[str, str]) -> None:
        self._conn = apsw.Connection(str(path), vfs=vfs)
        # one connection, so that no shared memory is needed
        self._conn.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._replaced = replaced

    @property
    def in_transaction(self) -> bool:
        return self._conn.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        try:
            return self._conn.execute(self._replaced.get(sql, sql), parameters)
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any:
        try:
            return self._conn.executemany(sql, rows)
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error

    def close(self) -> None:
        self._conn.close()
