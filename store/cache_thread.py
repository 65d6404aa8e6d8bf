"""The response cache as a run holds it open: on a thread of its own.

The cache's disk may be slow, and other processes may make it wait; the run's event loop
does neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from store import cache
from store.cache import CachedReply, CacheEntry
from store.committer import WriterThread


class CacheThread:
    """A connection to `cache.db`, used from an event loop."""

    def __init__(self, thread: WriterThread) -> None:
        self._thread = thread

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open the cache at *path*, or make it.

        Raises:
            CacheUnusable: it cannot be made or opened, or is something else.
        """
        # tried beforehand: aiosqlite's thread may outlive the loop if its first word
        # is an error
        await asyncio.to_thread(_try, path)
        thread = WriterThread(lambda: cache.connect(path))
        try:
            await thread
        except BaseException:
            await thread.close()
            raise
        return cls(thread)

    async def find(self, keys: Iterable[bytes]) -> dict[bytes, CachedReply]:
        """The replies under *keys*, as far as they are there.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        return await self._thread.run(cache.find, keys)

    async def write(
        self, entries: Sequence[CacheEntry], used: Mapping[bytes, int], now_us: int
    ) -> None:
        """Keep *entries*, and count how often others were *used*.

        A cancelled caller's entries may be written all the same.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        await self._thread.run(cache.write, entries, used, now_us)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        await self._thread.close()


def _try(path: Path) -> None:
    cache.connect(path).close()
