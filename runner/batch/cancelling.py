"""Has providers cancel what a cancelled run has open with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runner.batch.endpoint import BatchEndpoint
from runner.errors import AttemptError
from store.batch_view import batches
from store.batches import BatchCancelled, BatchEnded
from store.log import Log
from store.runs import RunFolder
from store.views import open_reader


async def cancel_batches(
    folder: RunFolder,
    log: Log,
    endpoints: Mapping[str, BatchEndpoint],
    by: str,
    tell: Callable[[str], None],
) -> None:
    """Ask for the end of every open batch; say which could not be reached.

    Args:
        folder: the run's.
        log: the run's.
        endpoints: where batches are, by model.
        by: who cancels.
        tell: takes a sentence for people.
    """
    with open_reader(folder.log) as reader:
        still_open = [batch for batch in batches(reader) if batch.is_open]
    for batch in still_open:
        if batch.id is None or batch.model not in endpoints:
            tell(
                f"Batch {batch.key} of {batch.model} may be at the provider, who gave "
                "no id for it: look there, and cancel it by hand."
            )
            continue
        try:
            await endpoints[batch.model].cancel(batch.id)
        except AttemptError as error:
            tell(f"Batch {batch.id} was not cancelled, do so by hand: {error}")
            continue
        await log.append(
            BatchCancelled(batch=batch.key, by=by),
            BatchEnded(batch=batch.key, outcome="cancelled", requests=batch.requests),
        )
