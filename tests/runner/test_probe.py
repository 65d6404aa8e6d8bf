"""Probes of endpoints with a personality each, and of the simulated dialects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from runner.clients import ClientOptions, Secret
from runner.endpoint_report import ProbeReport
from runner.probe import MOST_PROBES, Probe, most_tokens
from runner.simulate.options import SimulateOptions
from runner.simulate.server import simulated
from tests.wire_forms import openai_response, response_message, response_text
from tests.wire_server import Heard, Said, Speech, WireServer, saying

pytestmark = pytest.mark.asyncio

FITTING = '{"count":2,"even":[8,14]}'
USAGE = {"prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39}


async def probed(url: str, *, is_form_free: bool = True) -> ProbeReport:
    options = ClientOptions(
        base_url=url,
        api_key=Secret("sk-canary/0123456789"),
        logged_headers=re.compile(".*"),
    )
    return await Probe("m", options, is_form_free=is_form_free).run()


async def probe_of(*replies: Speech) -> tuple[ProbeReport, WireServer]:
    async with saying(*replies) as server:
        report = await probed(server.url)
    assert report.calls == len(server.heard) <= MOST_PROBES
    return report, server


def completion(text: str, reason: str = "stop", **fields: object) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"model": "m-1", "choices": [choice], "usage": USAGE, **fields}


def obliging(heard: Heard) -> Said:
    """Follows schemas and keeps to limits."""
    if heard.body.get("max_tokens", heard.body.get("max_completion_tokens")) == 16:
        usage = {"prompt_tokens": 20, "completion_tokens": 16, "total_tokens": 36}
        return Said(body=completion("1, 2, 3, 4", "length", usage=usage))
    text = FITTING if "response_format" in heard.body else "They are 8 and 14."
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-reset-requests": "120ms",
        "x-ms-region": "Sweden Central",
    }
    return Said(body=completion(text), headers=headers)


def refusing(*names: str, status: int = 400) -> Callable[[Heard], Said]:
    """Obliging, but refuses the first of these fields that is sent."""

    def answer(heard: Heard) -> Said:
        for name in names:
            if name in heard.body:
                message = f"Unsupported parameter: '{name}' is not supported."
                error = {"message": message, "param": name, "code": "x"}
                return Said(body={"error": error}, status=status)
        return obliging(heard)

    return answer


def states(report: ProbeReport) -> dict[str, str]:
    return {each.name: each.state for each in report.parameters}


async def test_an_obliging_endpoint_is_known_after_four_calls() -> None:
    report, server = await probe_of(obliging)
    assert report.problem is None
    assert report.calls == 4
    assert states(report) == dict.fromkeys(
        (
            "max_completion_tokens",
            "max_tokens",
            "reasoning_effort",
            "seed",
            "system",
            "temperature",
            "top_p",
        ),
        "accepted",
    )
    assert {p.words for p in report.parameters if p.name == "max_tokens"} == {
        "and kept to"
    }
    assert report.schema == "strict"
    assert report.usage_fields == tuple(USAGE)
    assert report.reasoning == "none counted"
    assert (report.rpm, report.tpm) == (500, 30_000)
    assert ("model", "m-1") in report.served
    assert ("region", "Sweden Central") in report.served
    assert len(report.latencies_ms) == 4
    assert (report.tokens_in, report.tokens_out) == (30 + 30 + 20 + 20, 9 + 9 + 16 + 16)
    assert all(heard.path == "/v1/chat/completions" for heard in server.heard)


async def test_what_is_refused_is_reported_in_the_endpoints_words() -> None:
    report, _ = await probe_of(refusing("temperature", "seed"))
    assert states(report)["temperature"] == "refused"
    assert states(report)["seed"] == "refused"
    assert states(report)["reasoning_effort"] == "accepted"
    (temperature,) = (p for p in report.parameters if p.name == "temperature")
    assert "Unsupported parameter: 'temperature'" in temperature.words
    assert report.refused == {"temperature", "seed"}


async def test_never_more_calls_than_were_announced() -> None:
    every = ("temperature", "response_format", "max_tokens", "seed", "top_p")
    report, server = await probe_of(refusing(*every, "reasoning_effort"))
    assert len(server.heard) == MOST_PROBES == 8
    assert report.problem is None
    stubborn = ("temperature", "response_format", "max_tokens", "max_completion_tokens")
    report, server = await probe_of(refusing(*stubborn))
    assert report.problem is not None
    assert "max_completion_tokens" in report.problem


FUSSY = (
    ("response_format", "The schema contains features that are not supported"),
    ("response_format", "strict is not supported"),
    ("response_format", "json_schema is not supported"),
    ("response_format", "json_object is not supported"),
    ("temperature", "Unsupported parameter: 'temperature'"),
    ("messages", "System role not supported"),
    ("messages", "Developer instruction is not enabled"),
    ("max_tokens", "Unsupported parameter: 'max_tokens'"),
    ("max_completion_tokens", "Unsupported parameter: 'max_completion_tokens'"),
)
"""One refusal more than there are calls, each of another rung."""


async def test_a_ladder_longer_than_the_calls_is_not_gone_down_to_its_end() -> None:
    refusals = [
        Said(body={"error": {"message": words, "param": name}}, status=400)
        for name, words in FUSSY
    ]
    report, server = await probe_of(*refusals)
    assert len(server.heard) == MOST_PROBES == len(FUSSY) - 1
    assert "max_tokens" in str(report.problem)


async def test_what_is_announced_covers_every_call() -> None:
    sent: list[int] = []

    def greedy(heard: Heard) -> Said:
        """Uses every token that it may."""
        limit = heard.body["max_tokens" if "max_tokens" in heard.body else LIMIT]
        sent.append(limit)
        return Said(body=completion("", "length"))

    await probe_of(greedy)
    _, most_out = most_tokens()
    assert sum(sent) <= most_out
    assert max(sent) == 1024


LIMIT = "max_completion_tokens"


async def test_a_refused_key_ends_the_probe_with_its_first_call() -> None:
    error = {"message": "Incorrect API key provided", "code": "invalid_api_key"}
    report, _ = await probe_of(Said(body={"error": error}, status=401))
    assert report.calls == 1
    assert "check the key" in str(report.problem)


async def test_a_schema_that_is_accepted_and_not_followed_is_ignored() -> None:
    report, _ = await probe_of(Said(body=completion("They are 8 and 14.")))
    assert report.schema == "ignored"
    report, _ = await probe_of(Said(body=completion('{"evens": [8]}')))
    assert report.schema == "ignored"
    assert "does not fit" in report.schema_words


async def test_a_server_that_fails_at_schemas_is_asked_without() -> None:
    def failing(heard: Heard) -> Said:
        if "response_format" in heard.body:
            return Said(body={"error": {"message": "grammar: failed"}}, status=500)
        return obliging(heard)

    report, _ = await probe_of(failing)
    assert report.problem is None
    assert report.schema == "refused"


async def test_json_object_is_the_next_best() -> None:
    def older(heard: Heard) -> Said:
        if heard.body.get("response_format", {}).get("type") == "json_schema":
            message = "response_format.type: Input should be 'text' or 'json_object'"
            return Said(body={"error": {"message": message}}, status=400)
        return obliging(heard)

    report, _ = await probe_of(older)
    assert report.schema == "json_object"


async def test_a_limit_that_is_ignored_is_told_from_one_that_is_kept() -> None:
    def deaf(heard: Heard) -> Said:
        if heard.body.get("max_completion_tokens") == 16:
            return Said(body=completion("1, 2, 3, " * 99, usage=None))
        return obliging(heard)

    report, _ = await probe_of(deaf)
    assert states(report)["max_tokens"] == "accepted"
    assert states(report)["max_completion_tokens"] == "ignored"
    assert report.uncounted == 1


@pytest.mark.parametrize(
    ("usage", "place"),
    [
        ((10, 50, 60, 40), "inside the output"),
        ((10, 10, 60, 40), "beside the output"),
        ((10, 10, 60, None), "only in the total"),
        ((10, 10, 20, 0), "none counted"),
        ((10, 10, None, 40), "beside the output"),
    ],
)
async def test_where_reasoning_is_counted_is_seen_by_the_sums(
    usage: tuple[int, int, int | None, int | None], place: str
) -> None:
    prompt, output, total, reasoning = usage
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    report, _ = await probe_of(Said(body=completion(FITTING, usage=counts)))
    assert report.reasoning == place


async def test_a_model_without_chats_is_asked_in_the_responses_form() -> None:
    def only_responses(heard: Heard) -> Said:
        if heard.path != "/v1/responses":
            message = "This model is only supported in v1/responses."
            return Said(body={"error": {"message": message}}, status=404)
        limit = heard.body["max_output_tokens"]
        details = {"reason": "max_output_tokens"}
        part = response_message(response_text(FITTING))
        if limit == 16:
            return Said(
                body=openai_response(status="incomplete", incomplete_details=details)
            )
        return Said(body=openai_response(part))

    report, server = await probe_of(only_responses)
    assert (report.api, report.problem, report.schema) == ("responses", None, "strict")
    assert states(report)["max_output_tokens"] == "accepted"
    assert len([h for h in server.heard if h.path != "/v1/responses"]) == 1


async def test_the_form_that_a_person_chose_is_not_left() -> None:
    message = {"error": {"message": "This model is only supported in v1/responses."}}
    async with saying(Said(body=message, status=404)) as server:
        report = await probed(server.url, is_form_free=False)
    assert report.calls == 1
    assert "v1/responses" in str(report.problem)


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"", b"[]", b'{"choices": []}', b"null"]
)
async def test_what_is_no_endpoint_is_a_problem_in_one_sentence(body: bytes) -> None:
    report, _ = await probe_of(Said(body=body))
    assert report.problem
    assert "\n" not in report.problem
    assert report.dialect.name == "unknown"


GUESSES = {
    "openai": "openai",
    "openai-reasoning": "openai",
    "azure": "azure",
    "anthropic": "anthropic",
    "gemini-openai": "gemini-openai",
    "xai": "xai",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "groq": "groq",
    "openrouter": "openrouter",
    "vllm": "vllm",
    "ollama": "ollama",
    "llamacpp": "llamacpp",
    "tgi": "tgi",
    "litellm-proxy": "litellm-proxy",
    "responses": "openai",
    "plain": "unknown",
    "hostile": "unknown",
}


@pytest.mark.parametrize("name", GUESSES)
async def test_every_dialect_is_recognised_or_honestly_unknown(name: str) -> None:
    async with simulated(SimulateOptions(dialect=name)) as endpoint:
        report = await probed(endpoint.base_url)
    assert report.problem is None
    assert report.calls <= MOST_PROBES
    assert report.dialect.name == GUESSES[name]
    assert report.dialect.evidence or name == "plain"
    assert json.dumps(report.dialect.evidence)
    assert (report.api == "responses") == (name == "responses")
    assert ("temperature" in report.refused) == (name in {"tgi", "responses"})


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("xai", "beside the output"),
        ("gemini-openai", "only in the total"),
        ("openai-reasoning", "inside the output"),
        ("plain", "none counted"),
    ],
)
async def test_where_dialects_count_reasoning(name: str, place: str) -> None:
    async with simulated(SimulateOptions(dialect=name)) as endpoint:
        assert (await probed(endpoint.base_url)).reasoning == place
