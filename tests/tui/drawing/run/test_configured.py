"""How a run was set up: everything is named, and no secret is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from store.events import Input, RunStarted
from tui.screens.config import MASK, configured, mask_secrets, masked

KEY = "sk-proj-0123456789abcdef"
BEGAN = RunStarted(
    run_id="r1",
    job="claim-extract",
    job_version="7",
    code_sha256="c0de",
    settings=json.dumps({"limit": 5, "endpoint": {"api_key": "hunter2"}}),
    models={"subject": ["m-large", "m-small"], "judge": ["m-judge"]},
    replicates=3,
    inputs=[Input(setting="papers", path="/data/papers", sha256="ab12")],
    siftlog_version="0.1.0",
    budget_usd=5.0,
)


def test_it_names_models_plan_inputs_settings_and_hashes() -> None:
    text = configured(BEGAN, {"extract": 1204}, {"concurrency": 8})
    for words in (
        "claim-extract 7",
        "sha256 c0de",
        "m-large, m-small",
        "m-judge",
        "extract  1,204",
        "/data/papers",
        "ab12",
        "$5.00",
        "limit",
        "concurrency  8",
    ):
        assert words in text


def test_nothing_secret_is_shown_wherever_it_stands() -> None:
    config = {
        "authorization": "Bearer abc",
        "headers": [{"X-Api-Key": "hunter2"}, {"note": f"use {KEY} here"}],
        "base_url": "https://ann:hunter2@example.org/v1",
        "session_cookie": "hunter2",
        "apiKey": "hunter2",
    }
    began = replace(BEGAN, models={"subject": [f"m?key={KEY}"]})
    text = configured(began, {}, config)
    for secret in ("hunter2", "abc", KEY):
        assert secret not in text.replace("ab12", "")
    assert text.count(MASK) == 8


@pytest.mark.parametrize("name", ["max_tokens", "context_tokens", "keyword", "n"])
def test_what_is_no_secret_is_shown(name: str) -> None:
    assert masked({name: "512"}) == {name: "512"}
    assert masked({"api_key": "", "top_key": 5}) == {"api_key": "", "top_key": 5}


def test_a_header_keeps_its_kind() -> None:
    assert mask_secrets("Authorization: Bearer xyz.abc") == "Authorization: Bearer ***"
    assert mask_secrets("http://host:8000/v1") == "http://host:8000/v1"


def test_a_missing_configuration_is_said() -> None:
    assert "none that can be read" in configured(BEGAN, {}, None)
    assert "tasks planned by stage\n    none" in configured(BEGAN, {}, {})
