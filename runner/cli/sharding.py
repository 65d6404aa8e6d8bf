"""Split runs on the command line: a shard of one, or what is left of all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from runner.cli import session
from runner.cli.detaching import Leave
from runner.cli.speech import tell
from runner.control.ending import Ended
from runner.errors import UsageError
from runner.launching.shell import Shell
from runner.options import RunOptions
from runner.shards.part import Shipping, shard_of
from runner.shards.working import work_on
from runner.work import Work
from store.runs import RunFolder
from store.segments.place import Place, address_of
from store.slices import Shard

ALONE = "0/1"
"""The shard that is all of a run."""


def is_part(given: Mapping[str, Any]) -> bool:
    """Whether a process takes a part of a run, named or all of it.

    Raises:
        UsageError: a part is named, and somebody to place all parts; or how many parts
            there are, and nobody to place them.
    """
    if given["engine"] is not None:
        if given.get("shard") is not None:
            raise UsageError(
                "--engine starts all shards of a run, and --shard is one of them: "
                "leave one of the two out."
            )
        return False
    if given.get("shards") is not None:
        raise UsageError(
            "--shards is how many an --engine places: name one, or take a part of the "
            "run with --shard i/n."
        )
    return any(given.get(name) for name in ("shard", "local_dir", "ship"))


def run_part(
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
    shard = shard_of(given.get("shard") or ALONE)
    if given["run_id"] is None:
        raise UsageError(
            "A run that is split, or shipped, needs --run-id: all its shards are "
            "started with the same one, now and later."
        )
    if "rate_share" not in options.model_fields_set:
        options = options.model_copy(update={"rate_share": shard.count})
    place = given["local_dir"] or given["runs_dir"]
    folder = session.new_folder({**given, "runs_dir": place}, work.job)
    shell = session.shell(given, folder, work, leave, shard=shard)
    ended = _worked(folder, shard, work, options, shell, given)
    own = folder.shard(shard.index, shard.count)
    code = session.end(own, work, ended, given, scores=False)
    end = "has ended" if ended.outcome == "finished" else "has stopped"
    tell(
        f"Shard {shard} of run {folder.run_id} {end}; see all of them with: "
        f"{_seen_whole(folder.run_id, given)}"
    )
    if ended.outcome == "futility" and ended.why is not None:
        # last: whoever places shards goes by that, and does not place it again
        tell(ended.why)
    return code


def _seen_whole(run: str, given: Mapping[str, Any]) -> str:
    """The commands that see a run of which one shard has been at work."""
    if given["ship"] is not None:
        return f"siftlog merge {run} --ship {given['ship']} && siftlog score {run}"
    where = given["local_dir"]
    option = "" if where is None else f" --runs-dir {where}"
    return f"siftlog status {run}{option}; score them with: siftlog score {run}{option}"


def resume_all(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    given: Mapping[str, Any],
    leave: Leave | None,
    *,
    accept_changes: bool,
    scores: bool,
) -> int:
    """Do what the shards of a run have left, in this process, and score the run.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent.
        given: the verb's options.
        leave: is called as it begins, where it is to leave the terminal.
        accept_changes: whether inputs and prompts may differ from what they were.
        scores: whether it is scored once it has ended.

    Raises:
        UsageError: its log is to lie elsewhere.
    """
    if given["local_dir"] is not None:
        raise UsageError(
            f"Run {folder.run_id} is resumed where it lies; to keep a log elsewhere "
            "start a shard of it: siftlog run JOB --run-id ID --shard 0/1 --local-dir "
            "DIR --ship DIR|URL"
        )
    tell(
        f"Run {folder.run_id} is split: what its shards have answered is taken over, "
        "and this process does all the rest."
    )
    shard = shard_of(ALONE)
    ended = _worked(
        folder,
        shard,
        work,
        options,
        session.shell(given, folder, work, leave, shard=shard),
        given,
        accept_changes=accept_changes,
    )
    folder.refresh()
    return session.end(folder, work, ended, given, scores=scores)


def _worked(
    folder: RunFolder,
    shard: Shard,
    work: Work,
    options: RunOptions,
    shell: Shell,
    given: Mapping[str, Any],
    *,
    accept_changes: bool = False,
) -> Ended:
    return asyncio.run(
        work_on(
            folder.shard(shard.index, shard.count),
            shard,
            work,
            options,
            shell,
            own=session.own_limits(given),
            shipping=_shipping(given),
            accept_changes=accept_changes,
            accept_loss=given["accept_loss"],
        )
    )


def _shipping(given: Mapping[str, Any]) -> Shipping | None:
    """Where a log is carried, if anywhere."""
    named = given.get("ship")
    if named is None:
        return None
    return Shipping(place=Place.of(address_of(named)), every_s=given["ship_every"])
