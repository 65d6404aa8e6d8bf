"""The reports of a scoring that was made, written again from the log.

The answers are replayed up to the event that the scoring had read, under the settings
that it recorded. Nothing is appended, and no model is called.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.errors import RunnerError
from runner.records.render import operations_json
from runner.records.repeating import repeater
from runner.records.reporting import OPERATIONS, write_reports
from runner.records.scoring import names, reported, write_files
from runner.settings import validated
from store.events import ScoringRecorded
from store.read.status import status
from store.read.usage import usage_counts
from store.runs import RunFolder


def redraw(folder: RunFolder, recorded: ScoringRecorded) -> Path:
    """Write the reports of a scoring again; all of its folder where that is gone.

    Args:
        folder: of the run.
        recorded: the scoring.

    Returns:
        The scoring's folder.

    Raises:
        DatasetError: an input is not what it was, and the log does not keep it.
        RunnerError: the replay gives other numbers than the scoring had, which its
            folder must not be mixed with.
    """
    target = folder.scores / str(recorded.number)
    with repeater(folder) as run:
        reader = run.reader
        made = run.repeated(recorded)
        if made.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be drawn again: "
                "the code has changed since, and a replay gives other numbers; "
                f"siftlog score {folder.run_id} makes a new scoring."
            )
        # the run may have gone on since: how it stood then, the folder knows
        course = target / OPERATIONS
        operations = (
            course.read_bytes()
            if course.exists()
            else operations_json(status(reader), usage_counts(reader), made.scorecard)
        )
        folder.scores.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder.scores) as drafts:
            draft = Path(drafts) / "draft"
            write_files(draft, made.scorecard, made.content, operations)
            before = set(names(draft))
            settings = validated(run.job, json.loads(recorded.settings))
            told = reported(run.job, run.started, settings, made, recorded.inputs)
            write_reports(draft, told)
            if not target.exists():
                draft.replace(target)
                return target
            for name in sorted({*names(draft)} - before):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (draft / name).replace(target / name)
    return target
