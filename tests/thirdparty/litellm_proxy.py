"""LiteLLM's proxy in an environment of its own, as its pins conflict with siftlog's.

`python -m tests.thirdparty.litellm_proxy` makes the environment (`make litellm-proxy`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.thirdparty.servers import Server, free_port, served

HERE: Final = Path(__file__).parent
CONSTRAINTS: Final = HERE / "litellm-constraints.txt"
HOME: Final = Path(sys.prefix) / "litellm-proxy"
"""In the project's own environment, which is kept out of the repository."""

READY: Final = HOME / ".ready"
ENV: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the table of prices is downloaded
    "LITELLM_RATE_LIMIT_WINDOW_SIZE": "2",  # seconds; a refusal's retry-after
    "LITELLM_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "127.0.0.1",
}


def is_made() -> bool:
    """Whether the environment is there, with the versions of today's constraints."""
    return READY.exists() and READY.read_text("utf-8") == _wanted()


def make() -> None:
    """Make the environment unless it is there; several processes make it once."""
    with HOME.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made():
            return
        python = HOME / "bin" / "python"
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run([sys.executable, "-m", "venv", "--clear", HOME], check=True)
        words = [*quiet, "-c", CONSTRAINTS, "litellm[proxy]"]
        subprocess.run([python, "-m", "pip", "install", *words], check=True)
        READY.write_text(_wanted(), "utf-8")


def _wanted() -> str:
    return hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()


def version() -> str:
    """The version that the constraints pin."""
    lines = CONSTRAINTS.read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith("litellm==")).partition("==")[
        2
    ]


@contextmanager
def proxied(backends: Mapping[str, tuple[str, int]], cwd: Path) -> Iterator[Server]:
    """The proxy in front of *backends*: model group to model and port."""
    shutil.copy(HERE / "litellm_keys.py", cwd)
    config = cwd / "proxy.yaml"
    # JSON is YAML too
    config.write_text(json.dumps(_config(backends)), "utf-8")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = [
        HOME / "bin" / "litellm",
        *("--config", config, "--host", "127.0.0.1", "--port", port),
        *("--telemetry", "False"),
    ]
    env = {**ENV, "PATH": f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    ready = "/health/liveliness"
    with served(words, cwd=cwd, url=url, ready=ready, env=env) as server:
        yield server


def _config(backends: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
    return {
        "model_list": [
            {
                "model_name": group,
                "litellm_params": {
                    "model": f"openai/{model}",
                    "api_base": f"http://127.0.0.1:{port}/v1",
                    "api_key": "none",
                },
            }
            for group, (model, port) in backends.items()
        ],
        "litellm_settings": {"telemetry": False, "num_retries": 0},
        "general_settings": {
            "master_key": "sk-master-of-nothing-0123456789",
            "custom_auth": "litellm_keys.check",
        },
        # what the client does with a failure is tested, not what the proxy hides
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


if __name__ == "__main__":
    make()
