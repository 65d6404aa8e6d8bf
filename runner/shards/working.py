"""Does a shard's work: begins its log, or goes on with it."""

from __future__ import annotations

from collections.abc import Collection

from runner.control.ending import Ended
from runner.errors import UsageError
from runner.launching import launch
from runner.launching.shell import Shell
from runner.options import RunOptions
from runner.shards.agreeing import beginning, check_others
from runner.work import Work
from store.runs import RunFolder
from store.shard import Shard


async def work_on(
    folder: RunFolder,
    shard: Shard,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    own: Collection[str] = (),
) -> Ended:
    """Take a shard of a run to its end, from wherever its log stands.

    Args:
        folder: the shard's, of the run's folder.
        shard: which part.
        work: the run's job, settings and data.
        options: how calls are sent.
        shell: what surrounds the process.
        own: names of the limits that were given for this process.

    Raises:
        UsageError: it stops when something is decided, or is of another run.
        RunChanged: the run has other inputs.
        RunnerError: another process is at work on the same items.
    """
    if options.stopping is not None:
        raise UsageError(
            "--stop-when-decided looks at all answers of a run, and a shard has only "
            "its own: leave one of the two out."
        )
    launch.check_alive(folder)
    check_others(folder, shard, work, options)
    if beginning(folder) is None:
        return await launch.start(folder, work, options, shell, shard=shard)
    return await launch.resume(
        folder, work, options, shell, accept_changes=False, own=own
    )
