"""Has providers cancel what a cancelled run has open with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from runner.batch.endpoint import BatchEndpoint, Sought
from runner.errors import AttemptError, Expired
from store.clock import Clock
from store.database import open_reader
from store.events import BatchCancelled, BatchEnded, BatchOutcome
from store.log.interface import Log
from store.read.usage import RecordedBatch, batches
from store.runs import RunFolder

LOOKS_S: Final = 5.0
"""Between two looks for a batch that nobody was told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelling:
    """How the batches of a cancelled run are ended."""

    folder: RunFolder
    log: Log
    clock: Clock
    endpoints: Mapping[str, BatchEndpoint]  #: where batches are, by model
    settle_s: float  #: what is not shown for so long is not there
    tell: Callable[[str], None]  #: takes a sentence for people

    async def cancel(self, by: str) -> None:
        """Ask for the end of every open batch; say which could not be reached.

        Args:
            by: who cancels.
        """
        with open_reader(self.folder.log) as reader:
            there = batches(reader)
        others = {batch.id for batch in there if batch.id is not None}
        # all of them were sent before this, if they were: one time holds for all
        settled_at = self.clock.monotonic() + self.settle_s
        for batch in there:
            endpoint = self.endpoints.get(batch.model)
            if not batch.is_open or endpoint is None:
                continue
            try:
                batch_id = batch.id
                if batch_id is None:
                    batch_id = await self._find(batch, endpoint, others, settled_at)
                if batch_id is not None:
                    await endpoint.cancel(batch_id)
            except AttemptError as error:
                self.tell(
                    f"Batch {batch.id or batch.key} of {batch.model} may be open "
                    f"still, cancel it at the provider: {error}"
                )
                continue
            outcome: BatchOutcome = "missing" if batch_id is None else "cancelled"
            await self.log.append(
                BatchCancelled(batch=batch.key, by=by),
                BatchEnded(batch=batch.key, outcome=outcome, requests=batch.requests),
            )

    async def _find(
        self,
        batch: RecordedBatch,
        endpoint: BatchEndpoint,
        others: Collection[str],
        settled_at: float,
    ) -> str | None:
        """The id of a batch that nobody was told of; None: the provider has it not.

        Raises:
            AttemptError: the provider does not say.
        """
        sought = Sought(
            key=batch.key,
            requests=batch.requests,
            prepared_us=batch.prepared_us,
            others=others,
        )
        is_told = False
        while True:
            # first, so that the last look begins when all is settled
            now = self.clock.monotonic()
            search = await endpoint.find(sought)
            if not search.is_settled:
                raise Expired("its list does not tell yet which one it is")
            if search.id is not None or now >= settled_at:
                return search.id
            if not is_told:
                is_told = True
                self.tell(
                    f"Batch {batch.key} is not in the provider's list, which may lag "
                    f"behind: looking again for {settled_at - now:.0f} seconds."
                )
            await self.log.heartbeat()
            await self.clock.sleep_until(min(now + LOOKS_S, settled_at))
