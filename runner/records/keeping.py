"""Inputs of a scoring that its log keeps, each under the hash of its content.

A gold file that is edited would take the scorings before with it. What is small is
therefore kept beside the event that records a scoring, once for all of them: a file as
a part of its hash, a folder as the list that its own hash is over, which names the
parts of its files.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from runner.fingerprint import files_of, listed
from store.errors import CorruptLog
from store.events import Blob, Input
from store.read.tasks import parts

LIMIT = 8 << 20
"""Bytes of the largest file, or folder, that is kept: gold, rubrics and aliases are
smaller, a corpus is not."""


def keep(inputs: Iterable[Input]) -> tuple[list[Input], tuple[Blob, ...]]:
    """The inputs as they are recorded, and the parts that hold the small ones.

    One that counts by what it says and not by its bytes is not kept, nor is one that
    has changed since its hash was taken.
    """
    noted: list[Input] = []
    blobs: dict[bytes, Blob] = {}
    for given in inputs:
        form, found = _contents(Path(given.path))
        if found and found[0].sha256.hex() == given.sha256:
            blobs |= {blob.sha256: blob for blob in found}
            noted.append(replace(given, kept=form))
        else:
            noted.append(given)
    return noted, tuple(blobs.values())


def _contents(path: Path) -> tuple[str, list[Blob]]:
    """The parts of a file or folder, that of its hash first; none if it is large."""
    files = files_of(path) if path.is_dir() else [path]
    if sum(file.stat().st_size for file in files) > LIMIT:
        return "", []
    blobs = [_blob(file.read_bytes()) for file in files]
    if not path.is_dir():
        return "file", blobs
    names = [file.relative_to(path).as_posix() for file in files]
    if any("\n" in name for name in names):
        return "", []  # a line of the list would not tell it from two files
    hashes = (blob.sha256.hex() for blob in blobs)
    return "folder", [_blob(listed(zip(names, hashes, strict=True))), *blobs]


def _blob(data: bytes) -> Blob:
    return Blob(sha256=hashlib.sha256(data).digest(), data=data)


def put_back(conn: sqlite3.Connection, given: Input, place: Path) -> Path:
    """Write an input that the log keeps into the empty folder *place*.

    Returns:
        Where it is now, under the name that it had.

    Raises:
        CorruptLog: the log does not hold what its event says.
    """
    target = place / (Path(given.path).name or "input")
    whole = _part(conn, given.sha256)
    if given.kept == "file":
        target.write_bytes(whole)
        return target
    target.mkdir()
    for line in whole.decode().split("\n")[:-1]:
        name, _, sha256 = line.partition("\0")
        file = target / name
        if not file.resolve().is_relative_to(target.resolve()):
            raise CorruptLog(
                f"the log keeps a file {name!r} that would lie outside of its folder; "
                "see 'siftlog verify'"
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_part(conn, sha256))
    return target


def _part(conn: sqlite3.Connection, sha256: str) -> bytes:
    found = parts(conn, [bytes.fromhex(sha256)])
    if not found:
        raise CorruptLog(
            f"the input part {sha256} is missing: see 'siftlog verify', then restore a "
            "copy of the run's folder"
        )
    (data,) = found.values()
    return data
