"""Finds files that only the newest scoring of a run had, such as gold labels.

A run is scored again at the end of a resume, of a fork and of an added stage. Without
these files the new scoring would lack what the user has seen in the one before.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from runner.reply_labels import SETTING as REPLY_LABELS
from runner.workload import Workload, validated
from store.database import open_reader
from store.events import ScoringRecorded
from store.read.status import newest_scoring, run_started
from store.runs import RunFolder


def as_scored_before(
    folder: RunFolder, work: Workload, run: str
) -> tuple[BaseModel, list[str]]:
    """Return settings with the files that only the newest scoring had, as gold labels.

    Where it had another file than the run itself, the run's counts.

    Args:
        folder: of the run whose newest scoring counts.
        work: the run that is to be scored.
        run: its name, for commands.

    Returns:
        The settings, and a sentence for each of these files.
    """
    with open_reader(folder.log) as reader:
        newest, began_with = newest_scoring(reader), run_started(reader).inputs
    if newest is None or not isinstance(newest.event, ScoringRecorded):
        return work.settings, []
    scored, present = newest.event, work.settings.model_dump(mode="json")
    paths: dict[str, list[str]] = {}
    values, sentences = {}, []
    # a setting may be empty because its file lies in a folder that another one names
    of_run = {file.setting for file in work.inputs}
    known = {(file.setting, file.sha256) for file in (*began_with, *work.inputs)}
    for used in scored.inputs:
        is_empty = used.setting in present and not present[used.setting]
        if (is_empty and used.setting not in of_run) or used.setting == REPLY_LABELS:
            paths.setdefault(used.setting, []).append(used.path)
        elif used.setting in of_run and (used.setting, used.sha256) not in known:
            sentences.append(
                f"Scored with {used.setting} of the run, not with {used.path}, which "
                f"scoring {scored.number} had; to use that: siftlog score {run} "
                f"--{used.setting} {used.path}"
            )
    for name, files in paths.items():
        text, number = " ".join(files), scored.number
        if name in present and all(Path(file).exists() for file in files):
            values[name] = json.loads(scored.settings)[name]
            sentences.append(f"Scored with {name} {text}, as scoring {number} was.")
        else:
            option = f"--{name} FILE" if name in present else "--gold labels"
            sentences.append(
                f"Scored without {text}, which scoring {number} had; to use it: "
                f"siftlog score {run} {option}"
            )
    checked = validated(work.job, {**present, **values})
    update = {name: getattr(checked, name) for name in values}
    return work.settings.model_copy(update=update), sentences
