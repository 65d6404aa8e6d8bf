"""LiteLLM's proxy in front of `siftlog simulate`: limits told, errors in its words."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import siftlog, simulated, status
from tests.thirdparty.servers import Server, free_port, require, served

require("litellm", "fastapi", "uvicorn", "apscheduler", "backoff")


@contextmanager
def proxy(cwd: Path, backend: str) -> Iterator[Server]:
    params = {"model": "openai/m", "api_base": backend, "api_key": "none"}
    models = [{"model_name": "m", "litellm_params": params}]
    config = cwd / "proxy.yaml"
    config.write_text(json.dumps({"model_list": models}), "utf-8")
    port = free_port()
    script = Path(sys.executable).with_name("litellm")
    words = [script, "--config", config, "--host", "127.0.0.1", "--port", port]
    url = f"http://127.0.0.1:{port}"
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DISABLE_ADMIN_UI": "True"}
    with served(words, cwd=cwd, url=url, ready="/health/liveliness", env=env) as server:
        yield server


def test_a_run_through_the_proxy_is_counted_as_the_backend_counts(
    tmp_path: Path,
) -> None:
    words = ["--limit", 4, "--model", "openai/m", "--run-id", "r", "--no-score"]
    with (
        simulated("--job", "paper-investigation", cwd=tmp_path) as backend,
        proxy(tmp_path, backend) as server,
    ):
        at = ["--base-url", f"{server.url}/v1"]
        siftlog("run", "paper-investigation", *words, *at, cwd=tmp_path)
        direct = ["--base-url", backend, "--run-id", "d"]
        siftlog("run", "paper-investigation", *words, *direct, cwd=tmp_path)
    through, without = status(tmp_path, "r"), status(tmp_path, "d")
    assert through["tasks"]["completed"] == through["tasks"]["planned"] > 0
    for name in ("tokens_in", "tokens_out"):
        assert through[name] == without[name] > 0
