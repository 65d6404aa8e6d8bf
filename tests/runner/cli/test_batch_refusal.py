"""A parameter that an endpoint refuses costs one item of a batch run."""

from __future__ import annotations

from pathlib import Path

from tests.commands import siftlog
from tests.processes import simulated, status


def test_a_refused_parameter_costs_one_item_and_not_a_batch(tmp_path: Path) -> None:
    server = ("--dialect", "openai-reasoning", "--batch-seconds", 0.1)
    with simulated(*server, cwd=tmp_path) as url:
        siftlog(
            *("generate", "screening", "--limit", 20, "--run-id", "r"),
            *("--model", "mystery", "--base-url", url, "--price", "1,4"),
            *("--batch", "--batch-poll-s", 0.1, "--stop-if", "off"),
            cwd=tmp_path,
            env={"OPENAI_API_KEY": "k"},
        )
    seen = status(tmp_path, "r")
    assert seen["tasks"]["completed"] == 20
    assert seen["errors"] == {"FormRefused": 1}
    assert {fact["name"] for fact in seen["refused"]} == {"max_tokens", "temperature"}
