"""What goes into a bundle beside the log: files on this machine, by member."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from runner.bundle import archive, naming
from runner.bundle.manifest import SCORECARD, SCORES, Member
from runner.bundle.places import files
from runner.bundle.rebuilding import changed_inputs
from runner.errors import DatasetError, RunnerError
from runner.fingerprint import input_hashes
from runner.records.redrawing import redraw
from runner.records.reporting import REPORT
from runner.registry import load_job
from runner.settings import fitting
from store.events import ScoringRecorded
from store.runs import RunFolder


def inputs(job_name: str, recorded: ScoringRecorded) -> Mapping[str, Path]:
    """The files that the scoring read, by member, unchanged since.

    Raises:
        DatasetError: one is gone, or is another one.
    """
    job = load_job(job_name)
    for each in recorded.inputs:
        if not Path(each.path).exists():
            raise DatasetError(
                f"{each.path} ({each.setting}), which scoring {recorded.number} has "
                "read, is gone: put it back, or score the run with what there is."
            )
    settings = fitting(job, json.loads(recorded.settings))
    named = job.inputs(settings)
    found = files(settings, named)
    if changed := changed_inputs(recorded.inputs, input_hashes(named)):
        paths = {each.setting: each.path for each in recorded.inputs}
        raise DatasetError(
            f"{paths.get(changed[0], changed[0])} ({changed[0]}) is not what scoring "
            f"{recorded.number} has read: put that one back, or make a new scoring "
            "with siftlog score and bundle it."
        )
    return found


def scored(
    folder: RunFolder, recorded: ScoringRecorded, *, report: bool
) -> Mapping[str, Path]:
    """The files of a scoring, made again where they are gone.

    Args:
        folder: of the run.
        recorded: the scoring.
        report: draw its report too where it has none.

    Raises:
        RunnerError: its scorecard was changed, or cannot be made again.
    """
    made = folder.scores / str(recorded.number)
    if not made.exists() or (report and not (made / REPORT).exists()):
        redraw(folder, recorded)
    card = made / SCORECARD
    content = card.read_bytes() if card.is_file() else b""
    if hashlib.sha256(content).hexdigest() != recorded.digest:
        raise RunnerError(
            f"{card} is not what scoring {recorded.number} has written: remove its "
            "folder, and it is made again."
        )
    return {
        f"{SCORES}/{recorded.number}/{file.relative_to(made).as_posix()}": file
        for file in made.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def measured(
    sources: Mapping[str, Path], progress: Callable[[str], None]
) -> tuple[Member, ...]:
    """Size and hash of each file, by name.

    Raises:
        RunnerError: a file's name is one that no bundle takes.
    """
    members = []
    for name in sorted(sources):
        if wrong := naming.problem(name):
            raise RunnerError(
                f"The file {name!r} of a bundle {wrong}: call it otherwise, and score "
                "the run again."
            )
        digest, size = hashlib.sha256(), 0
        with sources[name].open("rb") as file:
            for piece in archive.pieces(file):
                digest.update(piece)
                size += len(piece)
                progress(f"{size / 1e6:,.0f} MB of {name} measured")
        members.append(Member(name=name, size=size, sha256=digest.hexdigest()))
    return tuple(members)
