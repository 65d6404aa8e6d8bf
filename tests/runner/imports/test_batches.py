"""Files of batches: results, requests, and what joins them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.errors import DatasetError, UsageError
from runner.imports.forms import read_files, recognised
from runner.imports.records import ForeignReply
from runner.messages import Message, TextPart, Usage
from store.served_by import ServedBy
from tests.runner.imports.foreign_files import lines

CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1769851800,
    "model": "gpt-x-2026-01-01",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Four."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-20260101",
    "content": [{"type": "text", "text": "Four."}],
    "stop_reason": "max_tokens",
    "usage": {
        "input_tokens": 5,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 0,
    },
}


def openai(item: str, body: object, status: int = 200) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": item, "response": response, "error": None}


def request(item: str, body: object) -> dict[str, Any]:
    url = "/v1/chat/completions"
    return {"custom_id": item, "method": "POST", "url": url, "body": body}


def asked(*roles: str) -> list[dict[str, str]]:
    return [{"role": role, "content": f"As {role}"} for role in roles]


def read(*paths: Path) -> dict[str, ForeignReply]:
    return {reply.item: reply for _, reply in read_files(paths)}


def test_results_of_openai_are_stored_as_received(tmp_path: Path) -> None:
    refused = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}
    path = lines(
        tmp_path / "out.jsonl",
        openai("a", CHAT),
        openai("b", refused, 429),
        {"custom_id": "c", "response": None, "error": {"code": "batch_expired"}},
    )
    bodies = {"model": "gpt-x", "messages": asked("developer", "user")}
    requests = lines(
        tmp_path / "in.jsonl", *(request(item, bodies) for item in ("a", "b", "c", "d"))
    )
    assert recognised(path) == "openai-batch"
    replies = read(path, requests)
    answered = replies["a"]
    assert answered.body is not None
    assert json.loads(answered.body) == CHAT
    assert answered == ForeignReply(
        item="a",
        model="gpt-x",
        messages=(
            Message(role="system", parts=(TextPart(text="As developer"),)),
            Message(role="user", parts=(TextPart(text="As user"),)),
        ),
        text="Four.",
        usage=Usage(tokens_in=9, tokens_out=2),
        served=ServedBy(model="gpt-x-2026-01-01", request_id="chatcmpl-1"),
        created_s=1769851800,
        form="openai.chat",
        body=answered.body,
    )
    assert {item: reply.error for item, reply in replies.items()} == {
        "a": "",
        "b": "RateLimited",
        "c": "batch_expired",
        "d": "no_result",
    }
    assert {reply.model for reply in replies.values()} == {"gpt-x"}


def test_a_reply_of_the_responses_api_is_read(tmp_path: Path) -> None:
    text = {"type": "output_text", "text": "Four.", "annotations": []}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1769851800,
        "status": "completed",
        "model": "gpt-x",
        "output": [{"type": "message", "role": "assistant", "content": [text]}],
        "usage": {"input_tokens": 4, "output_tokens": 1, "total_tokens": 5},
    }
    asks = {"model": "gpt-x", "instructions": "Be brief.", "input": "How many?"}
    replies = read(
        lines(tmp_path / "out.jsonl", openai("a", body)),
        lines(tmp_path / "in.jsonl", request("a", asks)),
    )
    assert replies["a"].text == "Four."
    assert replies["a"].form == "openai.responses"
    assert [m.text for m in replies["a"].messages] == ["Be brief.", "How many?"]


def test_a_result_without_response_and_error_is_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "out.jsonl", {"custom_id": "a", "response": None})
    with pytest.raises(
        DatasetError, match=r"^out\.jsonl line 1: neither a response nor an error \("
    ):
        read(path)


@pytest.mark.parametrize("is_one_object", [False, True])
def test_results_of_anthropic_are_stored_as_received(
    tmp_path: Path, *, is_one_object: bool
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    path = lines(
        tmp_path / "out.jsonl",
        {"custom_id": "a", "result": {"type": "succeeded", "message": MESSAGE}},
        {"custom_id": "b", "result": {"type": "errored", "error": error}},
        {"custom_id": "c", "result": {"type": "expired"}},
    )
    blocks = [{"type": "text", "text": "Be brief."}]
    params = {"model": "claude-x", "system": blocks, "messages": asked("user")}
    requests = [{"custom_id": item, "params": params} for item in ("a", "b", "c")]
    if is_one_object:
        prompts = tmp_path / "in.json"
        prompts.write_text(json.dumps({"requests": requests}, indent=1), "utf-8")
    else:
        prompts = lines(tmp_path / "in.jsonl", *requests)
    assert recognised(path) == "anthropic-batch"
    replies = read(prompts, path)
    answered = replies["a"]
    assert (answered.model, answered.text) == ("claude-x", "Four.")
    assert answered.finish_reason == "length"
    assert answered.usage == Usage(tokens_in=8, tokens_out=2, tokens_cached=3)
    assert [m.text for m in answered.messages] == ["Be brief.", "As user"]
    assert (replies["b"].error, replies["c"].error) == ("overloaded_error", "expired")


def test_requests_alone_and_failures_without_a_model_are_refused(
    tmp_path: Path,
) -> None:
    body = {"model": "m", "messages": asked("user")}
    with pytest.raises(UsageError, match=r"^in\.jsonl has requests without replies"):
        read(lines(tmp_path / "in.jsonl", request("a", body)))
    failed = {"custom_id": "c", "response": None, "error": {"code": "batch_expired"}}
    path = lines(tmp_path / "out.jsonl", failed)
    with pytest.raises(UsageError, match=r"names no model for 'c'; add --model NAME, "):
        read(path)


def test_replies_of_other_kinds_and_broken_lines_are_named(tmp_path: Path) -> None:
    vectors = {"object": "list", "data": [], "model": "e"}
    path = lines(tmp_path / "out.jsonl", openai("a", CHAT), openai("b", vectors))
    with pytest.raises(DatasetError, match=r"^out\.jsonl line 2: a reply of the kind"):
        read(path)
    whole = path.read_text("utf-8")
    path.write_text(whole[: len(whole) - 30], "utf-8")
    with pytest.raises(DatasetError, match=r"^out\.jsonl line 2: not valid JSON, "):
        read(path)
