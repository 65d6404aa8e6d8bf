"""OpenAI's form of chat completions, which most servers speak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from runner.errors import MalformedReply
from runner.reply import Reply, Usage
from runner.request import ChatRequest, Message, Schema
from runner.wire.reading import UNREADABLE, read_body
from runner.wire.shape import (
    PLAIN,
    Shape,
    Structure,
    chat_fields,
    messages_in,
    schema_json,
)
from runner.wire.texts import encoded_part, quoted
from runner.wire.usage import usage_in
from store.served import served_in

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
        body["usage"] = _counted(usage)
    return msgspec.json.encode(body)


def _content(message: Message) -> msgspec.Raw:
    return msgspec.Raw(
        b'"%s"' % b"".join([encoded_part(part.text).json for part in message.parts])
    )


def _counted(usage: Usage) -> dict[str, object]:
    """Tokens in OpenAI's words; what is zero in most replies is left out."""
    details: dict[str, object] = {
        "cached_tokens": usage.tokens_cached,
        "cache_creation_tokens": usage.tokens_cache_write,
    }
    if usage.tokens_cache_write_1h:
        details["cache_creation_token_details"] = {
            "ephemeral_1h_input_tokens": usage.tokens_cache_write_1h
        }
    counted: dict[str, object] = {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "prompt_tokens_details": details,
    }
    if usage.tokens_reasoning:
        counted["completion_tokens_details"] = {
            "reasoning_tokens": usage.tokens_reasoning
        }
    if usage.charged_usd is not None:
        counted["cost"] = usage.charged_usd
    return counted


class _Completion(msgspec.Struct):
    """What is read of a body; only the list of choices must be what it should be."""

    choices: list[Any]
    model: Any = None
    id: Any = None
    system_fingerprint: Any = None
    provider: Any = None
    service_tier: Any = None
    usage: Any = None
    received: Any = None  #: the reply itself, where litellm made this one of it


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


THINKING: Final = ("thinking", "reasoning")
"""Types of a content's parts that are no part of the answer, and their fields."""

_THOUGHT: Final = re.compile(r"\s*(?:<think>)?(.*?)</think>\s*", re.DOTALL)
_UNFINISHED: Final = re.compile(r"\s*<think>(?!.*</think>)(.*)", re.DOTALL)


def decode_chat(body: bytes) -> Reply:
    """The reply in a body; raise `MalformedReply` where it holds none.

    A choice with a message is a reply, whatever surrounds it: neither its usage nor the
    names of what served it make an answer unreadable.
    """
    try:
        completion = read_body(_completion, body)
        text, thought, reason = _choice(completion.choices)
    except (*UNREADABLE, _NoReply) as error:
        raise MalformedReply(
            f"The reply is not a chat completion ({error}).", body=body
        ) from error
    return Reply(
        text=text,
        finish_reason=reason,
        reasoning=thought,
        usage=usage_in(completion.usage),
        served=served_in(msgspec.structs.asdict(completion)),
    )


class _NoReply(Exception):
    """The choices hold nothing that could be an answer."""


def _choice(choices: list[Any]) -> tuple[str, str, str]:
    """Text, reasoning and end of the first choice."""
    choice = choices[0] if choices else None
    if not isinstance(choice, dict):
        raise _NoReply("it has no choice")
    message = choice.get("message")
    if not isinstance(message, dict):
        if not isinstance(choice.get("text"), str):
            raise _NoReply("its choice has no message")
        message = {"content": choice["text"]}  # of a completion that is no chat
    text, thought = spoken(message.get("content"))
    for field in ("reasoning_content", "reasoning"):
        if not thought and isinstance(message.get(field), str):
            thought = message[field]
    refusal = message.get("refusal")
    if not text and choice.get("error"):
        raise _NoReply("its choice is an error")
    if not text and isinstance(refusal, str) and refusal:
        return refusal, thought, "refusal"
    return text, thought, end_of(choice.get("finish_reason"))


def spoken(content: object) -> tuple[str, str]:
    """The answer in a message's content, and the thoughts before it.

    The content is a text, or a list of texts and of parts with a type; a part of
    another kind, as an image, says nothing.

    Raises:
        _NoReply: it is of another type.
    """
    if content is None:
        return "", ""
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, str):
        return _split(content)
    if not isinstance(content, list):
        raise _NoReply(f"its content is of type {type(content).__name__}")
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            texts.append(_of(part, "text", "refusal"))
            thoughts.append(_of(part, *THINKING))
            if part.get("type") in THINKING:
                thoughts[-1] = thoughts[-1] or texts[-1]
                texts[-1] = ""
    text, thought = _split("".join(texts))
    return text, "".join(thoughts) or thought


def _of(part: dict[str, Any], *names: str) -> str:
    """The first of a part's fields that is a text."""
    return next((part[name] for name in names if isinstance(part.get(name), str)), "")


def _split(text: str) -> tuple[str, str]:
    """A text without the thoughts that stand in marks before it, and those thoughts.

    Where the prompt's template opens the marks, the reply only closes them. Thoughts
    that were cut off are all there is of a reply.
    """
    if "think>" not in text:
        return text, ""
    found = _THOUGHT.match(text)
    if found is not None and "<think>" not in found[1]:
        return text[found.end() :], found[1].strip()
    found = _UNFINISHED.match(text)
    return (text, "") if found is None else ("", found[1].strip())


def end_of(said: object) -> str:
    """Why a reply ended, by one name for all endpoints; "unknown" if it is not said."""
    if not isinstance(said, str) or not said:
        return "unknown"
    return FINISH_REASONS.get(said.lower(), said.lower())
