"""A hash over everything ever committed: one link per commit.

    link = SHA-256(previous link, then for each row: header, kind, facts, stored body)

The header is fixed-width and holds the lengths of what follows it, so that no two
different rows give the same bytes. The first link follows the run's identity. Triggers
stop accidents; the chain shows edits, and its last link can be published.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import NamedTuple

from store.errors import CorruptLog

#: seq, ts_us, epoch, version, task, attempt, prev, encoding, body length, and the
#: lengths of kind, facts and stored body; absent numbers are -1, which no real one is.
_HEADER = struct.Struct("<12q")


class EventRow(NamedTuple):
    """An event as its table holds it, with the name of its kind."""

    seq: int
    ts_us: int
    epoch: int
    kind: str
    ver: int
    task: int | None
    attempt: int | None
    prev: int | None  #: the task's event before this one
    enc: int
    blen: int
    facts: bytes
    body: bytes | None  #: as stored


def genesis(run_id: str, config_sha256: bytes, created_us: int) -> bytes:
    """What the first link follows."""
    identity = f"siftlog\0{run_id}\0{created_us}\0".encode()
    return hashlib.sha256(identity + config_sha256).digest()


def link(previous: bytes, rows: Iterable[EventRow]) -> bytes:
    """The link of the commit that holds *rows*."""
    parts = [previous]
    # taken apart at once: a row is looked at a dozen times for each link it is in
    for (
        seq,
        ts_us,
        epoch,
        kind,
        ver,
        task,
        attempt,
        prev,
        enc,
        blen,
        facts,
        body,
    ) in rows:
        name = kind.encode()
        stored = body or b""
        parts += (
            _HEADER.pack(
                seq,
                ts_us,
                epoch,
                ver,
                -1 if task is None else task,
                -1 if attempt is None else attempt,
                -1 if prev is None else prev,
                enc,
                blen,
                len(name),
                len(facts),
                len(stored),
            ),
            name,
            facts,
            stored,
        )
    return hashlib.sha256(b"".join(parts)).digest()


def link_again(previous: bytes, stored: Iterable[EventRow]) -> bytes:
    """The link that rows should have which were read from a log.

    Raises:
        CorruptLog: one of them holds what no event does.
    """
    try:
        return link(previous, stored)
    except (struct.error, TypeError, AttributeError) as error:
        raise CorruptLog(
            f"the log holds a row that is no event ({error}): see 'siftlog verify', "
            "then restore a copy of the run's folder"
        ) from error
