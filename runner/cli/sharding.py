"""`siftlog run JOB --shard i/n`: from typed words to a shard that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from runner.cli import session
from runner.cli.detaching import Leave
from runner.cli.speech import tell
from runner.errors import UsageError
from runner.options import RunOptions
from runner.shards.agreeing import name_of
from runner.shards.part import Shipping, shard_of
from runner.shards.working import work_on
from runner.work import Work
from store.limit_words import UNITS
from store.segments.place import Place


def run_shard(
    work: Work, options: RunOptions, given: Mapping[str, Any], leave: Leave | None
) -> int:
    """Do a shard's work; its exit code goes by its own tasks.

    Args:
        work: the run's job, settings and data.
        options: how calls are sent.
        given: the verb's options.
        leave: is called as the shard begins, where it is to leave the terminal.

    Raises:
        UsageError: the shard, or the run that it is of, is not named as it must be.
    """
    shard = shard_of(given["shard"])
    if given["run_id"] is None:
        raise UsageError(
            "--shard needs --run-id: all shards of a run are started with the same one."
        )
    if "rate_share" not in options.model_fields_set:
        options = options.model_copy(update={"rate_share": shard.count})
    place = given["local_dir"] or given["runs_dir"]
    whole = session.new_folder({**given, "runs_dir": place}, work.job)
    folder = whole.shard(shard.index, shard.count)
    shell = session.shell(given, folder, work, leave)
    ended = asyncio.run(
        work_on(
            folder,
            shard,
            work,
            options,
            shell,
            own=[name for name in UNITS if given[name] is not None],
            shipping=shipping(given),
        )
    )
    code = session.end(folder, work, ended, given, scores=False)
    run = folder.run_id
    tell(
        f"{name_of(shard)} of run {run} has ended; see all of them with: siftlog "
        f"status {run}; score them together with: siftlog score {run}"
    )
    return code


def shipping(given: Mapping[str, Any]) -> Shipping | None:
    """Where a log is carried, if anywhere."""
    if given["ship"] is None:
        return None
    return Shipping(place=Place.of(given["ship"]), every_s=given["ship_every"])
