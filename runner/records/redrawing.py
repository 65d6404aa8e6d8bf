"""The reports of a scoring that was made, written again from the log.

Nothing is appended, and no model is called.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from runner.records.render import operations_json
from runner.records.repeating import Repeated, repeated
from runner.records.reporting import OPERATIONS, Reported, write_reports
from runner.records.scoring import names, reported, write_files
from store.events import ScoringRecorded
from store.runs import RunFolder
from store.views import status, usage_counts


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
    with repeated(folder, recorded) as again:
        made = again.scoring
        # the run may have gone on since: how it stood then, the folder knows
        course = target / OPERATIONS
        operations = (
            course.read_bytes()
            if course.exists()
            else operations_json(
                status(again.reader), usage_counts(again.reader), made.scorecard
            )
        )
        folder.scores.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder.scores) as drafts:
            draft = Path(drafts) / "draft"
            write_files(draft, made.scorecard, made.content, operations)
            before = set(names(draft))
            write_reports(draft, _reported(again))
            if not target.exists():
                draft.replace(target)
                return target
            for name in sorted({*names(draft)} - before):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (draft / name).replace(target / name)
    return target


def _reported(again: Repeated) -> Reported:
    return reported(again.job, again.first, again.settings, again.scoring, again.inputs)
