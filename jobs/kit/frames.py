"""A run as data frames, for notebooks: its tasks, its answers, its scores.

Each is one call, on a run that is going on as well as on one that has ended. The
columns are those of `siftlog export`: whole numbers are `Int64` and truth values
`boolean`, which have room for a missing value, other numbers `float64`, and the rest is
text. These types do not depend on the rows, but in tables of a job's own, where a
column without any value is `object`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import export
from runner.scorecard import Cell
from runner.table_files import ExportTable, Kind
from store.database import open_reader
from store.read.status import scorings
from store.runs import resolve
from store.tables import visible_seq

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
        return frame(export.tasks(reader, visible_seq(reader)))


def answers(run: str | Path, runs_dir: str | Path = "runs") -> pd.DataFrame:
    """A row a completed task: its reply, and what that reply took.

    Args:
        run: as in `tasks`.
        runs_dir: likewise.

    Raises:
        NoSuchRun: no run is called so.
    """
    with open_reader(resolve(Path(runs_dir), str(run)).log) as reader:
        return frame(export.answers(reader, visible_seq(reader)))


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
        recorded = chosen(
            folder.run_id, scorings(reader), scoring, is_alive=folder.is_alive()
        )
    before = f"scores/{recorded.number}/"
    with scored(folder, recorded) as tables:
        return {table.name.removeprefix(before): frame(table) for table in tables}


def frame(table: ExportTable) -> pd.DataFrame:
    """Returns a table as a frame; does without pyarrow."""
    import pandas as pd  # noqa: PLC0415 - half a second that most of siftlog does without

    types: Mapping[Kind, Any] = {
        Kind.NOTHING: "object",
        Kind.BOOLEAN: pd.BooleanDtype(),
        Kind.INTEGER: pd.Int64Dtype(),
        Kind.NUMBER: "float64",
        Kind.TEXT: pd.Series([""]).dtype,  # object before pandas 3
    }
    cells: list[list[Cell]] = [[] for _ in table.columns]
    for chunk in table.chunks():
        for values, column in zip(cells, zip(*chunk, strict=True), strict=True):
            values.extend(column)
    return pd.DataFrame(
        {
            column.name: pd.Series(values, dtype=types[column.kind])
            for column, values in zip(table.columns, cells, strict=True)
        }
    )
