"""OpenAI's form of chat completions, which most servers speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from runner.errors import MalformedReply
from runner.reply import Reply, Usage
from runner.request import ChatRequest, Message, Schema
from runner.wire.reading import UNREADABLE, read_body, usage_of
from runner.wire.shape import (
    PLAIN,
    Shape,
    Structure,
    chat_fields,
    messages_in,
    schema_json,
)
from runner.wire.texts import encoded_part, quoted

OPENAI_CHAT: Final = "openai.chat"
"""The form of OpenAI's chat completions."""


def encode_chat(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """The body of a chat completion request.

    Args:
        request: What is asked.
        model: The model's name as the endpoint knows it.
        shape: How the endpoint wants it written.
    """
    body: dict[str, object] = {
        "model": model,
        "messages": [
            {"role": role, "content": _content(message)}
            for role, message in messages_in(request, shape)
        ],
    }
    if request.schema is not None and shape.structure is not Structure.TEXT:
        body["response_format"] = response_format(request.schema, shape)
    return msgspec.json.encode(body | chat_fields(request, shape))


def response_format(schema: Schema, shape: Shape) -> dict[str, object]:
    """What asks for a reply that follows *schema*, or at least for a JSON object."""
    if shape.structure is Structure.OBJECT:
        return {"type": "json_object"}
    asked: dict[str, object] = {"name": schema.name}
    if shape.structure is Structure.SCHEMA:
        asked["strict"] = True
    asked["schema"] = msgspec.Raw(schema_json(schema, shape).encode())
    return {"type": "json_schema", "json_schema": asked}


def encode_reply(
    text: str, finish_reason: str = "stop", usage: Usage | None = None
) -> bytes:
    """An answer that never crossed a wire, in the form `OPENAI_CHAT`."""
    body: dict[str, object] = {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": quoted(text),
                },
                "finish_reason": finish_reason,
            }
        ]
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage.tokens_in,
            "completion_tokens": usage.tokens_out,
            "prompt_tokens_details": {
                "cached_tokens": usage.tokens_cached,
                "cache_creation_tokens": usage.tokens_cache_write,
            },
        }
    return msgspec.json.encode(body)


def _content(message: Message) -> msgspec.Raw:
    return msgspec.Raw(
        b'"%s"' % b"".join([encoded_part(part.text).json for part in message.parts])
    )


class _TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_creation_tokens: int | None = None  #: as litellm tells of Anthropic's
    cache_write_tokens: int | None = None  #: as OpenRouter does


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _TokenDetails | None = None


class _ReplyMessage(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _ReplyMessage
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


_completion: Final = msgspec.json.Decoder(_Completion)


FINISH_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("max_tokens", "model_length", "max_length"), "length"),
    **dict.fromkeys(
        ("end_turn", "stop_sequence", "eos", "eos_token", "complete"), "stop"
    ),
    **dict.fromkeys(
        (
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "image_safety",
            "error_toxic",
        ),
        "content_filter",
    ),
}
"""What endpoints call the end of a reply, in lower case, and what it is called here.
OpenAI's own words stand as they are; the others are those of Anthropic, Gemini, Cohere,
Mistral ("model_length"), Together ("eos") and TGI ("eos_token")."""


def decode_chat(body: bytes) -> Reply:
    """The reply in a body; raise `MalformedReply` where it is no completion."""
    try:
        completion = read_body(_completion, body)
        choice = completion.choices[0]
    except (*UNREADABLE, IndexError) as error:
        raise MalformedReply(
            f"The reply is not a chat completion ({error}).", body=body
        ) from error
    message = choice.message
    usage = _usage(completion.usage)
    if message.content is None and message.refusal is not None:
        return Reply(text=message.refusal, finish_reason="refusal", usage=usage)
    return Reply(
        text=message.content or "",
        finish_reason=_reason(choice.finish_reason),
        usage=usage,
    )


def _reason(said: str | None) -> str:
    """Why the reply ended, by one name whoever said it."""
    if not said:
        return "unknown"
    return FINISH_REASONS.get(said.lower(), said.lower())


def _usage(counted: _Usage | None) -> Usage | None:
    if counted is None:
        return None
    details = counted.prompt_tokens_details or _TokenDetails()
    written = details.cache_creation_tokens or details.cache_write_tokens
    return usage_of(
        counted.prompt_tokens,
        counted.completion_tokens,
        details.cached_tokens or 0,
        written or 0,
    )
