"""tests.runner.clients.test_client_recorded"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.clients import Call, ClientOptions, ModelClient, open_client
from runner.clients.wire import encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.errors import BadRequest, DatasetError, UsageError
from runner.job import Task
from runner.messages import ChatRequest, EmbedRequest, Message, TextPart, Vectors
from store.clock import SystemClock
from store.errors import NoSuchRun
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Entry,
    RunStarted,
    TaskCompleted,
    TasksPlanned,
)
from store.log.sqlite import SqliteLog
from store.task import PlannedTask, manifest_bytes
from tests.replacing import replace

pytestmark = pytest.mark.asyncio


def call(key: str, stage: str = "extract", replicate: int = 1) -> Call:
    return Call(
        task=Task(
            number=1, stage=stage, key=key, model="recorded:x", replicate=replicate
        ),
        request=ChatRequest(
            messages=(Message(role="user", parts=(TextPart(text="?"),)),), max_tokens=1
        ),
    )


def recording(folder: Path, *lines: dict[str, object] | str) -> Path:
    path = folder / "answers.jsonl"
    path.write_text(
        "".join(
            (line if isinstance(line, str) else json.dumps(line)) + "\n"
            for line in lines
        )
    )
    return path


async def answer(client: ModelClient, asked: Call) -> str:
    return (await client.call(asked)).reply.text


async def test_a_file_answers_by_stage_key_and_replicate(tmp_path: Path) -> None:
    path = recording(
        tmp_path,
        {"key": "PMC1", "response": "any stage", "note": "kept out"},
        {"key": "PMC1", "response": "question", "stage": "question"},
        "",
        {"key": "PMC1", "response": "second", "replicate": 2},
    )
    client = open_client(f"recorded:{path}", ClientOptions())
    assert await answer(client, call("PMC1")) == "any stage"
    assert await answer(client, call("PMC1", "question")) == "question"
    assert await answer(client, call("PMC1", replicate=2)) == "second"
    await client.close()


async def test_how_a_recorded_reply_ended_is_told(tmp_path: Path) -> None:
    path = recording(
        tmp_path, {"key": "a", "response": "cut", "finish_reason": "length"}
    )
    client = open_client(f"recorded:{path}", ClientOptions())
    assert (await client.call(call("a"))).reply.is_truncated
    await client.close()


async def test_a_task_that_is_not_recorded_is_a_bad_request_that_names_it(
    tmp_path: Path,
) -> None:
    path = recording(tmp_path, {"key": "PMC1", "response": "a", "stage": "question"})
    client = open_client(f"recorded:{path}", ClientOptions())
    with pytest.raises(BadRequest, match="no answer to extract PMC1"):
        await client.call(call("PMC1"))
    await client.close()


async def test_of_several_models_one_has_to_be_named(tmp_path: Path) -> None:
    path = recording(
        tmp_path,
        {"key": "a", "response": "x says", "model": "x"},
        {"key": "a", "response": "y says", "model": "y/1"},
    )
    for name in (f"recorded:{path}", f"recorded:{path}#z"):
        with pytest.raises(UsageError, match="answers of x, y/1; name one"):
            open_client(name, ClientOptions())
    client = open_client(f"recorded:{path}#y/1", ClientOptions())
    assert await answer(client, call("a")) == "y says"
    await client.close()


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("{", "line 2: "),
        ('{"key": 1, "response": "a"}', "line 2: .*key"),
        ('{"key": "b"}', "line 2: .*response"),
        ('{"key": "a", "response": "again"}', "line 2: a was answered before"),
    ],
)
async def test_a_bad_line_is_named_before_anything_is_answered(
    second: str, words: str, tmp_path: Path
) -> None:
    path = recording(tmp_path, {"key": "a", "response": "first"}, second)
    with pytest.raises(DatasetError, match=f"answers.jsonl {words}"):
        open_client(f"recorded:{path}", ClientOptions())


async def test_an_empty_or_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model"):
        open_client(f"recorded:{recording(tmp_path)}", ClientOptions())
    with pytest.raises(DatasetError, match="cannot be read"):
        open_client(f"recorded:{tmp_path / 'none.jsonl'}", ClientOptions())


async def test_an_earlier_run_answers_with_its_own_bytes(tmp_path: Path) -> None:
    body = encode_reply("rs1", "length") + b"  "
    await write_run(made(tmp_path / "r1"), {"PMC1": body, "PMC2": None})
    client = open_client("recorded:r1", ClientOptions(runs_dir=tmp_path))
    received = await client.call(call("PMC1"))
    assert received.body == body
    assert received.reply.is_truncated
    with pytest.raises(BadRequest, match="no answer to extract PMC2"):
        await client.call(call("PMC2"))
    await client.close()


async def test_an_earlier_run_answers_with_vectors_to_who_asks_for_vectors(
    tmp_path: Path,
) -> None:
    vectors = Vectors.of([[1.0, 2.0]])
    form, body = encode_answer(vectors)
    await write_run(made(tmp_path / "r1"), {"PMC1": body}, form)
    client = open_client("recorded:r1", ClientOptions(runs_dir=tmp_path))
    embed = replace(call("PMC1"), request=EmbedRequest(texts=("a",)))
    assert (await client.call(embed)).reply == vectors
    with pytest.raises(BadRequest, match="not a reply of that kind"):
        await client.call(call("PMC1"))
    await client.close()


async def test_a_file_of_texts_has_no_vectors_and_says_so(tmp_path: Path) -> None:
    path = recording(tmp_path, {"key": "a", "response": "[1.0, 2.0]"})
    client = open_client(f"recorded:{path}", ClientOptions())
    with pytest.raises(BadRequest, match="has texts only"):
        await client.call(replace(call("a"), request=EmbedRequest(texts=("a",))))
    await client.close()


async def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRun, match="nowhere"):
        open_client("recorded:nowhere", ClientOptions(runs_dir=tmp_path))


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def write_run(
    folder: Path, bodies: dict[str, bytes | None], form: str = OPENAI_CHAT
) -> None:
    """A run with a task for each key, answered where there is a body."""
    log = await SqliteLog.create(
        folder / "log.db",
        run_id=folder.name,
        config_sha256=bytes(32),
        clock=SystemClock(),
        owner="test",
    )
    started = RunStarted(
        run_id=folder.name,
        job="job",
        job_version="1",
        code_sha256="",
        settings="{}",
        models={"subject": ["x"]},
        replicates=1,
        inputs=[],
        siftlog_version="0",
    )
    planned = [
        PlannedTask(stage="extract", key=key, model="x", replicate=1, root=number)
        for number, key in enumerate(bodies, start=1)
    ]
    plan = TasksPlanned(first=1, count=len(planned), consumed=len(planned))
    await log.append(started, Entry(event=plan, payload=manifest_bytes(planned)))
    for number, body in enumerate(bodies.values(), start=1):
        if body is None:
            continue
        answered = AttemptAnswered(
            task=number,
            attempt=1,
            form=form,
            status=200,
            latency_ms=1.0,
            finish_reason="length",
        )
        await log.append(
            AttemptStarted(task=number, attempt=1, request_sha256="0"),
            Entry(event=answered, payload=body),
            TaskCompleted(task=number, attempt=1),
        )
    await log.close()


async def test_a_file_may_be_spread_over_lines_and_hold_replies_as_objects(
    tmp_path: Path,
) -> None:
    rows = [
        {"key": "é1", "response": {"a": [1, "é"]}},
        {"key": "é2", "response": "two", "finish_reason": "length"},
    ]
    path = tmp_path / "answers.json"
    path.write_text("\ufeff" + json.dumps(rows, indent=2, ensure_ascii=False), "utf-8")
    path = path.rename(tmp_path / "answers.jsonl")
    client = open_client(f"recorded:{path}", ClientOptions())
    assert json.loads(await answer(client, call("é1"))) == {"a": [1, "é"]}
    assert await answer(client, call("é2")) == "two"
    await client.close()


async def test_a_file_of_another_form_is_refused_with_what_it_has(
    tmp_path: Path,
) -> None:
    path = recording(tmp_path, {"id": "PMC1", "answer": "x"})
    with pytest.raises(DatasetError, match=r"key and response .* this has id, answer"):
        open_client(f"recorded:{path}", ClientOptions())
