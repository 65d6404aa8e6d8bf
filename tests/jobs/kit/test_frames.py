from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from jobs.kit import frames
from runner import export
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.errors import UsageError
from runner.table_files import write
from store.database import open_reader
from store.errors import NoSuchRun
from store.runs import RunFolder
from store.tables import last_seq
from tests.store.logs import written
from tests.store.samples import RUN_STARTED, completed, plan_first, reply, started

BODY = encode_reply("yes", "stop", None)
COURSE = (
    [plan_first(2)],
    [started(1), reply(1, BODY, form=OPENAI_CHAT, cost_usd=0.5), completed(1)],
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a run `empty` that has no task and a run `r` that has two."""
    for name, units in (("empty", ()), ("r", COURSE)):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "log.db", [RUN_STARTED], *units)
    return tmp_path


def test_tasks_and_answers_are_frames_of_types_that_no_row_changes(runs: Path) -> None:
    for read in (frames.tasks, frames.answers):
        empty, full = read("empty", runs), read("r", runs)
        assert len(empty) == 0 < len(full)
        assert {**empty.dtypes} == {**full.dtypes}
    tasks, answers = frames.tasks("r", runs), frames.answers(runs / "r")
    assert tasks["state"].tolist() == ["completed", "queued"]
    assert tasks["cost_usd"].sum() == 0.5
    assert tasks["attempts"].dtype == pd.Int64Dtype()
    assert answers["reply"].tolist() == ["yes"]
    assert answers["cached"].dtype == pd.BooleanDtype()


def test_a_frame_is_what_the_exported_file_says(runs: Path, tmp_path: Path) -> None:
    with open_reader(RunFolder(runs / "r").log) as reader:
        sheet = export.tasks(reader, last_seq(reader))
        (file,) = write(tmp_path / "exports", "parquet", [sheet])
    frame = frames.tasks("r", runs).astype(object)
    rows = frame.where(frame.notna(), None).to_dict("records")
    assert pq.read_table(file.path).to_pylist() == rows


def test_what_is_not_there_is_a_sentence(runs: Path) -> None:
    with pytest.raises(NoSuchRun, match="no run"):
        frames.tasks("other", runs)
    with pytest.raises(UsageError, match="no scoring"):
        frames.scores("r", runs_dir=runs)
