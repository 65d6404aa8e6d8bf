"""The shipped command against an endpoint that refuses what today's models refuse."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from store.database import open_reader
from store.read.tasks import events
from store.tables import payload
from tests.processes import siftlog
from tests.wire_forms import DEEPSEEK
from tests.wire_server import Heard, Said, WireServer, saying

CANARY = "a-secret-of-the-gateway-0123"
RUN = (
    *("run", "screening", "--price", "0,0", "--no-report", "--no-score"),
    "--stop-if=off",
)
REST = ("--no-score", "--stop-if=off")
"""Options of a resume; the replies here are of no use to the job."""


def refused(name: str, words: str) -> Said:
    error = {"message": words, "param": name, "code": "unsupported_parameter"}
    return Said(body={"error": error}, status=400)


def today(heard: Heard) -> Said:
    """Answers as OpenAI's reasoning models do."""
    if "max_tokens" in heard.body:
        return refused(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
        )
    if "temperature" in heard.body:
        return refused("temperature", "Only the default (1) value is supported.")
    return Said(body=DEEPSEEK.reply("{}"))


@contextmanager
def served(answer: object = today) -> Iterator[WireServer]:
    """The server in a thread of its own: commands are waited for."""
    loop = asyncio.new_event_loop()
    ready, over = asyncio.Event(), asyncio.Event()
    found: list[WireServer] = []

    async def serve() -> None:
        async with saying(answer) as wire:  # type: ignore[arg-type]
            found.append(wire)
            ready.set()
            await over.wait()

    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(ready.wait(), loop).result(10)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()


def status(folder: Path, run: str) -> dict[str, Any]:
    done = siftlog("status", run, "--json", cwd=folder)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def is_refused(heard: Heard) -> bool:
    return bool({"max_tokens", "temperature"} & set(heard.body))


@pytest.mark.timeout(120)
def test_one_refused_call_settles_what_a_model_takes_for_the_whole_run(
    tmp_path: Path,
) -> None:
    with served() as wire:
        where = ("--base-url", wire.url, "--model", "m", "--run-id", "r")
        done = siftlog(*RUN, *where, cwd=tmp_path)
        assert sum(map(is_refused, wire.heard)) == 1
        said = status(tmp_path, "r")
        assert said["tasks"]["completed"] == said["tasks"]["planned"] > 100
        assert said["attempts"]["failed"] == 1
        names = [fact["name"] for fact in said["refused"]]
        assert names[:2] == ["max_tokens", "temperature"]
        for shown in (done.stderr, siftlog("status", "r", cwd=tmp_path).stdout):
            assert "max_tokens refused, sent as max_completion_tokens" in shown
        assert "Not sent, or without effect" in done.stderr

        # more of the same after a resume: no refused call again
        siftlog("retry", "r", "--filter", "state:completed", cwd=tmp_path)
        before = len(wire.heard)
        siftlog("resume", "r", *REST, cwd=tmp_path)
        assert not any(map(is_refused, wire.heard[before:]))
        assert len(wire.heard) - before == said["tasks"]["planned"]


@pytest.mark.timeout(120)
def test_what_was_typed_stops_the_run_and_leaves_its_tasks_open(tmp_path: Path) -> None:
    with served() as wire:
        where = ("--base-url", wire.url, "--model", "m", "--run-id", "r")
        done = siftlog(*RUN, *where, "--temperature", 0.7, cwd=tmp_path, check=False)
        assert done.returncode == 1
        assert "does not take temperature, which was set for m: Only the" in done.stderr
        assert len(wire.heard) == 2
        said = status(tmp_path, "r")
        assert said["tasks"]["failed"] == 0
        assert said["tasks"]["open"] == said["tasks"]["planned"]

        siftlog("resume", "r", "--drop-refused", *REST, cwd=tmp_path)
        assert sum(map(is_refused, wire.heard)) == 3
        assert status(tmp_path, "r")["tasks"]["open"] == 0


@pytest.mark.timeout(120)
def test_parameters_of_a_file_reach_the_endpoint_and_no_secret_is_kept(
    tmp_path: Path,
) -> None:
    (tmp_path / "c.toml").write_text(
        'top_p = 0.5\ntemperature = "none"\n'
        '[models."m"]\nseed = 7\nservice_tier = "flex"\n'
        '[models."m".extra_body]\n'
        'provider = { order = ["Together"], allow_fallbacks = false }\n'
        "chat_template_kwargs = { enable_thinking = false }\n"
        '[models."m".extra_headers]\n'
        'X-Gateway = "env:GATEWAY_KEY"\nX-Title = "a study"\n'
    )

    def echo(heard: Heard) -> Said:
        key = heard.headers.get("x-gateway", "")
        return Said(body=DEEPSEEK.reply(json.dumps({"key": key})))

    with served(echo) as wire:
        where = ("--base-url", wire.url, "--model", "m", "--run-id", "r")
        siftlog(
            *RUN,
            *where,
            *("--config", "c.toml"),
            cwd=tmp_path,
            env={"GATEWAY_KEY": CANARY},
        )
        for heard in wire.heard:
            assert heard.headers["x-gateway"] == CANARY
            assert heard.headers["x-title"] == "a study"
            assert "temperature" not in heard.body
            assert heard.body["top_p"] == 0.5
            assert heard.body["seed"] == 7
            assert heard.body["service_tier"] == "flex"
            assert heard.body["provider"] == {
                "order": ["Together"],
                "allow_fallbacks": False,
            }
            assert heard.body["chat_template_kwargs"] == {"enable_thinking": False}
        before = len(wire.heard)
        # another key is no other question: nothing is asked again
        other = {"GATEWAY_KEY": "another-secret-of-the-gateway"}
        siftlog("resume", "r", *REST, cwd=tmp_path, env=other)
        assert len(wire.heard) == before
    folder = tmp_path / "runs" / "r"
    for path in folder.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path
    with open_reader(folder / "log.db") as reader:
        bodies = [
            payload(reader, each.seq)
            for each in events(reader, limit=10_000, kinds=["attempt_answered"])
        ]
    assert bodies
    assert all(body and CANARY.encode() not in body for body in bodies)
    assert all(body and b"***" in body for body in bodies)
    written = tomllib.loads((folder / "run.toml").read_text())
    assert written["temperature"] == "none"
    assert "env:GATEWAY_KEY" in written["models"]["m"]["extra_headers"]


def test_a_header_whose_variable_is_not_set_is_a_usage_error(tmp_path: Path) -> None:
    headers = '{"X-Gateway": "env:GATEWAY_KEY"}'
    where = ("--base-url", "http://127.0.0.1:9", "--model", "m")
    done = siftlog(*RUN, *where, "--extra-headers", headers, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "header x-gateway needs GATEWAY_KEY" in done.stderr
    assert not (tmp_path / "runs").exists()
