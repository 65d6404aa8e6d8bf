"""Has providers cancel what a cancelled run has open with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from runner.batch.endpoint import BatchEndpoint, Sought
from runner.errors import AttemptError, Expired
from store.batch_view import Batch, batches
from store.batches import BatchCancelled, BatchEnded, Outcome
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
        there = batches(reader)
    others = {batch.id for batch in there if batch.id is not None}
    for batch in there:
        endpoint = endpoints.get(batch.model)
        if not batch.is_open or endpoint is None:
            continue
        try:
            outcome = await _cancel(batch, endpoint, others)
        except AttemptError as error:
            tell(
                f"Batch {batch.id or batch.key} of {batch.model} may be open still, "
                f"cancel it at the provider: {error}"
            )
            continue
        await log.append(
            BatchCancelled(batch=batch.key, by=by),
            BatchEnded(batch=batch.key, outcome=outcome, requests=batch.requests),
        )


async def _cancel(
    batch: Batch, endpoint: BatchEndpoint, others: Collection[str]
) -> Outcome:
    """Cancel one batch, if the provider has it.

    Raises:
        AttemptError: it could not be cancelled, or not be found yet.
    """
    batch_id = batch.id
    if batch_id is None:
        search = await endpoint.find(
            Sought(
                key=batch.key,
                requests=batch.requests,
                prepared_us=batch.prepared_us,
                others=others,
            )
        )
        if not search.is_settled:
            raise Expired("its list does not tell yet which one it is")
        batch_id = search.id
    if batch_id is None:
        return "missing"
    await endpoint.cancel(batch_id)
    return "cancelled"
