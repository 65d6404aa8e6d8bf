"""What the screens of tasks read of a log is what the log holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from store.database import open_reader
from store.events import Blob, Entry, Event
from store.query import Query, parse_query
from store.read.tasks import AttemptRow, TaskOrder, attempts
from store.runs import RunFolder
from store.task import TaskState
from store.verdicts import Score, StoredVerdict, write_verdicts
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.store.samples import RUN_STARTED, completed, failed, plan_first, started
from tests.store.samples import reply as answer
from tui.render.tasks import outcome
from tui.sources.task_texts import NO_TEXT, TextKind, complaint, read_text
from tui.sources.tasks import LogTasks, attempt_lines

TEXT = b"Is the claim supported?\nAnswer yes or no."
SKELETON = {
    "model": "m-large",
    "temperature": 0.0,
    "schema": {"name": "yes-no", "sha256": sha256(TEXT).hexdigest()},
    "messages": [{"role": "user", "parts": [sha256(TEXT).hexdigest()]}],
}
ASKED: tuple[Sequence[Entry | Event], ...] = (
    [RUN_STARTED],
    [plan_first(2)],
    [
        Entry(
            event=started(1),
            payload=json.dumps(SKELETON).encode(),
            blobs=(Blob(sha256=sha256(TEXT).digest(), data=TEXT),),
        ),
        answer(1, b'{"content": "one\\ntwo"}', headers={"request-id": "req_8f2"}),
        completed(1),
    ],
)


async def _source(folder: Path, course: Sequence[Sequence[Entry | Event]]) -> LogTasks:
    await asyncio.to_thread(written, folder / "log.db", *course)
    return LogTasks(RunFolder(folder))


@pytest_asyncio.fixture
async def tasks(tmp_path: Path) -> AsyncIterator[LogTasks]:
    source = await _source(tmp_path, COURSE)
    yield source
    source.close()


@pytest.mark.asyncio
async def test_a_list_and_its_lines(tasks: LogTasks) -> None:
    step = await tasks.list_tasks(
        parse_query("state:completed"), TaskOrder.NUMBER, None, 100
    )
    assert list(step.numbers) == [1, 3]
    lines = await tasks.lines(step.numbers)
    assert lines[1].row.state is TaskState.COMPLETED
    assert lines[1].updated_us is not None
    assert set(await tasks.lines([1, 99])) == {1}
    assert step.seq == await tasks.last_seq()
    assert list(await tasks.changed(Query(), step.seq)) == []


@pytest.mark.asyncio
async def test_the_names_that_filters_can_use(tasks: LogTasks) -> None:
    names = await tasks.names()
    assert names.total == 5
    assert names.stages == ("ask", "judge")
    assert names.models == ("m-large", "m-small")
    assert names.errors == ("Overloaded",)
    assert names.parse_failures == ("truncated",)


@pytest.mark.asyncio
async def test_a_task_with_its_attempts_and_events(tasks: LogTasks) -> None:
    detail = await tasks.detail(2)
    assert detail is not None
    assert [line.row.attempt for line in detail.attempts] == [1, 2]
    assert detail.happenings[-1].kind == "task_failed"
    assert detail.happenings[-1].facts == "Overloaded in attempt 2, the last"
    (scored,) = detail.scored
    assert (scored.number, detail.scorings) == (1, 1)
    assert scored.scorer == "sample-job 1"
    assert scored.verdicts is None
    assert await tasks.detail(99) is None


@pytest.mark.asyncio
async def test_the_verdicts_of_the_latest_scoring(
    tasks: LogTasks, tmp_path: Path
) -> None:
    verdict = StoredVerdict(task=2, value="a", expected="b", correct=False, rule="r")
    other = replace(verdict, correct=True)
    unjudged = replace(verdict, task=3, correct=None)
    folder = tmp_path / "scores" / "1"
    folder.mkdir(parents=True)
    write_verdicts(folder / "verdicts.db", [verdict, other, unjudged])
    detail = await tasks.detail(2)
    assert detail is not None
    assert detail.scored[0].verdicts == (verdict, other)
    lines = await tasks.lines([1, 2, 3])
    assert lines[1].score is None
    assert lines[2].score == Score(verdicts=2, judged=2, right=1, value="a", rule="r")
    assert lines[3].score == Score(verdicts=1, judged=0, right=0, value="a", rule="r")
    unfounded = replace(unjudged, task=1, is_grounded=False)
    (folder / "verdicts.db").unlink()
    write_verdicts(folder / "verdicts.db", [verdict, other, unjudged, unfounded])
    lines = await tasks.lines([1, 2, 3])
    assert [outcome(lines[task]) for task in (1, 2)] == ["ungrounded", "Overloaded"]
    for expression, numbers in (
        ("outcome:ungrounded", [1]),
        ("outcome:wrong", [2]),
        ("outcome:right", []),
        ("outcome:unparsed", [3]),
        ("outcome:failed", [2]),
        ("-outcome:ungrounded state:completed", [3]),
    ):
        step = await tasks.list_tasks(
            parse_query(expression), TaskOrder.NUMBER, None, 9
        )
        assert list(step.numbers) == numbers, expression
    (folder / "verdicts.db").write_bytes(b"no database, and longer than a header" * 9)
    assert (await tasks.lines([2]))[2].score is None
    spoiled = await tasks.detail(2)
    assert spoiled is not None
    assert spoiled.scored[0].verdicts is None


@pytest.mark.asyncio
async def test_a_request_is_shown_with_its_texts_and_a_reply_by_its_paths(
    tmp_path: Path,
) -> None:
    source = await _source(tmp_path, ASKED)
    detail = await source.detail(1)
    assert detail is not None
    (attempt,) = detail.attempts
    prompt = await source.text(attempt.row, TextKind.PROMPT, "x")
    assert "    Is the claim supported?\n    Answer yes or no." in prompt.text
    assert prompt.about == "temperature 0 · schema yes-no · request req_8f2"
    reply = await source.text(attempt.row, TextKind.REPLY, "x")
    assert reply.text == "content:\n    one\n    two"
    assert reply.display_text == "one\ntwo"
    unsent = replace(attempt.row, started_seq=None)
    assert await source.text(unsent, TextKind.PROMPT, "x") == NO_TEXT
    source.close()


SPOILED = b'{"content": "So:\\n{\\"a\\": [1, 2], \\"b\\" 3}"}'


@pytest.mark.parametrize(
    ("fault", "why"),
    [(None, "Expecting ':' delimiter"), ("line 2, column 19: odd", "odd")],
)
@pytest.mark.asyncio
async def test_an_unreadable_reply_is_marked_where_it_breaks_off(
    tmp_path: Path, fault: str | None, why: str
) -> None:
    refused = replace(answer(1, SPOILED).event, reask="no_json", fault=fault)
    ended = replace(completed(1, 2), unparsed="schema_mismatch", fault="a.1: too large")
    source = await _source(
        tmp_path,
        (
            [RUN_STARTED],
            [plan_first(1)],
            [started(1), Entry(event=refused, payload=SPOILED)],
            [started(1, 2), answer(1, b'{"content": "{\\"a\\": [1, 2]}"}', 2), ended],
        ),
    )
    detail = await source.detail(1)
    assert detail is not None
    first, second = (line.row for line in detail.attempts)
    reply = await source.text(first, TextKind.REPLY, "x")
    assert reply.text == 'content:\n    So:\n    {"a": [1, 2], "b" 3}'
    assert reply.display_text == f'So:\n{{"a": [1, 2], "b" x[{why}]x3}}'
    assert reply.about.startswith("asked again: no_json")
    parsed = await source.text(first, TextKind.PARSED, "x")
    assert parsed.text == "a\n  [0]  1\n  [1]  2"
    assert "JSON breaks off at character 23: Expecting ':' delimiter" in parsed.about
    told = await source.text(second, TextKind.PARSED, "x")
    assert told.display_text == "a\n  [0]  1\n  [1]  2  x too large"
    assert told.about == "unparsed: schema_mismatch (a.1: too large)"
    failure = replace(first, outcome=failed(1, message="gone"), unparsed=None)
    assert complaint(failure) == "Overloaded: gone"
    source.close()


def _row(attempt: int, started_us: int | None, outcome: object, **more: int) -> Any:
    fields = {"ended_us": None, "started_seq": None, "ended_seq": None} | more
    return AttemptRow(attempt=attempt, started_us=started_us, outcome=outcome, **fields)


def test_an_attempt_waits_from_when_it_could_have_begun() -> None:
    refused = replace(answer(1, b"x").event, reask="no_json")
    rows = (
        _row(1, 5_000_000, failed(1, retry_in_s=2.0), ended_us=6_000_000),
        _row(2, 9_500_000, refused, ended_us=11_000_000),
        _row(3, 11_250_000, None),
        _row(4, 20_000_000, failed(1, retry_in_s=None), ended_us=21_000_000),
        _row(5, None, refused, ended_us=22_000_000),
        _row(6, 21_000_000, None),
    )
    lines = list(attempt_lines(TaskState.RUNNING, 2_000_000, rows))
    # of the third nobody knows when it ended, and the fifth came without a request
    assert [line.waited_s for line in lines] == [3.0, 1.5, 0.25, None, None, 0.0]
    assert [line.is_lost for line in lines] == [*[False] * 2, True, *[False] * 3]
    (last,) = attempt_lines(TaskState.QUEUED, None, rows[5:])
    assert (last.waited_s, last.is_lost) == (None, True)


def test_a_request_of_any_kind_says_its_parameters(tmp_path: Path) -> None:
    request = {"kind": "embed", "model": "m", "dimensions": None, "top_n": 1_024}
    skeleton = Entry(event=started(1), payload=json.dumps(request).encode())
    odd = Entry(event=started(2), payload=b"[1]")
    log = written(tmp_path / "log.db", [RUN_STARTED], [plan_first(2)], [skeleton, odd])
    with open_reader(log) as reader:
        ((first,), (second,)) = (attempts(reader, number) for number in (1, 2))
        said = read_text(reader, first, TextKind.PROMPT, "x").about
        assert said == "kind embed · top n 1,024"
        assert read_text(reader, second, TextKind.PROMPT, "x").about == ""
