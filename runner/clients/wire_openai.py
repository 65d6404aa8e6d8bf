"""Writes and reads OpenAI's two forms of chats: completions and responses; pure.

The form of chat completions is what most servers speak; the Responses form is what some
of OpenAI's models have instead of it.

A request carries the system messages as `instructions` and all others as items of
`input`. A reply is a list of output items, of which only the messages are the answer;
the others are reasoning and tool calls. The form differs from that of chat completions
in the names of nearly all fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from runner.clients.usage import usage_in
from runner.clients.wire_shared import (
    PLAIN,
    UNREADABLE,
    Shape,
    Structure,
    chat_fields,
    encoded_part,
    messages_in,
    quoted,
    read_body,
    schema_json,
)
from runner.errors import (
    AttemptError,
    BadRequest,
    ContentFiltered,
    MalformedReply,
    RateLimited,
    ServerError,
)
from runner.messages import ChatRequest, Message, Reply, Schema, Usage
from store.served_by import served_in

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
    json_schema: dict[str, object] = {"name": schema.name}
    if shape.structure is Structure.SCHEMA:
        json_schema["strict"] = True
    json_schema["schema"] = msgspec.Raw(schema_json(schema, shape).encode())
    return {"type": "json_schema", "json_schema": json_schema}


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
    text, thought = split_content(message.get("content"))
    for field in ("reasoning_content", "reasoning"):
        if not thought and isinstance(message.get(field), str):
            thought = message[field]
    refusal = message.get("refusal")
    if not text and choice.get("error"):
        raise _NoReply("its choice is an error")
    if not text and isinstance(refusal, str) and refusal:
        return refusal, thought, "refusal"
    return text, thought, end_of(choice.get("finish_reason"))


def split_content(content: object) -> tuple[str, str]:
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
    match = _THOUGHT.match(text)
    if match is not None and "<think>" not in match[1]:
        return text[match.end() :], match[1].strip()
    match = _UNFINISHED.match(text)
    return (text, "") if match is None else ("", match[1].strip())


def end_of(reason: object) -> str:
    """Why a reply ended, by one name for all endpoints; "unknown" if it is not said."""
    if not isinstance(reason, str) or not reason:
        return "unknown"
    return FINISH_REASONS.get(reason.lower(), reason.lower())


OPENAI_RESPONSES: Final = "openai.responses"
"""The form of OpenAI's Responses API."""

LONGEST_WORDS: Final = 300
"""Characters of an error's message that are passed on."""

FAILED: Final = ("failed", "cancelled")
"""Statuses of a response that came to nothing."""

FAILURES: Final[Mapping[str, type[AttemptError]]] = {
    "rate_limit_exceeded": RateLimited,
    "invalid_prompt": ContentFiltered,
    "bio_policy": ContentFiltered,
    "data_residency_mismatch": BadRequest,
}
"""From the code of a response with status 200 that failed; any other is a fault of the
server, as its own `server_error` is. `invalid_prompt` is what reasoning models say of a
prompt that violates the usage policy."""


def encode_responses(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """The body of a request to `/responses`.

    Args:
        request: What is asked.
        model: The model's name as the endpoint knows it.
        shape: How the endpoint wants it written. Its role of instructions is their
            field here; where that is refused, they become items of the input.
    """
    messages = messages_in(request, shape)
    instructions = [message for role, message in messages if role == "system"]
    body: dict[str, Any] = {
        "model": model,
        "input": [
            {"role": role, "content": _quoted([message])}
            for role, message in messages
            if role != "system"
        ],
        # the provider would keep prompt and answer for 30 days, unlike a chat's
        "store": False,
    }
    if instructions:
        body["instructions"] = _quoted(instructions)
    if request.schema is not None and shape.structure is not Structure.TEXT:
        body["text"] = {"format": text_format(request.schema, shape)}
    for name, value in _fields(request, shape):
        inner = body.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            body[name] = inner | value
        else:
            body[name] = value
    return msgspec.json.encode(body)


def _fields(request: ChatRequest, shape: Shape) -> Iterator[tuple[str, Any]]:
    """The parameters of a chat request under the names that they have in this form."""
    for name, value in chat_fields(request, shape).items():
        if name == shape.limit:
            yield "max_output_tokens", value
        elif name == "reasoning_effort":
            yield "reasoning", {"effort": value}
        else:
            yield name, value


def text_format(schema: Schema, shape: Shape) -> dict[str, object]:
    """Asks for a reply that follows *schema*, or at least for a JSON object."""
    if shape.structure is Structure.OBJECT:
        return {"type": "json_object"}
    json_format: dict[str, object] = {"type": "json_schema", "name": schema.name}
    if shape.structure is Structure.SCHEMA:
        json_format["strict"] = True
    json_format["schema"] = msgspec.Raw(schema_json(schema, shape).encode())
    return json_format


def _quoted(messages: Iterable[Message]) -> msgspec.Raw:
    """The texts of *messages* as one JSON string, a blank line between any two."""
    texts = (
        b"".join([encoded_part(part.text).json for part in message.parts])
        for message in messages
    )
    return msgspec.Raw(b'"%s"' % rb"\n\n".join(texts))


_object: Final = msgspec.json.Decoder(dict[str, Any])


def decode_responses(body: bytes) -> Reply:
    """The reply in a body.

    Raises:
        MalformedReply: It is no response of this form.
        AttemptError: It is one that failed, with neither text nor usage.
    """
    try:
        response = read_body(_object, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a response ({error}).", body=body
        ) from error
    output = response.get("output")
    if not isinstance(output, list) and not isinstance(response.get("error"), dict):
        raise MalformedReply("The reply is a response without output.", body=body)
    items = list(_objects(output))
    texts, refusals = _texts_and_refusals(items)
    usage = usage_in(response.get("usage"))
    # what was counted is billed: such a response is kept, as an answer without text
    if response.get("status") in FAILED and not (texts or usage):
        raise _failure(response, body)
    is_refused = bool(refusals) and not texts
    return Reply(
        text="".join(refusals if is_refused else texts),
        finish_reason="refusal" if is_refused else _reason(response),
        reasoning=_thoughts(items),
        usage=usage,
        served=served_in(response),
    )


def _texts_and_refusals(
    output: Iterable[dict[str, Any]],
) -> tuple[list[str], list[str]]:
    """The texts and the refusals of the output's messages.

    A model may comment on its work before it answers. Where one message is marked as
    the final answer, the others are comments.
    """
    messages = [item for item in output if item.get("type") == "message"]
    final = [item for item in messages if item.get("phase") == "final_answer"]
    texts: list[str] = []
    refusals: list[str] = []
    for message in final or messages:
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        for part in _objects(content):
            if isinstance(text := part.get("text"), str):
                texts.append(text)
            elif isinstance(refusal := part.get("refusal"), str):
                refusals.append(refusal)
    return texts, refusals


def _thoughts(output: Iterable[dict[str, Any]]) -> str:
    """What the output shows of the reasoning: it in full, or a summary of it."""
    return "\n\n".join(
        text
        for item in output
        if item.get("type") == "reasoning"
        for part in (*_objects(item.get("content")), *_objects(item.get("summary")))
        if isinstance(text := part.get("text"), str)
    )


def _objects(items: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; of anything else none."""
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def _reason(response: Mapping[str, Any]) -> str:
    """Why the reply ended, in the words that all forms share."""
    status = response.get("status")
    if status is None or status == "completed":
        return "stop"
    if status in FAILED:
        return "error"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return "length" if reason == "max_output_tokens" else end_of(reason)


def _failure(response: Mapping[str, Any], body: bytes) -> AttemptError:
    """What a response that failed ends its attempt with."""
    error = response.get("error")
    details = error if isinstance(error, dict) else {}
    code = details.get("code")
    words = " ".join(str(part) for part in (code, details.get("message")) if part)
    words = " ".join(words.split())[:LONGEST_WORDS] or "it does not say why"
    kind = FAILURES.get(code, ServerError) if isinstance(code, str) else ServerError
    return kind(f"The response failed: {words}", body=body)
