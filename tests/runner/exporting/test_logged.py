from __future__ import annotations

from pathlib import Path

from runner.clients.wire import encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.export import answers, tasks
from runner.messages import RankedDocument, Ranking, Usage, Vectors
from store.database import open_reader
from store.tables import last_seq
from tests.store.logs import COURSE, written
from tests.store.samples import RUN_STARTED, completed, plan_first, reply, started

KINDS = (
    (OPENAI_CHAT, encode_reply("yes", "stop", Usage(tokens_in=5, tokens_out=1))),
    encode_answer(Vectors.of([[0.5, -1.0]])),
    encode_answer(Ranking(results=(RankedDocument(index=1, score=0.25),))),
)


def test_tasks_are_as_they_stood_at_one_event(tmp_path: Path) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        sheet = tasks(reader, last_seq(reader))
        every = [*sheet.rows]
        early = [*tasks(reader, 6).rows]
    task, state, error = map(sheet.names.index, ("task", "state", "error"))
    # by family: the judge of the first task stands behind it
    assert [row[task] for row in every] == [1, 5, 2, 3, 4]
    assert [row[state] for row in every] == [
        *("completed", "running", "failed", "completed", "skipped")
    ]
    assert [row[error] for row in every] == [None, None, "Overloaded", None, None]
    assert [row[task] for row in early] == [1, 2, 3, 4], "5 was planned later"
    moved = ["completed", "running", "running", "skipped"]
    assert [row[state] for row in early] == moved, "what has moved since is open"


def test_an_answer_of_every_kind_is_one_cell(tmp_path: Path) -> None:
    units = [
        [started(n), reply(n, body, form=form, cached=n == 2), completed(n)]
        for n, (form, body) in enumerate(KINDS, 1)
    ]
    path = written(
        tmp_path / "log.db", [RUN_STARTED], [plan_first(4)], *units, [started(4)]
    )
    with open_reader(path) as reader:
        sheet = answers(reader, last_seq(reader))
        rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    assert [row["task"] for row in rows] == [1, 2, 3], "4 has no reply"
    assert [row["reply"] for row in rows] == ["yes", "[[0.5, -1.0]]", "[[1, 0.25]]"]
    assert [row["cached"] for row in rows] == [False, True, False]
    assert {row["tokens_in"] for row in rows} == {50}
