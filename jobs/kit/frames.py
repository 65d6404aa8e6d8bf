"""A run as data frames, for notebooks: its tasks, its answers, its scores.

Each is one call, on a run that is going on as well as on one that has ended. The
columns are those of `siftlog export`: whole numbers are `Int64` and truth values
`boolean`, which have room for a missing value, other numbers `float64`, and the rest is
text. These types do not depend on the rows, but in tables of a job's own, where a
column without any value is `object`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner import export
from runner.table_files import ExportTable, arrow_table
from store.database import open_reader
from store.read.status import scorings
from store.runs import resolve
from store.tables import last_seq

if TYPE_CHECKING:
    import pandas as pd


def tasks(run: str | Path, runs_dir: str | Path = "runs") -> pd.DataFrame:
    """A row a task: who it is, what became of it, what it took.

    Args:
        run: an id, the beginning of one, a folder, or `last`.
        runs_dir: the folder that holds the runs.

    Raises:
        NoSuchRun: no run is called so.
    """
    with open_reader(resolve(Path(runs_dir), str(run)).log) as reader:
        return frame(export.tasks(reader, last_seq(reader)))


def answers(run: str | Path, runs_dir: str | Path = "runs") -> pd.DataFrame:
    """A row a completed task: its reply, and what that reply took.

    Args:
        run: as in `tasks`.
        runs_dir: likewise.

    Raises:
        NoSuchRun: no run is called so.
    """
    with open_reader(resolve(Path(runs_dir), str(run)).log) as reader:
        return frame(export.answers(reader, last_seq(reader)))


def scores(
    run: str | Path, scoring: int | None = None, runs_dir: str | Path = "runs"
) -> dict[str, pd.DataFrame]:
    """All that a scoring says: `metrics`, `verdicts`, and `tables/...` of the job.

    The scoring is made again from the log, without a call, and must give the same
    numbers.

    Args:
        run: as in `tasks`.
        scoring: its number; None: the newest.
        runs_dir: as in `tasks`.

    Raises:
        NoSuchRun: no run is called so.
        UsageError: the run has no such scoring.
        RunnerError: the code or the inputs have changed since.
    """
    # with these come the jobs and their settings, which tasks and answers do without
    from runner.export import scores as scored  # noqa: PLC0415
    from runner.score.repeat import chosen  # noqa: PLC0415

    folder = resolve(Path(runs_dir), str(run))
    with open_reader(folder.log) as reader:
        recorded = chosen(folder.run_id, scorings(reader), scoring)
    before = f"scores/{recorded.number}/"
    with scored(folder, recorded) as tables:
        return {table.name.removeprefix(before): frame(table) for table in tables}


def frame(table: ExportTable) -> pd.DataFrame:
    """Return a table as a data frame."""
    import pandas as pd  # noqa: PLC0415 - half a second that most of siftlog does without
    import pyarrow as pa  # noqa: PLC0415 - likewise

    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    typed: pd.DataFrame = arrow_table(table).to_pandas(types_mapper=types.get)
    return typed
