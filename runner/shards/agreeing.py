"""Whether a shard may begin: it is of the same run as the others, and in nobody's way.

Only the logs of this folder tell who is at work: what runs on other machines is kept
apart by whoever started it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from runner.errors import RunnerError, UsageError
from runner.launching.changes import check_inputs
from runner.options import RunOptions
from runner.roles import assigned
from runner.shards.others import beginning
from runner.work import Work
from store.events import RunStarted
from store.runs import RunFolder
from store.segments.place import Place
from store.segments.source import sources
from store.slices import Shard, Slices


def check_others(
    own: RunFolder,
    shard: Shard,
    work: Work,
    options: RunOptions,
    *,
    accept_changes: bool,
) -> None:
    """Compare a shard with the others of its run, and with what it was itself.

    Raises:
        RunChanged: they have other inputs.
        UsageError: they ask something else, or the run is not split.
        RunnerError: one of them is at work on the same slices.
    """
    whole = own.whole
    before = beginning(whole)
    if before is not None and before.shard is None:
        raise UsageError(
            f"Run {own.run_id} is not split: go on with siftlog resume {own.run_id}, "
            "or choose another --run-id."
        )
    for other in own.shards():
        first = beginning(other)
        if first is None:
            continue
        if not accept_changes:
            check_same(other.log, first, work, options)
        if first.shard is None or other == own or not other.is_alive():
            continue
        shared = Slices.parse(shard.slices) & Slices.parse(first.shard.slices)
        if shared:
            raise RunnerError(
                f"Shard {first.shard} of run {own.run_id} is at work on "
                f"{len(shared)} slices of Shard {shard}: wait until it ends, or end "
                f"it with siftlog drain {own.run_id}."
            )


def check_same(log: Path, first: RunStarted, work: Work, options: RunOptions) -> None:
    """Compare a shard with the beginning of another log of its run.

    Raises:
        RunChanged: it has other inputs.
        UsageError: it asks something else.
    """
    models = {role: tuple(named) for role, named in first.models.items()}
    settings = _without_inputs(json.loads(first.settings), first)
    now = _without_inputs(json.loads(work.settings_json), first)
    differs = {
        "job": first.job != work.job.name,
        "models": models != assigned(work.job, options).models,
        "replicates": first.replicates != options.replicates,
        **{name: settings.get(name) != now.get(name) for name in {**settings, **now}},
    }
    wrong = next((name for name, is_other in differs.items() if is_other), None)
    if wrong is not None:
        raise UsageError(
            f"{log} was begun with another {wrong!r}: the shards of a run ask "
            "the same of different items; type what it was, or choose another --run-id."
        )
    check_inputs(first, work)


def check_place(place: Place, run_id: str) -> None:
    """See that a place takes the logs of a run, before anything is paid for.

    Raises:
        PlaceAway: it takes none.
        UsageError: it holds those of another run, and both would be spoiled.
    """
    place.prove()
    held = {source.identity.run_id for source in sources(place)}
    if held - {run_id}:
        raise UsageError(
            f"{place.address} holds the logs of run {min(held - {run_id})}: name "
            f"another --ship for run {run_id}, each run has a place of its own."
        )


def _without_inputs(
    settings: Mapping[str, object], first: RunStarted
) -> dict[str, object]:
    """Settings but for the names of files, which differ from machine to machine."""
    named = {each.setting for each in first.inputs}
    return {name: value for name, value in settings.items() if name not in named}
