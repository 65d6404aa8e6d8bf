"""The shipped command against an endpoint that refuses what today's models refuse.

The real command with a job of all roles, found by entry point like any plug-in.
"""

from __future__ import annotations

import asyncio
import json
import signal
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from runner.simulate.options import RequestOutcome
from store.database import open_reader
from store.read.tasks import events
from store.tables import payload
from tests.commands import siftlog
from tests.gates import gated
from tests.ledgers import read_ledger
from tests.plugging import plugged
from tests.processes import simulated, start, status
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


def parameters_status(folder: Path, run: str) -> dict[str, Any]:
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
        said = parameters_status(tmp_path, "r")
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
        said = parameters_status(tmp_path, "r")
        assert said["tasks"]["failed"] == 0
        assert said["tasks"]["open"] == said["tasks"]["planned"]

        siftlog("resume", "r", "--drop-refused", *REST, cwd=tmp_path)
        assert sum(map(is_refused, wire.heard)) == 3
        assert parameters_status(tmp_path, "r")["tasks"]["open"] == 0


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


ITEMS = 40
TASKS = 7 * ITEMS
ROLES = {"subject": ["a", "b"], "judge": ["j"], "embed": ["e"], "rerank": ["r"]}


@pytest.fixture
def panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the job `panel` is installed."""
    installed = plugged(tmp_path / "plugins", panel="tests.crash.panel.job:job")
    for name, value in installed.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(tmp_path / "plugins")
    return tmp_path


@pytest.mark.timeout(180)
def test_roles_are_named_once_kept_through_a_kill_and_shown(panel: Path) -> None:
    config = panel / "run.toml"
    config.write_text(
        'price = [0.0, 0.0]\nembed_model = "e"\nmodel = ["a", "b"]\n'
        "[models.j]\nconcurrency = 3\n"
    )
    ledger = panel / "ledger.jsonl"
    faults = ("--job", "panel", "--rate-5xx", 0.05, "--latency-ms", 150)
    with (
        simulated(*faults, "--ledger", ledger, cwd=panel) as url,
        gated(url, passes=TASKS // 3) as gate,
    ):
        words = (
            "run",
            "panel",
            "--run-id",
            "r1",
            "--config",
            config,
            "--base-url",
            gate.url,
        )
        process = start(
            *(*words, "--judge-model", "j", "--items", ITEMS, "--concurrency", 8),
            cwd=panel,
            env={"SIFTLOG_RERANK_MODEL": "r"},
        )
        gate.wait(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        gate.open()
        before = status(panel, "r1")
        assert before["models"] == ROLES
        assert 0 < before["tasks"]["completed"] < TASKS
        # who is asked was settled when the run began
        other = {"SIFTLOG_JUDGE_MODEL": "other", "SIFTLOG_EMBED_MODEL": "other"}
        siftlog("resume", "r1", cwd=panel, env=other)
    after = status(panel, "r1")
    assert after["models"] == ROLES
    assert (after["tasks"]["completed"], after["tasks"]["open"]) == (TASKS, 0)
    assert after["attempts"]["unknown"] <= 4 * 8 + 3
    served = read_ledger(ledger)
    assert {line.model for line in served} == {"a", "b", "j", "e", "r"}
    answered = Counter(
        line.request
        for line in served
        if line.outcome in {RequestOutcome.ANSWERED, RequestOutcome.GONE}
    )
    assert len(answered) == TASKS
    assert sum(answered.values()) - TASKS <= after["attempts"]["unknown"]
    shown = siftlog("status", "r1", cwd=panel).stdout
    assert "models    subject a, b; judge j; embed e; rerank r" in shown
    # the same on a server that is gone: nothing is asked
    scored = siftlog("score", "r1", "--json", cwd=panel).stdout
    again = siftlog("score", "r1", "--json", cwd=panel).stdout
    assert json.loads(scored)["digest"] == json.loads(again)["digest"]
    siftlog("export", "r1", "answers", cwd=panel)
    rows = (panel / "runs/r1/exports/answers.jsonl").read_text().splitlines()
    vectors = next(row for row in map(json.loads, rows) if row["stage"] == "embed")
    assert len(json.loads(vectors["reply"])) == 4


def test_a_role_that_nobody_is_named_for_is_the_baselines_and_told(panel: Path) -> None:
    done = siftlog("run", "panel", "--embed-model", "baseline/lexical", cwd=panel)
    assert "judge, sum: no judge model was named" in done.stderr
    assert "rerank: no rerank model was named" in done.stderr
    assert "--embed-model" not in done.stderr
    assert "15 answers" in done.stdout


def test_a_list_of_jobs_says_which_stages_have_a_role_of_their_own(panel: Path) -> None:
    done = siftlog("jobs", cwd=panel)
    assert "embed (embed), rerank (rerank), answer, judge (judge), sum" in done.stdout
