"""LiteLLM's proxy in an environment of its own, as its pins conflict with siftlog's.

`python -m tests.thirdparty.litellm_proxy` makes the environment (`make litellm-proxy`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.thirdparty.environments import Environment
from tests.thirdparty.servers import Server, free_port, served

HERE: Final = Path(__file__).parent
CONSTRAINTS: Final = HERE / "litellm-constraints.txt"
ENVIRONMENT: Final = Environment(
    name="litellm-proxy", constraints=CONSTRAINTS, packages=("litellm[proxy]",)
)
ENV: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the table of prices is downloaded
    "LITELLM_RATE_LIMIT_WINDOW_SIZE": "2",  # seconds; a refusal's retry-after
    "LITELLM_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "127.0.0.1",
}


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
    programs = ENVIRONMENT.home / "bin"
    words = [
        programs / "litellm",
        *("--config", config, "--host", "127.0.0.1", "--port", port),
        *("--telemetry", "False"),
    ]
    env = {**ENV, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
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
    ENVIRONMENT.make()
