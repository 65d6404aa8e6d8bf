"""What the screens of tasks read of a log is what the log holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
import pytest_asyncio

from store.events import Blob, Entry, Event
from store.query import Query, parse_query
from store.runs import RunFolder
from store.task import TaskState
from store.verdicts import StoredVerdict, write_verdicts
from store.views import Order
from tests.store.logs import COURSE, written
from tests.store.samples import RUN_STARTED, completed, plan_first, started
from tests.store.samples import reply as answer
from tui.sources.tasks import LogTasks

TEXT = b"Is the claim supported?\nAnswer yes or no."
SKELETON = {
    "model": "m-large",
    "temperature": 0.0,
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
        answer(1, b'{"content": "one\\ntwo"}'),
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
    step = await tasks.list_tasks(parse_query("state:done"), Order.NUMBER, None, 100)
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
    assert [row.attempt for row in detail.attempts] == [1, 2]
    assert detail.happenings[-1].kind == "task_failed"
    assert detail.happenings[-1].facts == "Overloaded in attempt 2, the last"
    assert detail.scoring == 1
    assert detail.verdicts == ()
    assert await tasks.detail(99) is None


@pytest.mark.asyncio
async def test_the_verdicts_of_the_latest_scoring(
    tasks: LogTasks, tmp_path: Path
) -> None:
    verdict = StoredVerdict(task=2, value="a", expected="b", correct=False, rule="r")
    folder = tmp_path / "scores" / "1"
    folder.mkdir(parents=True)
    write_verdicts(folder / "verdicts.db", [verdict])
    detail = await tasks.detail(2)
    assert detail is not None
    assert detail.verdicts == (verdict,)


@pytest.mark.asyncio
async def test_a_request_is_shown_with_its_texts_and_a_reply_by_its_paths(
    tmp_path: Path,
) -> None:
    source = await _source(tmp_path, ASKED)
    detail = await source.detail(1)
    assert detail is not None
    (attempt,) = detail.attempts
    assert attempt.started_seq is not None
    assert attempt.ended_seq is not None
    prompt = await source.text(attempt.started_seq, is_request=True)
    assert "    Is the claim supported?\n    Answer yes or no." in prompt
    reply = await source.text(attempt.ended_seq, is_request=False)
    assert reply == "content:\n    one\n    two"
    assert await source.text(1, is_request=True) == ""
    source.close()
