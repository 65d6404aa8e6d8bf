"""All five jobs against llama.cpp's server, with a model of random weights."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.conformance.logs import calls_in
from tests.processes import siftlog, start, status, until
from tests.thirdparty.servers import Server, fetch, free_port, require, served

require("xllamacpp", "gguf", in_ci=True)

from tests.thirdparty.tiny_gguf import CONTEXT, write_model  # noqa: E402

pytestmark = pytest.mark.xdist_group("llamacpp")

PROVE = "SIFTLOG_PROVE" in os.environ
HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "concepts.md"
Kind = Literal["chat", "embed", "rank"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Kind, Path]:
    folder = tmp_path_factory.mktemp("models")
    chat, rank = folder / "chat.gguf", folder / "rank.gguf"
    text = PAGE.read_text("utf-8")
    write_model(chat, text)
    write_model(rank, text, "qwen3")
    assert chat.stat().st_size < 700_000
    return {"chat": chat, "embed": chat, "rank": rank}


@contextmanager
def llama(
    models: Mapping[Kind, Path],
    kind: Kind,
    cwd: Path,
    *,
    context: int = CONTEXT,
    port: int | None = None,
) -> Iterator[Server]:
    port = port or free_port()
    script = HERE / "llama_process.py"
    words = [sys.executable, script, models[kind], kind, port, context]
    url = f"http://127.0.0.1:{port}"
    with served(words, cwd=cwd, url=url, ready="/health") as server:
        yield server


def counted(server: Server) -> dict[str, int]:
    """Tokens that the server has counted: prompts, the cached part of them, replies."""
    text = fetch(f"{server.url}/metrics")[1].decode()

    def value(name: str) -> int:
        found = re.search(rf"^llamacpp:{name} (\S+)$", text, re.MULTILINE)
        assert found is not None, text
        return int(float(found[1]))

    cached = value("prompt_tokens_cached_total")
    return {
        "tokens_in": value("prompt_tokens_total") + cached,
        "tokens_cached": cached,
        "tokens_out": value("tokens_predicted_total"),
    }


def figures(stands: Mapping[str, Any]) -> dict[str, int]:
    return {name: stands[name] for name in ("tokens_in", "tokens_cached", "tokens_out")}


def run_words(job: str, server: Server) -> list[object]:
    url = f"{server.url}/v1"
    return ["run", job, "--model", "openai/tiny", "--base-url", url, "--run-id", "r"]


TABLES = HERE.parent.parent / "jobs" / "screening" / "sample" / "tables"
SHORT = ["--max-output-tokens", 60]
CASES: dict[str, tuple[Kind, list[object]]] = {
    "paper-investigation": ("chat", ["--limit", 1, "--max-tokens-extract", 60]),
    "screening": ("chat", ["--validation-set", "set", *SHORT]),
    "property-extraction": ("chat", ["--max-chars", 4000, *SHORT]),
    "review-benchmark": ("chat", ["--limit", 1, "--max-candidates", 5, *SHORT]),
    "evidence-retrieval, vectors": (
        "embed",
        ["--limit", 4, "--tasks", "embed", "--embed-model", "openai/tiny", *SHORT],
    ),
    "evidence-retrieval, ranks": (
        "rank",
        [
            "--limit",
            4,
            "--tasks",
            "rerank_api",
            "--rerank-model",
            "openai/tiny",
            *SHORT,
        ],
    ),
}
"""The five jobs on the first of their samples, by the kind of server."""


def prepare(job: str, cwd: Path) -> None:
    """Make what a job needs that its sample has only whole."""
    if job == "screening":
        size = ["--max-reviews", 1, "--max-included", 5, "--per-review", 2]
        siftlog("prepare", job, "--tables", TABLES, *size, "--out", "set", cwd=cwd)


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_request_is_answered_and_counted_as_the_server_counts(
    case: str, models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    job = case.partition(",")[0]
    kind, words = CASES[case]
    prepare(job, tmp_path)
    with llama(models, kind, tmp_path) as server:
        free = ["--structured", "off", "--no-score"]
        siftlog(*run_words(job, server), *words, *free, cwd=tmp_path)
        stands = status(tmp_path, "r")
        counts = counted(server)
    tasks = stands["tasks"]
    assert tasks["completed"] + tasks["skipped"] == tasks["planned"]
    assert tasks["completed"] >= 1
    assert figures(stands) == counts


@pytest.mark.skipif(not PROVE, reason="SIFTLOG_PROVE=1 runs every chat with a schema")
@pytest.mark.parametrize(
    "case", [name for name, (kind, _) in CASES.items() if kind == "chat"]
)
def test_every_chat_is_answered_with_its_schema(
    case: str, models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    prepare(case, tmp_path)
    with llama(models, "chat", tmp_path) as server:
        words = [*run_words(case, server), *CASES[case][1]]
        siftlog(*words, "--no-score", "--stop-if", "off", cwd=tmp_path)
        stands = status(tmp_path, "r")
        counts = counted(server)
    tasks = stands["tasks"]
    assert tasks["completed"] + tasks["skipped"] == tasks["planned"]
    # chance writes bytes that are no UTF-8 in a few replies, and the server's own 500
    assert set(stands["errors"]) <= {"ContentFault"}
    assert figures(stands)["tokens_out"] <= counts["tokens_out"]
    assert stands["errors"] or figures(stands) == counts


def test_a_500_that_comes_of_the_content_leads_to_a_request_without_a_schema(
    models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    # a byte that no UTF-8 has: the server's grammar permits it, its own reader does not
    prepare("screening", tmp_path)
    likely = {"logit_bias": {str(0xFF): 60}}
    words: list[object] = ["--validation-set", "set", "--max-output-tokens", 200]
    words += ["--extra-body", json.dumps(likely)]
    with llama(models, "chat", tmp_path) as server:
        siftlog(
            *run_words("screening", server),
            *(*words, "--no-score", "--stop-if", "off"),
            cwd=tmp_path,
        )
        stands = status(tmp_path, "r")
        counts = counted(server)
    assert stands["tasks"]["completed"] == stands["tasks"]["planned"] > 2
    assert stands["attempts"]["started"] <= 3 * stands["tasks"]["planned"]
    assert set(stands["errors"]) == {"ContentFault"}
    assert figures(stands)["tokens_out"] <= counts["tokens_out"]


def test_any_name_is_served_and_the_one_that_served_is_recorded(
    models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    # a server of one model refuses no name
    prepare("screening", tmp_path)
    words = [*CASES["screening"][1], "--structured", "off", "--no-score"]
    with llama(models, "chat", tmp_path) as server:
        siftlog(*run_words("screening", server), *words, cwd=tmp_path)
    served = {
        answer.served.model
        for answer in calls_in(tmp_path / "runs" / "r").answered
        if answer.served is not None
    }
    assert {Path(str(name)).name for name in served} == {"chat.gguf"}


LACKS: dict[str, tuple[str, list[object], str]] = {
    "batches": ("screening", ["--batch"], "the endpoint has no batch API"),
    "embeddings": (
        "evidence-retrieval",
        ["--limit", 4, "--tasks", "embed", "--embed-model", "openai/tiny"],
        "This server does not support embeddings",
    ),
}
"""Job, words and cause, by what a server of chats has not."""


@pytest.mark.parametrize("what", LACKS)
def test_what_the_server_has_not_stops_the_run_and_leaves_its_tasks_open(
    what: str, models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    job, words, cause = LACKS[what]
    prepare(job, tmp_path)
    words = [*words, *SHORT, "--no-score"]
    if job == "screening":
        words += ["--validation-set", "set"]
    with llama(models, "chat", tmp_path) as server:
        done = siftlog(*run_words(job, server), *words, cwd=tmp_path, check=False)
        stands = status(tmp_path, "r")
    assert done.returncode != 0
    assert cause in done.stderr + done.stdout
    assert stands["tasks"]["failed"] == 0
    assert stands["tasks"]["open"] > 0
    assert set(stands["errors"]) <= {"NotServed", "Unavailable"}


def test_doctor_reports_the_server(models: Mapping[Kind, Path], tmp_path: Path) -> None:
    words = ["doctor", "--model", "openai/tiny", "--price", "0,0", "--yes", "--json"]
    with llama(models, "chat", tmp_path) as server:
        done = siftlog(*words, "--endpoint", f"{server.url}/v1", cwd=tmp_path)
        counts = counted(server)
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["reply_schema"] == "strict"
    assert report["tokens_in"] == counts["tokens_in"]
    assert report["tokens_out"] == counts["tokens_out"]
    assert "chat.gguf" in str(report["served"])


def test_a_prompt_longer_than_the_context_fails_its_task_alone(
    models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    with llama(models, "chat", tmp_path, context=1024) as server:
        words = ["--max-chars", 4000, *SHORT, "--structured", "off", "--no-score"]
        siftlog(
            *run_words("property-extraction", server), *words, cwd=tmp_path, check=False
        )
        stands = status(tmp_path, "r")
    assert stands["tasks"]["open"] == 0
    assert set(stands["errors"]) == {"ContextTooLong"}
    assert stands["attempts"]["started"] == stands["tasks"]["planned"]


def test_a_server_that_was_killed_is_waited_for(
    models: Mapping[Kind, Path], tmp_path: Path
) -> None:
    prepare("screening", tmp_path)
    port = free_port()
    slow = ["--validation-set", "set", "--max-output-tokens", 400]
    words = [*slow, "--structured", "off", "--no-score", "--concurrency", 1]
    with llama(models, "chat", tmp_path, port=port) as server:
        run = start(*run_words("screening", server), *words, cwd=tmp_path)
        until(tmp_path, "r", lambda stands: stands["tasks"]["completed"] >= 1)
        server.kill()
    until(tmp_path, "r", lambda stands: stands["attempts"]["failed"] >= 1)
    with llama(models, "chat", tmp_path, port=port) as server:
        assert run.wait(timeout=60) == 0
        stands = status(tmp_path, "r")
    assert stands["tasks"]["completed"] == stands["tasks"]["planned"]
    # while it loads its model it answers 503
    assert "ConnectionLost" in stands["errors"]
    assert set(stands["errors"]) <= {"ConnectionLost", "Overloaded"}
