"""LiteLLM's proxy in front of `siftlog simulate`: foreign limits, refusals and ids."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runner.simulate.billing import LedgerLine
from tests.conformance.logs import calls_in
from tests.processes import siftlog, simulated, status
from tests.thirdparty import litellm_proxy
from tests.thirdparty.servers import Server, free_port

pytestmark = [
    pytest.mark.timeout(900),  # the environment may have to be made
    pytest.mark.xdist_group("litellm-proxy"),
]

GROUPS = {
    "paper": "m",
    "screen": "m",
    "vectors": "text-embedding-3-small",
    "limited": "m",
    "paced": "m",
    "single": "m",
    "foreign": "absent",
    "doctor": "m",
}
"""Model groups of the proxy, each with a backend of its own, and the model there."""

RPS = 15  #: the limit of a provider and of one key
BURST = 20  #: calls that may have gone out faster than that, before and at first


@dataclass(frozen=True, kw_only=True)
class Proxy:
    server: Server
    ports: Mapping[str, int]  #: of the backends, by model group

    @property
    def url(self) -> str:
        return f"{self.server.url}/v1"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if os.environ.get("SIFTLOG_PROVE"):
        litellm_proxy.ENVIRONMENT.make()
    if not litellm_proxy.ENVIRONMENT.is_made():
        pytest.skip("litellm[proxy] has no environment: make litellm-proxy")
    ports = {group: free_port() for group in GROUPS}
    backends = {group: (model, ports[group]) for group, model in GROUPS.items()}
    cwd = tmp_path_factory.mktemp("proxy")
    with litellm_proxy.proxied(backends, cwd) as server:
        yield Proxy(server=server, ports=ports)


def backend(proxy: Proxy, group: str, *words: object) -> list[object]:
    """Words of a simulated provider behind one model group of the proxy."""
    port = ("--port", proxy.ports[group], "--model", "m")
    return [*port, "--dialect", "openai", "--ledger", "bill.jsonl", *words]


def run(
    proxy: Proxy, job: str, cwd: Path, *words: object, key: str = "sk-free"
) -> tuple[dict[str, Any], str]:
    """The status of a run through the proxy, and what the command printed."""
    done = siftlog(
        *("run", job, "--base-url", proxy.url, "--run-id", "r", "--no-score"),
        *words,
        cwd=cwd,
        env={"OPENAI_API_KEY": key},
        check=False,
    )
    return status(cwd, "r"), done.stdout + done.stderr


def billed(cwd: Path) -> list[LedgerLine]:
    lines = (cwd / "bill.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=LedgerLine) for line in lines]


def chat(group: str) -> list[object]:
    return ["--model", f"openai/{group}"]


CASES: dict[str, tuple[str, list[object]]] = {
    "paper": ("paper-investigation", chat("paper")),
    "screen": ("screening", [*chat("screen"), "--limit", 20]),
    "vectors": (
        "evidence-retrieval",
        [
            *chat("vectors"),
            *("--embed-model", "openai/vectors"),
            *("--limit", 6, "--tasks", "embed"),
        ],
    ),
}


@pytest.mark.parametrize("group", CASES)
def test_all_tasks_are_done_and_tokens_equal_the_providers(
    group: str, proxy: Proxy, tmp_path: Path
) -> None:
    job, words = CASES[group]
    serves = ["--model", GROUPS[group], "--job", job]
    with simulated(*backend(proxy, group, *serves), cwd=tmp_path):
        stands, printed = run(proxy, job, tmp_path, *words)
    lines = billed(tmp_path)
    tasks = stands["tasks"]
    assert tasks["completed"] + tasks["skipped"] == tasks["planned"], printed
    assert tasks["completed"] >= 5
    assert stands["attempts"]["answered"] == len(lines)
    for name in ("tokens_in", "tokens_cached", "tokens_out"):
        assert stands[name] == sum(getattr(line, name) for line in lines), name
    ids = {
        answer.served.request_id
        for answer in calls_in(tmp_path / "runs" / "r").answered
        if answer.served is not None
    }
    assert len(ids) == len(lines)
    assert any(line.path == "/embeddings" for line in lines) == (group == "vectors")
    # the proxy's own call ids, not those of the provider behind it
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-.{12}", str(i)) for i in ids)


def test_the_providers_limits_pass_the_proxy_and_are_kept(
    proxy: Proxy, tmp_path: Path
) -> None:
    limits = ["--limit-headers", "--rps", RPS, "--job", "paper-investigation"]
    with simulated(*backend(proxy, "limited", *limits), cwd=tmp_path):
        words = [*chat("limited"), "--concurrency", 2]
        stands, printed = run(proxy, "paper-investigation", tmp_path, *words)
    assert stands["tasks"]["open"] == stands["tasks"]["failed"] == 0, printed
    assert stands["errors"].get("RateLimited", 0) <= 2
    lines = billed(tmp_path)
    span_s = (
        max(x.received_ms for x in lines) - min(x.received_ms for x in lines)
    ) / 1e3
    assert span_s >= (len(lines) - BURST) / RPS


def test_a_limit_of_the_proxys_own_key_is_kept(proxy: Proxy, tmp_path: Path) -> None:
    # RPS by its headers; within its window of 2 s it would let all pass
    job = "paper-investigation"
    with simulated(*backend(proxy, "paced", "--job", job), cwd=tmp_path):
        words = [*chat("paced"), "--concurrency", 2]
        stands, printed = run(proxy, job, tmp_path, *words, key="sk-paced")
    assert stands["tasks"]["open"] == stands["tasks"]["failed"] == 0, printed
    assert stands["errors"] == {}
    lines = billed(tmp_path)
    span_s = (
        max(x.received_ms for x in lines) - min(x.received_ms for x in lines)
    ) / 1e3
    assert span_s >= (len(lines) - BURST) / RPS


def test_429s_of_the_proxy_are_waited_for(proxy: Proxy, tmp_path: Path) -> None:
    slow = ["--latency-ms", 50, "--job", "paper-investigation"]
    with simulated(*backend(proxy, "single", *slow), cwd=tmp_path):
        words = [*chat("single"), "--limit", 1, "--concurrency", 2]
        stands, printed = run(
            proxy, "paper-investigation", tmp_path, *words, key="sk-single"
        )
    assert stands["tasks"]["open"] == stands["tasks"]["failed"] == 0, printed
    assert set(stands["errors"]) == {"RateLimited"}
    assert stands["attempts"]["answered"] == len(billed(tmp_path))


REFUSALS = {
    "wrong": ("sk-free", "Invalid model name passed in model=wrong", "NotServed"),
    "foreign": ("sk-free", "The model `absent` does not exist", "NotServed"),
    "paper": ("sk-spent", "Budget has been exceeded", "QuotaSpent"),
}
"""Key, cause and kind of error, by the model that is asked for."""


@pytest.mark.parametrize("model", REFUSALS)
def test_a_refusal_that_all_tasks_share_stops_with_its_cause(
    model: str, proxy: Proxy, tmp_path: Path
) -> None:
    key, cause, error = REFUSALS[model]
    with simulated(*backend(proxy, "foreign"), cwd=tmp_path):
        stands, printed = run(
            proxy, "paper-investigation", tmp_path, *chat(model), key=key
        )
    assert cause in printed
    assert set(stands["errors"]) == {error}
    tasks = stands["tasks"]
    assert tasks["open"] + tasks["skipped"] == tasks["planned"] > tasks["skipped"]
    assert stands["attempts"]["started"] <= 8


def test_doctor_reports_the_proxy(proxy: Proxy, tmp_path: Path) -> None:
    limits = ["--limit-headers", "--rps", 50]
    words = ["doctor", "--model", "openai/doctor", "--price", "0,0", "--yes"]
    with simulated(*backend(proxy, "doctor", *limits), cwd=tmp_path):
        done = siftlog(
            *words,
            *("--endpoint", proxy.url),
            cwd=tmp_path,
            env={"OPENAI_API_KEY": "sk-free"},
        )
    report = {line[:22].strip(): line[22:].strip() for line in done.stdout.splitlines()}
    assert report["dialect"].startswith("litellm-proxy")
    assert report["reply_schema"].startswith("strict")
    assert "llm_provider" not in report["limits"]
    assert "3000" in report["limits"]
    assert "model doctor" in report["served by"]  # it hides the name behind its own
    assert "total_tokens" in report["usage"]
