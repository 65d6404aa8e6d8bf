"""Evaluations that promptfoo ran itself, judged by its own table and totals."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.imports.forms import read_files, recognised
from runner.imports.records import ForeignReply
from tests.commands import siftlog
from tests.thirdparty import judges
from tests.wire_server import Heard, Said, saying

pytestmark = [
    pytest.mark.timeout(900),  # the packages may have to be installed
    pytest.mark.xdist_group("promptfoo"),
]

MODELS = ("openai:chat:gpt-4o-mini", "mine", "mine 2")
WORDS = ("alpha", "long beta", "refused", "x1", "x2")
REPEATS = 2


def _reply(heard: Heard) -> Said:
    """Answer a chat as OpenAI does, with parts of the tokens counted."""
    messages = heard.body["messages"]
    text = messages[-1]["content"]
    if "refused" in text:
        error = {"message": "not this word", "type": "invalid_request_error"}
        return Said(status=400, body={"error": error})
    tokens_in = 40 + len(text) + len(messages)
    usage = {
        "prompt_tokens": tokens_in,
        "completion_tokens": 7,
        "total_tokens": tokens_in + 7,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    choice = {
        "index": 0,
        "finish_reason": "length" if "long" in text else "stop",
        "message": {"role": "assistant", "content": text.upper()},
    }
    head = {"id": "c", "object": "chat.completion", "created": 1769851800}
    head |= {"model": heard.body["model"]}
    return Said(body={**head, "choices": [choice], "usage": usage})


def _config(url: str) -> dict[str, Any]:
    server = {"apiBaseUrl": f"{url}/v1", "apiKey": "sk-none"}
    tests = [
        {"vars": {"word": "alpha"}, "assert": [{"type": "equals", "value": "SAY A"}]},
        {
            "vars": {"word": "long beta"},
            "assert": [
                {"type": "icontains", "value": "{{word}}"},
                {"type": "javascript", "value": "0.5", "metric": "half"},
            ],
        },
        {"vars": {"word": "refused"}, "assert": [{"type": "equals", "value": "x"}]},
        {
            "vars": {"word": ["x1", "x2"]},
            "assert": [{"type": "contains", "value": "X1"}],
        },
    ]
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say {{word}}"},
    ]
    return {
        "prompts": ["Say {{word}}", json.dumps(chat)],
        "providers": [
            {"id": "openai:chat:gpt-4o-mini", "config": server},
            # two columns of one name, as of another temperature
            *(
                {"id": "openai:chat:own", "label": "mine", "config": {**server, **more}}
                for more in ({"temperature": 0}, {"temperature": 1})
            ),
        ],
        "tests": tests,
    }


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of one evaluation."""
    judges.require_promptfoo()
    cwd = tmp_path_factory.mktemp("promptfoo")

    async def evaluate() -> None:
        async with saying(_reply) as server:
            config = cwd / "config.json"
            config.write_text(json.dumps(_config(server.url)), "utf-8")
            words: list[object] = ["-c", config, "--repeat", REPEATS, "--no-table"]
            for kind in ("json", "jsonl", "csv"):
                words += ["-o", f"out.{kind}"]
            await asyncio.to_thread(judges.run_promptfoo, *words, cwd=cwd)

    asyncio.run(evaluate())
    return cwd


def _read(path: Path) -> list[ForeignReply]:
    return [reply for _, reply in read_files([path])]


def _cells(path: Path) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Yield word, column and cells of each reply in promptfoo's table."""
    header, *rows = csv.reader(path.read_text("utf-8").splitlines())
    starts = [at for at, name in enumerate(header) if name.startswith("[")]
    for row in rows:
        for column, (start, end) in enumerate(
            zip(starts, [*starts[1:], len(header)], strict=True)
        ):
            names = ["text", *header[start + 1 : end]]
            yield row[0], column, dict(zip(names, row[start:end], strict=True))


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_a_file_has_the_replies_and_scores_of_promptfoos_table(
    cwd: Path, kind: str
) -> None:
    path = cwd / f"out.{kind}"
    form = {"json": "promptfoo", "jsonl": "promptfoo-lines"}[kind]
    assert recognised(path) == form
    replies = _read(path)
    read = Counter(
        (
            reply.fields["vars.word"],
            MODELS.index(reply.model) * 2 + reply.item.endswith("/prompt-1"),
            reply.text,
            reply.scores.get("pass"),
            f"{reply.scores.get('score', 0):.2f}",
            reply.scores.get("half"),
        )
        for reply in replies
    )
    values = {"PASS": 1.0, "FAIL": 0.0, "ERROR": None}
    assert read == Counter(
        (
            word,
            column,
            cells["text"] if cells["Status"] != "ERROR" else None,
            values[cells["Status"]],
            cells["Score"],
            float(cells["Metric: half"]) if cells["Metric: half"] else None,
        )
        for word, column, cells in _cells(cwd / "out.csv")
    )
    assert read.total() == len(WORDS) * len(MODELS) * 2 * REPEATS


def test_the_same_test_and_prompt_is_one_item_of_all_models(cwd: Path) -> None:
    by_item: dict[str, list[ForeignReply]] = {}
    for reply in _read(cwd / "out.json"):
        by_item.setdefault(reply.item, []).append(reply)
    assert len(by_item) == len(WORDS) * 2
    for replies in by_item.values():
        assert Counter(reply.model for reply in replies) == dict.fromkeys(
            MODELS, REPEATS
        )
        assert len({reply.messages for reply in replies}) == 1
        assert len({(reply.model, reply.epoch) for reply in replies}) == len(replies)


def test_right_answers_have_their_variables_and_failures_their_status(
    cwd: Path,
) -> None:
    replies = _read(cwd / "out.json")
    found = {reply.fields["vars.word"]: reply.target for reply in replies}
    assert found == {
        "alpha": "SAY A",
        "long beta": "long beta",
        "refused": "x",
        "x1": "X1",
        "x2": "X1",
    }
    errors = {(reply.fields["vars.word"], reply.error) for reply in replies}
    assert {error for error in errors if error[1]} == {("refused", "http_400")}
    ends = {(r.fields["vars.word"], r.finish_reason) for r in replies if not r.error}
    assert {word for word, reason in ends if reason == "length"} == {"long beta"}


def test_the_run_has_the_totals_of_promptfoo(cwd: Path, tmp_path: Path) -> None:
    keys = ("stage", "key", "model", "replicate", "reply", "cost_usd", "tokens_in")
    runs = []
    for kind in ("json", "jsonl"):
        done = siftlog(
            *("import", cwd / f"out.{kind}", "--as", kind, "--no-report"),
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 3, done.stderr  # some calls failed
        siftlog("export", kind, cwd=tmp_path)
        lines = (tmp_path / f"runs/{kind}/exports/answers.jsonl").read_text("utf-8")
        rows = [json.loads(line) for line in lines.splitlines()]
        runs.append([{key: row[key] for key in keys} for row in rows])
    by_place = [
        sorted(run, key=lambda row: (row["key"], row["model"], row["replicate"]))
        for run in runs
    ]
    assert by_place[0] == by_place[1]
    columns = json.loads((cwd / "out.json").read_text("utf-8"))["results"]["prompts"]
    assert len(columns) == len(MODELS) * 2
    for number, column in enumerate(columns):
        model, prompt = MODELS[number // 2], number % 2
        of_column = [
            row
            for row in rows
            if row["model"] == model and row["key"].endswith("/prompt-1") == prompt
        ]
        metrics, tokens = column["metrics"], column["metrics"]["tokenUsage"]
        assert sum(row["tokens_in"] for row in of_column) == tokens["prompt"]
        assert sum(row["tokens_out"] for row in of_column) == tokens["completion"]
        details = tokens["completionDetails"]
        cached = sum(row["tokens_cached"] for row in of_column)
        assert cached == details["cacheReadInputTokens"] > 0
        reasoning = sum(row["tokens_reasoning"] for row in of_column)
        assert reasoning == details["reasoning"] > 0
        cost = sum(row["cost_usd"] for row in of_column)
        assert cost == pytest.approx(metrics["cost"], abs=1e-12)
        judged = metrics["testPassCount"] + metrics["testFailCount"]
        assert len(of_column) == judged
    assert sum(row["cost_usd"] for row in rows) > 0
