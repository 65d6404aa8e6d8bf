"""The reports of a scoring that was made, written again from the log.

The answers are replayed up to the event that the scoring had read, under the settings
that it recorded. Nothing is appended, and no model is called.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.errors import RunnerError
from runner.fingerprint import input_hashes
from runner.records.render import operations_json
from runner.records.reporting import OPERATIONS, write_reports
from runner.records.scoring import names, replayed, reported, write_files
from runner.registry import load_job
from runner.settings import validated
from store.events import ScoringRecorded
from store.runs import RunFolder
from store.views import open_reader, run_started, status, usage_counts


def redraw(folder: RunFolder, recorded: ScoringRecorded) -> Path:
    """Write the reports of a scoring again; all of its folder where that is gone.

    Args:
        folder: of the run.
        recorded: the scoring.

    Returns:
        The scoring's folder.

    Raises:
        DatasetError: an input file is missing or wrong.
        RunnerError: the replay gives other numbers than the scoring had, which its
            folder must not be mixed with.
    """
    target = folder.scores / str(recorded.number)
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        job = load_job(first.job)
        settings = validated(job, json.loads(recorded.settings))
        inputs = input_hashes(job.inputs(settings))
        made = replayed(job, reader, settings, inputs, upto=recorded.seq)
        if made.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be drawn again: "
                "the code or the inputs have changed since, and a replay gives other "
                f"numbers; siftlog score {folder.run_id} makes a new scoring."
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
            write_reports(draft, reported(job, first, settings, made, inputs))
            if not target.exists():
                draft.replace(target)
                return target
            for name in sorted({*names(draft)} - before):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (draft / name).replace(target / name)
    return target
