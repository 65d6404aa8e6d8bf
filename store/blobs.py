"""Message parts in the log, each stored once under the hash of its content.

The system text, the 60 KB paper and the question of a prompt are parts of their own:
twenty questions about a paper store it once.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable

from store.codec import Packer
from store.events import Blob
from store.statements import SQL

#: Hashes remembered as stored, so that a paper asked about twenty times
#: is looked up once. Forgetting one costs a lookup, nothing else.
REMEMBERED = 8192


class BlobStore:
    """Writes the blobs that are not there yet; belongs to the writer's thread."""

    def __init__(self, conn: sqlite3.Connection, packer: Packer) -> None:
        self._conn = conn
        self._packer = packer
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def write(self, blobs: Iterable[Blob]) -> tuple[list[bytes], int]:
        """Store the new ones of *blobs* in the open transaction.

        Returns:
            The hashes now stored, to be given to `remember` once they are committed,
            and the bytes written.
        """
        fresh: dict[bytes, None] = {}
        rows = []
        size = 0
        for blob in blobs:
            if blob.sha256 in self._known:
                self._known.move_to_end(blob.sha256)
                continue
            if blob.sha256 in fresh:
                continue
            fresh[blob.sha256] = None
            if self._conn.execute(SQL["blob_known"], (blob.sha256,)).fetchone():
                continue
            encoding, data = self._packer.pack(blob.data)
            rows.append((blob.sha256, encoding, len(blob.data), data))
            size += len(data)
        if rows:
            self._conn.executemany(SQL["insert_blob"], rows)
        return list(fresh), size

    def remember(self, hashes: Iterable[bytes]) -> None:
        """Skip the lookup of these from now on: they are durable."""
        for sha256 in hashes:
            self._known[sha256] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
