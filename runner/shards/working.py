"""Does a shard's work: begins its log, or goes on with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from runner.control.ending import Ended
from runner.control.listen import waiting
from runner.errors import UsageError
from runner.launching import launch
from runner.launching.shell import Shell
from runner.options import RunOptions
from runner.shards.agreeing import check_others, check_same
from runner.shards.carrying import reach
from runner.shards.others import beginning, others
from runner.shards.part import Part, Shipping
from runner.work import Work
from store.runs import RunFolder
from store.slices import Shard


async def work_on(
    folder: RunFolder,
    shard: Shard,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    own: Collection[str] = (),
    shipping: Shipping | None = None,
    accept_changes: bool = False,
    accept_loss: bool = False,
) -> Ended:
    """Take a shard of a run to its end, from wherever its log stands.

    Args:
        folder: the shard's, of the run's folder.
        shard: which part.
        work: the run's job, settings and data.
        options: how calls are sent.
        shell: what surrounds the process.
        own: names of the limits that were given for this process.
        shipping: where its log is carried; None: it stays where it is.
        accept_changes: whether inputs and prompts may differ from what they were.
        accept_loss: whether it goes on although acknowledged events are missing, here
            or in a log with some of the same items.

    Raises:
        UsageError: it stops when something is decided, or is of another run, or what
            is in the place is.
        PlaceAway: nothing can be kept in the place.
        RunChanged: the run has other inputs.
        EventsLost: such events are missing, and that was not accepted.
        RunnerError: another process is at work on the same items.
    """
    if options.stopping is not None:
        raise UsageError(
            "--stop-when-decided looks at all answers of a run, and a shard has only "
            "its own: leave one of the two out."
        )
    launch.check_alive(folder)
    check_others(folder, shard, work, options, accept_changes=accept_changes)
    place = None if shipping is None else shipping.place
    if place is not None:
        is_placed = shell.broker is not None
        await reach(place, folder.run_id, shell.clock, patient=is_placed)
    found = await others(
        folder, shard, place, shell.clock, shell.tell, accept_loss=accept_loss
    )
    if found.first is not None and not accept_changes:
        check_same(folder.whole.log, found.first, work, options)
    first = beginning(folder)
    if first is None:
        launch.check_cancelled(folder.whole, found.state)
    known = {each.budget_usd for each in (first, found.first) if each is not None}
    if options.budget is None or options.budget in known:
        # the words of a submission are repeated; the cap may have been raised since
        cap_usd = found.cap_usd if first is None else None
        options = options.model_copy(update={"budget": cap_usd})
    if first is None:
        later = _retries(folder.whole)
        found = replace(found, settled=found.settled | later)
        part = Part(shard=shard, shipping=shipping, others=found)
        ended = await launch.start(folder, work, options, shell, part=part)
        if later and ended.outcome == "finished":
            # what is to be asked again had to be taken over first
            ended = await work_on(
                folder,
                shard,
                work,
                options,
                shell,
                own=own,
                shipping=shipping,
                accept_changes=accept_changes,
                accept_loss=accept_loss,
            )
    else:
        part = Part(shard=shard, shipping=shipping, others=found)
        ended = await launch.resume(
            folder,
            work,
            options,
            shell,
            accept_changes=accept_changes,
            accept_loss=accept_loss,
            own=own,
            part=part,
        )
    if found.known is not None and found.known.refused:
        shell.tell(
            f"{found.known.refused:,} answers of the run are to other requests than "
            "are sent now: these tasks were asked again."
        )
    return ended


def _retries(run: RunFolder) -> frozenset[str]:
    """Requests to ask tasks of a run again that none of its logs has answered."""
    if not run.log.exists():
        return frozenset()
    return frozenset(each.id for each in waiting(run) if each.kind == "retry")
