"""Forms of usage files, each in the words of its provider's documentation."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from runner.errors import DatasetError
from runner.reconcile.usage_file import UsageLine, read_usage
from runner.reconcile.usage_forms import FORMS

DAY = 86_400_000_000
NOON = 1_767_355_200_000_000  # 2026-01-02T12:00:00Z
MIDNIGHT = NOON - DAY // 2

LITELLM = {
    "request_id": "chatcmpl-1",
    "litellm_call_id": "call-1",
    "spend": 0.00012345,
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "startTime": "2026-01-02T12:00:00.000000+00:00",
    "endTime": "2026-01-02 12:00:01",
    "model": "gpt-4o-mini",
    "metadata": {
        "usage_object": {
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }
    },
}
GENERATION = {
    "data": {
        "id": "gen-1",
        "upstream_id": "chatcmpl-9",
        "total_cost": 0.0015,
        "created_at": "2026-01-02T12:00:00.000000+00:00",
        "model": "openai/gpt-4o-mini",
        "tokens_prompt": 9,
        "native_tokens_prompt": 100,
        "native_tokens_completion": 20,
        "native_tokens_reasoning": 5,
        "native_tokens_cached": 64,
    }
}
ACTIVITY = {
    "date": "2026-01-02",
    "model": "openai/gpt-4o-mini",
    "model_permaslug": "openai/gpt-4o-mini-2024-07-18",
    "usage": 0.015,
    "byok_usage_inference": 0,
    "requests": 5,
    "prompt_tokens": 50,
    "completion_tokens": 125,
    "reasoning_tokens": 25,
}
OPENAI_USAGE = {
    "object": "page",
    "data": [
        {
            "object": "bucket",
            "start_time": MIDNIGHT // 10**6,
            "end_time": (MIDNIGHT + DAY) // 10**6,
            "results": [
                {
                    "object": "organization.usage.completions.result",
                    "input_tokens": 1000,
                    "output_tokens": 500,
                    "input_cached_tokens": 800,
                    "num_model_requests": 5,
                    "model": "gpt-4o-mini-2024-07-18",
                    "batch": True,
                    "service_tier": None,
                }
            ],
        },
        {"object": "bucket", "start_time": 1, "end_time": 2, "results": []},
    ],
    "has_more": False,
}
OPENAI_COSTS = {
    "object": "bucket",
    "start_time": MIDNIGHT // 10**6,
    "end_time": (MIDNIGHT + DAY) // 10**6,
    "results": [
        {
            "object": "organization.costs.result",
            "amount": {"value": 0.06, "currency": "usd"},
            "line_item": None,
        }
    ],
}
ANTHROPIC_USAGE = {
    "starting_at": "2026-01-02T00:00:00Z",
    "ending_at": "2026-01-03T00:00:00Z",
    "results": [
        {
            "uncached_input_tokens": 100,
            "cache_creation": {
                "ephemeral_1h_input_tokens": 30,
                "ephemeral_5m_input_tokens": 20,
            },
            "cache_read_input_tokens": 50,
            "output_tokens": 70,
            "model": "claude-sonnet-4-5",
            "service_tier": "batch",
        }
    ],
}
ANTHROPIC_COSTS = {
    "starting_at": "2026-01-02T00:00:00Z",
    "ending_at": "2026-01-03T00:00:00Z",
    "results": [{"amount": "123.45", "currency": "USD", "model": "claude-sonnet-4-5"}],
}
OPENROUTER = {
    "generation_id": "gen-1",
    "created_at": "2026-01-02 12:00:00.000",
    "cost_total": "0.0123",
    "byok_usage_inference": "0",
    "tokens_prompt": "100",
    "tokens_completion": "20",
    "tokens_reasoning": "5",
    "tokens_cached": "64",
    "model_permaslug": "openai/gpt-4o-mini",
    "cancelled": "false",
}
CONSOLE = {
    "usage_date_utc": "2026-01-02",
    "model_version": "claude-sonnet-4-5",
    "usage_type": "standard",
    "usage_input_tokens_no_cache": "100",
    "usage_input_tokens_cache_write_5m": "20",
    "usage_input_tokens_cache_write_1h": "30",
    "usage_input_tokens_cache_read": "50",
    "usage_output_tokens": "70",
}
PLAIN = {
    "request_id": "r1",
    "time": str(NOON // 10**6),
    "model": "m",
    "tokens_in": "100",
    "tokens_out": "20.0",
    "cost_usd": "$0.000001",
    "batch": "true",
}


def _file(tmp_path: Path, record: dict[str, Any], *, is_csv: bool = False) -> Path:
    path = tmp_path / ("usage.csv" if is_csv else "usage.jsonl")
    if not is_csv:
        path.write_text(f"{json.dumps(record)}\n")
        return path
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(record))
        writer.writeheader()
        writer.writerow(record)
    return path


def _line(form: str, tmp_path: Path) -> UsageLine:
    record, is_csv = {
        "litellm": (LITELLM, False),
        "openrouter": (OPENROUTER, True),
        "openrouter-generation": (GENERATION, False),
        "openrouter-activity": (ACTIVITY, False),
        "openai-usage": (OPENAI_USAGE, False),
        "openai-costs": (OPENAI_COSTS, False),
        "anthropic-usage": (ANTHROPIC_USAGE, False),
        "anthropic-costs": (ANTHROPIC_COSTS, False),
        "anthropic-console": (CONSOLE, True),
        "plain": (PLAIN, True),
    }[form]
    usage = read_usage(_file(tmp_path, record, is_csv=is_csv))
    assert usage.form == form
    (line,) = usage.lines
    return line


@pytest.mark.parametrize("form", [form.name for form in FORMS])
def test_each_form_has_a_time_and_is_a_call_or_a_sum(form: str, tmp_path: Path) -> None:
    line = _line(form, tmp_path)
    if line.is_sum:
        assert (line.start_us, line.end_us) == (MIDNIGHT, MIDNIGHT + DAY)
    else:
        assert line.start_us == NOON
        assert (line.tokens_in, line.tokens_out) == (100, 20)
        assert line.calls == 1


def test_a_call_of_litellm_has_both_of_its_ids(tmp_path: Path) -> None:
    line = _line("litellm", tmp_path)
    assert line.ids == ("chatcmpl-1", "call-1")
    assert (line.tokens_cached, line.tokens_reasoning) == (64, 5)
    assert line.billed_pico == 123_450_000


def test_an_object_in_a_cell_of_csv_is_read(tmp_path: Path) -> None:
    record = {**LITELLM, "metadata": json.dumps(LITELLM["metadata"])}
    (line,) = read_usage(_file(tmp_path, record, is_csv=True)).lines
    assert (line.tokens_cached, line.tokens_reasoning) == (64, 5)


def test_the_native_tokens_of_a_generation_count(tmp_path: Path) -> None:
    line = _line("openrouter-generation", tmp_path)
    assert line.ids == ("gen-1", "chatcmpl-9")
    assert (line.tokens_in, line.tokens_cached) == (100, 64)


def test_prompts_of_anthropic_are_the_sum_of_their_parts(tmp_path: Path) -> None:
    for form in ("anthropic-usage", "anthropic-console"):
        line = _line(form, tmp_path)
        assert (line.tokens_in, line.tokens_cache_write) == (200, 50)
        assert line.tokens_cache_write_1h == 30


def test_amounts_of_anthropic_are_in_cents(tmp_path: Path) -> None:
    usage = read_usage(_file(tmp_path, ANTHROPIC_COSTS))
    assert usage.lines[0].billed_pico == 1_234_500_000_000
    assert usage.tolerance_pico == 50_000_000  # the fourth decimal of a dollar


def test_openai_states_batches_and_calls(tmp_path: Path) -> None:
    line = _line("openai-usage", tmp_path)
    assert (line.is_batch, line.calls, line.tokens_cached) == (True, 5, 800)
    assert _line("openai-costs", tmp_path).billed_pico == 60_000_000_000


def test_a_span_without_usage_in_the_csv_of_openai_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_text(
        "start_time,end_time,model,input_tokens,output_tokens,num_model_requests\n"
        "1767312000,1767398400,,,,\n"
        "1767312000,1767398400,gpt-4o,7,3,1\n"
    )
    (line,) = read_usage(path).lines
    assert (line.row, line.tokens_in) == (3, 7)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "u.csv",
            "a,b\n1,2\n",
            "row 2: no form of docs/reconcile.md has the fields a, b;",
        ),
        ("u.csv", "time,model,cost_usd\n1,m\n", "row 2: it has not as many cells"),
        (
            "u.csv",
            "time,model,cost_usd\nnoon,m,1\n",
            "row 2: time is 'noon', not a time; correct the row",
        ),
        (
            "u.csv",
            "time,model,cost_usd,tokens_in\n1,m,1,-3\n",
            "row 2: tokens_in is '-3', not a count",
        ),
        ("u.csv", "time,model,cost_usd\n1,m,inf\n", "not an amount of dollars"),
        ("u.csv", "time,model,cost_usd,batch\n1,m,1,x\n", "batch is 'x', not true or"),
        ("u.jsonl", "{\n", "not valid JSON"),
        ("u.txt", "time,model\n1,m\n", "correct the row, or name a file of CSV .csv"),
        ("u.jsonl.gz", "\x1f\x8b\x08\n", "is not UTF-8 text; unpack it, or export"),
        ("u.jsonl", "3\n", "row 1: not an object; export it as JSON lines"),
        ("u.jsonl", "", "has no line of usage; export the usage again"),
        (
            "u.jsonl",
            '{"time": 1, "model": "m", "cost_usd": 1}\n{"x": 1}\n',
            "row 2: this is no line of the form plain",
        ),
        ("u.csv", "time,model,cost_usd\n1,\xff,1\n", "is not UTF-8 text"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DatasetError) as caught:
        read_usage(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none\.csv cannot be read \(No such file"):
        read_usage(tmp_path / "none.csv")
