"""llmock: faults and batches as somebody else reads the protocols, and its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import SIFTLOG, siftlog, status
from tests.thirdparty.servers import Server, fetch, fetch_json, free_port, require
from tests.thirdparty.servers import served as serve

require("llmock", in_ci=True)

ENV = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
PAPERS = 4
LIMIT = ["--limit", PAPERS + 1]  # one of them has no text


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = free_port()
    words = [SIFTLOG.with_name("llmock"), "serve", "--port", port]
    url = f"http://127.0.0.1:{port}"
    cwd = tmp_path_factory.mktemp("llmock")
    with serve(words, cwd=cwd, url=url, ready="/health") as server:
        yield server


@pytest.fixture
def llmock(running: Server) -> Server:
    assert fetch(f"{running.url}/_llmock/reset", {})[0] == 200
    return running


def told_to(server: Server, *behaviors: dict[str, Any]) -> None:
    asked = {"behaviors": list(behaviors)}
    assert fetch(f"{server.url}/_llmock/scenario", asked)[0] == 201


def heard(server: Server) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = fetch_json(f"{server.url}/_llmock/requests")[
        "requests"
    ]
    return seen


def errors(server: Server) -> list[Any]:
    """What the server holds against the client, warnings apart."""
    verdict = fetch_json(f"{server.url}/_llmock/verdict")
    return [each for each in verdict["findings"] if each["severity"] != "warning"]


def run(server: Server, cwd: Path, *words: object, path: str = "/v1") -> dict[str, Any]:
    model = ["--model", "openai/gpt-4o-mini", "--base-url", server.url + path]
    siftlog(
        *("run", "paper-investigation", *LIMIT, *model, "--run-id", "r", "--no-score"),
        *words,
        cwd=cwd,
        env=ENV,
        check=False,  # a task that failed is an exit code too
    )
    return status(cwd, "r")


def test_faults_are_outlived_and_the_verdict_is_clean(
    llmock: Server, tmp_path: Path
) -> None:
    told_to(
        llmock,
        {"type": "fail", "status": 429, "retry_after": 1, "times": 2},
        {"type": "fail", "status": 500, "times": 1},
        {"type": "fail", "status": 503, "times": 1},
    )
    stands = run(llmock, tmp_path)
    answered = Counter(each["status"] for each in heard(llmock))
    assert stands["tasks"]["completed"] == PAPERS
    assert answered == {200: stands["attempts"]["answered"], 429: 2, 500: 1, 503: 1}
    assert stands["errors"] == {"RateLimited": 2, "ServerError": 1, "Overloaded": 1}
    assert errors(llmock) == []


def test_a_first_request_that_is_refused_is_tried_again(
    llmock: Server, tmp_path: Path
) -> None:
    # before any reply a refusal may be one that all tasks share: nothing fails of it
    told_to(llmock, {"type": "fail", "status": 400, "times": 1})
    stands = run(llmock, tmp_path)
    assert stands["tasks"]["completed"] == PAPERS
    assert stands["errors"] == {"BadRequest": 1}
    # the judge would have 4xx never repeated, which costs nothing here
    assert [each["code"] for each in errors(llmock)] == ["retried_non_retryable"]


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-haiku-4-5"])
def test_both_forms_of_batches_are_carried_out(
    llmock: Server, tmp_path: Path, model: str
) -> None:
    # a base URL means OpenAI's form, so Anthropic's has the variable of its own clients
    is_openai = model.startswith("openai/")
    base_url = ["--base-url", f"{llmock.url}/v1"] if is_openai else []
    env = {**ENV, "ANTHROPIC_BASE_URL": f"{llmock.url}/anthropic"}
    words = ["--batch", "--batch-poll-s", 0.2, "--run-id", "r", "--no-score"]
    siftlog(
        *("run", "paper-investigation", *LIMIT, "--model", model),
        *(*base_url, *words),
        cwd=tmp_path,
        env=env,
    )
    stands = status(tmp_path, "r")
    assert stands["tasks"]["completed"] == PAPERS
    assert stands["batches"]["open"] == 0
    assert errors(llmock) == []
