"""Takes over what a provider has of a run whose log is lost: answers that are paid for.

A log that went with its disk knows no batches, but the provider has them still. The
ids of their items begin with the run's tag and end with the hash of what was asked, so
a call that asks the same, of the same run, may have that item's answer for its own.
Each item is claimed once: calls that ask alike are different samples.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from runner.batch.carrier import Setting
from runner.batch.endpoint import BatchEndpoint, Orphan
from runner.batch.ids import digest_of, request_of
from runner.clients.client import Left
from runner.engine.retry import RULES
from runner.errors import AttemptError


class Adoption:
    """The items that no log of the run knows, until calls have claimed them."""

    def __init__(
        self, endpoint: BatchEndpoint, setting: Setting, poll_s: float
    ) -> None:
        """Look at *endpoint*, every *poll_s* seconds while it does not tell yet."""
        self._endpoint = endpoint
        self._run = setting
        self._poll_s = poll_s
        self._begun_us = setting.clock.now_us()
        self._lock = asyncio.Lock()
        self._orphans: dict[str, deque[Orphan]] | None = None  #: by what was asked

    async def look(self, keys: Iterable[str]) -> None:
        """Find them, the first time.

        Args:
            keys: of the batches that are waited for, whose ids may not be known yet.

        Raises:
            Left: the process ends, or the key is refused.
        """
        async with self._lock:
            if self._orphans is None:
                # of a batch that was taken over, only some items may have been
                adopted = self._run.adopted
                whole = self._run.ids - adopted.keys()
                found = await self._found(whole.union(keys))
                self._orphans = {}
                for orphan in found:
                    if orphan.item in adopted.get(orphan.batch, ()):
                        continue
                    asked = request_of(orphan.item)
                    self._orphans.setdefault(asked, deque()).append(orphan)

    async def _found(self, known: AbstractSet[str]) -> Sequence[Orphan]:
        is_told = False
        while True:
            try:
                orphans = await self._endpoint.orphans(
                    self._run.tag, known=known, before_us=self._begun_us
                )
            except AttemptError as error:
                if RULES[type(error)].stops_endpoint:
                    raise Left(error) from error
                why = str(error)
            else:
                if orphans is not None:
                    self._tell(orphans)
                    return orphans
                why = "batches that are at work may be of this run"
            if not is_told:
                is_told = True
                self._run.tell(
                    f"Looking for batches of the run that its log lacks: {why}; "
                    "trying again."
                )
            await self._run.pause(self._poll_s)

    def _tell(self, orphans: Sequence[Orphan]) -> None:
        """Say what there is to be had."""
        if orphans:
            there = len({orphan.batch for orphan in orphans})
            self._run.tell(
                f"The provider has {len(orphans):,} requests of this run in {there} "
                "batches that its log lacks: what is asked alike takes their answers."
            )

    def claim(self, request: str) -> Orphan | None:
        """An item in which *request*, a hash in hex, was asked; each is given once."""
        left = (self._orphans or {}).get(digest_of(request))
        return left.popleft() if left else None
