"""Runs of useless replies, shared refusals and raising jobs, as processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.job import Task
from runner.messages import Reply
from runner.options import options_from
from store.database import open_reader
from store.events import RunDrained
from store.read.tasks import events
from tests.commands import siftlog as command
from tests.plugging import plugged
from tests.processes import simulated, status
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.wire_server import Said, Speech, saying

KEY = {"OPENAI_API_KEY": "k", "SIFTLOG_STOP_IF": "unusable>50%"}
MODEL = "openai/x"
CUT = Said(
    body={
        "choices": [{"message": {"content": ""}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 500, "completion_tokens": 600},
    }
)
UNKNOWN = Said(status=404, body={"error": {"message": "The model `x` does not exist."}})


class RaisingJob(ToyJob):
    """A parser that trips over what the baseline says."""

    name = "raising"

    @staticmethod
    def _words(dataset: ToySettings, task: Task, reply: Reply) -> tuple[str, ...]:
        del dataset, task
        return tuple(reply.text.split()[7])


raising = RaisingJob()


@contextmanager
def serving(speech: Speech) -> Iterator[str]:
    """The server in a thread of its own: processes are waited for in this one."""
    ready, over = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with saying(speech) as wire:
            urls.append(wire.url)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield urls[0]
    finally:
        over.set()
        thread.join()


def siftlog(
    *words: object, cwd: Path, exits: int, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One command that ends with that code."""
    done = command(*words, cwd=cwd, env=env, check=False)
    assert done.returncode == exits, done.stdout + done.stderr
    return done


def run(cwd: Path, url: str, *words: object, exits: int) -> str:
    """What a run of the shipped sample of 375 tasks says."""
    done = siftlog(
        *("run", "screening", "--model", MODEL, "--base-url", url, "--run-id", "r"),
        *("--price", "1,4", "--no-report", *words),
        cwd=cwd,
        env=KEY,
        exits=exits,
    )
    return done.stdout + done.stderr


def drained_by(cwd: Path) -> list[str]:
    with open_reader(cwd / "runs" / "r" / "log.db") as reader:
        found = events(reader, kinds=["run_drained"])
    return [each.event.by for each in found if isinstance(each.event, RunDrained)]


def test_a_run_of_truncated_replies_stops_and_goes_on_when_told(tmp_path: Path) -> None:
    with serving(CUT) as url:
        said = run(tmp_path, url, "--concurrency", 4, exits=5)
        assert "20 of 20 replies and failed tasks are unusable" in said
        assert "siftlog resume r --stop-if off" in said
        assert "warn      openai/x: of" in said
        assert drained_by(tmp_path) == ["futility"]
        seen = status(tmp_path, "r")
        (replies,) = seen["replies"]
        assert replies["truncated"] == replies["replies"] == replies["unparsed"]
        assert replies["shares"] == {"truncated": 1.0, "empty": 1.0, "unparsed": 1.0}
        assert 20 <= replies["replies"] <= 40
        assert seen["tasks"]["open"] == 375 - replies["replies"]
        # a plain resume pays for as many again, and stops again
        siftlog("resume", "r", cwd=tmp_path, env=KEY, exits=5)
        again = status(tmp_path, "r")["replies"][0]["replies"]
        assert 20 <= again - replies["replies"] <= 40
        resume = ("resume", "r", "--stop-if", "off", "--no-score", "--json")
        done = siftlog(*resume, cwd=tmp_path, env=KEY, exits=0)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["replies"][0]["truncated"] == 375
    assert "375 truncated (100 %)" in done.stderr


def test_an_unknown_model_leaves_every_task_open(tmp_path: Path) -> None:
    with serving(UNKNOWN) as url:
        said = run(tmp_path, url, exits=1)
    assert "The model `x` does not exist." in said
    tasks = status(tmp_path, "r")["tasks"]
    assert (tasks["failed"], tasks["open"]) == (0, 375)


def test_a_schema_that_is_ignored_is_noticed_and_prose_stops_the_run(
    tmp_path: Path,
) -> None:
    with simulated("--ignore", "response_format", cwd=tmp_path) as url:
        said = run(tmp_path, url, "--concurrency", 4, exits=5)
    notice = f"{MODEL}: response_format ignored"
    assert notice in said
    assert "replies and failed tasks are unusable" in said
    assert drained_by(tmp_path) == ["futility"]
    seen = status(tmp_path, "r")
    (fact,) = seen["refused"]
    assert (fact["name"], fact["how"]) == ("response_format", "ignored")
    assert "replies hold no JSON object" in fact["words"]
    (replies,) = seen["replies"]
    assert 20 <= replies["unparsed"] == replies["replies"] <= 40
    shown = siftlog("status", "r", cwd=tmp_path, exits=0).stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("refused "))
    assert "response_format" in line
    assert "no JSON object" in line


def test_a_parser_that_raises_is_counted_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged(tmp_path / "plugged", raising=f"{__name__}:raising")
    monkeypatch.syspath_prepend(tmp_path / "plugged")
    words = ("run", "raising", "--items", 5, "--run-id", "r", "--no-report")
    done = siftlog(*words, cwd=tmp_path, exits=0)
    assert done.stderr.count("Traceback (most recent call last)") == 1
    assert "IndexError at tests/runner/cli/test_stop_if.py:" in done.stderr
    assert str(Path(__file__).parent) in done.stderr  # the traceback is whole
    seen = status(tmp_path, "r")
    assert seen["state"] == "finished"
    assert seen["parse_failures"] == {"parser_error": 5}
    with open_reader(tmp_path / "runs" / "r" / "log.db") as reader:
        ends = list(events(reader, kinds=["task_completed"]))
    faults = {getattr(each.event, "fault", None) for each in ends}
    assert len(faults) == 1
    assert str(Path(__file__).parent) not in str(faults)
    # nothing is sent, and nothing dies on the same replies
    assert siftlog("score", "r", cwd=tmp_path, exits=0)


def test_an_offline_model_is_judged_only_by_rules_that_were_typed() -> None:
    usual = options_from({"model": ["baseline/lexical", MODEL]})
    typed = options_from({"model": ["baseline/lexical"], "stop_if": "empty>50%"})
    models = ("baseline/lexical", MODEL)
    assert usual.futility(models).models == (MODEL,)
    assert typed.futility(models).models == models
    assert options_from({"stop_if": ["off"]}).futility(models).rules == ()


def test_a_rule_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(UsageError, match="Option stop_if: 'unread>5%' is not a rule"):
        options_from({"stop_if": ["unread>5%"]})
