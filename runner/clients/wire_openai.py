"""Encodes and decodes OpenAI's two forms of chats, completions and responses; pure.

Most servers use the form of chat completions; some of OpenAI's models require the
Responses form.

A request carries the system messages as `instructions` and all others as items of
`input`. A reply is a list of output items; only messages are the answer, the others are
reasoning and tool calls. The form differs from that of chat completions in the names of
nearly all fields.
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
    content_runs,
    escaped_part,
    messages_in,
    not_a_reply,
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
from runner.messages import ChatRequest, ImagePart, Message, Reply, Schema, Usage
from store.served_by import ServedBy, served_in

OPENAI_CHAT: Final = "openai.chat"
"""OpenAI's chat completions form."""


def encode_chat(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """Encode the body of a chat completion request.

    Args:
        request: The request.
        model: The model's name at the endpoint.
        shape: Variant for the endpoint.
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
    """Return the field that requests *schema*, or at least a JSON object."""
    if shape.structure is Structure.OBJECT:
        return {"type": "json_object"}
    json_schema: dict[str, object] = {"name": schema.name}
    if shape.structure is Structure.SCHEMA:
        json_schema["strict"] = True
    json_schema["schema"] = msgspec.Raw(schema_json(schema, shape).encode())
    return {"type": "json_schema", "json_schema": json_schema}


def encode_reply(
    text: str,
    finish_reason: str = "stop",
    usage: Usage | None = None,
    *,
    served: ServedBy | None = None,
    created_s: int | None = None,
) -> bytes:
    """Encode an answer from an offline source in the form `OPENAI_CHAT`.

    Args:
        text: of the reply.
        finish_reason: of the reply.
        usage: tokens, if counted.
        served: what served it elsewhere; its model and request id are encoded.
        created_s: time of the reply, seconds since 1970.
    """
    origin = {
        "id": served and served.request_id,
        "created": created_s,
        "model": served and served.model,
    }
    body: dict[str, object] = {
        **{name: value for name, value in origin.items() if value is not None},
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": quoted(text),
                },
                "finish_reason": finish_reason,
            }
        ],
    }
    if usage is not None:
        body["usage"] = _counted(usage)
    return msgspec.json.encode(body)


def _content(message: Message) -> msgspec.Raw | list[dict[str, Any]]:
    if message.images:
        return [
            {"type": "image_url", "image_url": {"url": run.uri}}
            if isinstance(run, ImagePart)
            else {"type": "text", "text": run}
            for run in content_runs(message)
        ]
    return msgspec.Raw(
        b'"%s"' % b"".join([escaped_part(part.text) for part in message.parts])
    )


def _counted(usage: Usage) -> dict[str, object]:
    """Return tokens under OpenAI's names, without those that are usually zero."""
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
    """The parsed fields of a body; only the list of choices must be valid."""

    choices: list[Any]
    model: Any = None
    id: Any = None
    system_fingerprint: Any = None
    provider: Any = None
    service_tier: Any = None
    usage: Any = None
    received: Any = None  #: the original reply, if litellm converted it


_completion: Final = msgspec.json.Decoder(_Completion)


class _PlainMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message whose answer and reasoning are texts, and that has no refusal."""

    content: str
    role: Any = None
    refusal: None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    annotations: Any = None
    audio: Any = None
    function_call: Any = None
    tool_calls: Any = None


class _PlainChoice(msgspec.Struct, forbid_unknown_fields=True):
    message: _PlainMessage
    finish_reason: str
    index: Any = None
    logprobs: Any = None


class _PlainCompletion(msgspec.Struct):
    """The usual form of a body, which needs no inspection of types."""

    choices: tuple[_PlainChoice]
    model: str | None = None
    id: str | None = None
    system_fingerprint: str | None = None
    provider: str | None = None
    service_tier: str | None = None
    usage: Any = None
    received: None = None


_plain_completion: Final = msgspec.json.Decoder(_PlainCompletion)


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
"""Maps finish reasons of endpoints, in lower case, to common ones. OpenAI's words are
unchanged; the others are from Anthropic, Gemini, Cohere, Mistral ("model_length"),
Together ("eos") and TGI ("eos_token")."""


THINKING: Final = ("thinking", "reasoning")
"""Types and fields of content parts that are not part of the answer."""

_THOUGHT: Final = re.compile(r"\s*(?:<think>)?(.*?)</think>\s*", re.DOTALL)
_UNFINISHED: Final = re.compile(r"\s*<think>(?!.*</think>)(.*)", re.DOTALL)


def decode_chat(body: bytes) -> Reply:
    """Decode the reply in a body; raise `MalformedReply` if it has none.

    A choice with a message is a reply: neither an invalid usage nor invalid server
    names make it unreadable.
    """
    try:
        plain = _plain_completion.decode(body)
    except (*UNREADABLE, UnicodeDecodeError):
        return decode_any_chat(body)
    choice = plain.choices[0]
    text, thought = _split(choice.message.content)
    message = choice.message
    return Reply(
        text=text,
        finish_reason=end_of(choice.finish_reason),
        reasoning=thought or message.reasoning_content or message.reasoning or "",
        usage=None if plain.usage is None else usage_in(plain.usage),
        served=_served_plain(plain),
    )


def _served_plain(plain: _PlainCompletion) -> ServedBy | None:
    """Return the origin of a plain body; most of offline sources have none."""
    if plain.usage is None and (
        plain.model
        is plain.id
        is plain.system_fingerprint
        is plain.provider
        is plain.service_tier
        is None
    ):
        return None
    return served_in(
        {
            "model": plain.model,
            "id": plain.id,
            "system_fingerprint": plain.system_fingerprint,
            "provider": plain.provider,
            "service_tier": plain.service_tier,
            "usage": plain.usage,
        }
    )


def decode_any_chat(body: bytes) -> Reply:
    """Decode a body of any form that `decode_chat` accepts."""
    try:
        completion = read_body(_completion, body)
        text, thought, reason = _choice(completion.choices)
    except (*UNREADABLE, _NoReply) as error:
        raise not_a_reply("a chat completion", error, body) from error
    return Reply(
        text=text,
        finish_reason=reason,
        reasoning=thought,
        usage=usage_in(completion.usage),
        served=served_in(msgspec.structs.asdict(completion)),
    )


class _NoReply(Exception):
    """The choices contain no answer."""


def _choice(choices: list[Any]) -> tuple[str, str, str]:
    """Return text, reasoning and finish reason of the first choice."""
    choice = choices[0] if choices else None
    if not isinstance(choice, dict):
        raise _NoReply("it has no choice")
    message = choice.get("message")
    if not isinstance(message, dict):
        if not isinstance(choice.get("text"), str):
            raise _NoReply("its choice has no message")
        message = {"content": choice["text"]}  # from a text completion
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
    """Split a message's content into answer and reasoning.

    The content is a text, or a list of texts and typed parts; parts of other kinds,
    such as images, are ignored.

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
    """Return the first of a part's fields that is a text."""
    return next((part[name] for name in names if isinstance(part.get(name), str)), "")


def _split(text: str) -> tuple[str, str]:
    """Split a text into the answer and the delimited thoughts before it.

    If the prompt's template opens the delimiter, the reply only closes it. A reply with
    truncated thoughts has no answer.
    """
    if "think>" not in text:
        return text, ""
    match = _THOUGHT.match(text)
    if match is not None and "<think>" not in match[1]:
        return text[match.end() :], match[1].strip()
    match = _UNFINISHED.match(text)
    return (text, "") if match is None else ("", match[1].strip())


def end_of(reason: object) -> str:
    """Return the common name of a finish reason; "unknown" if missing."""
    if not isinstance(reason, str) or not reason:
        return "unknown"
    return FINISH_REASONS.get(reason.lower(), reason.lower())


OPENAI_RESPONSES: Final = "openai.responses"
"""The form of OpenAI's Responses API."""

LONGEST_WORDS: Final = 300
"""Maximum characters quoted from an error's message."""

FAILED: Final = ("failed", "cancelled")
"""Statuses of a failed response."""

FAILURES: Final[Mapping[str, type[AttemptError]]] = {
    "rate_limit_exceeded": RateLimited,
    "invalid_prompt": ContentFiltered,
    "bio_policy": ContentFiltered,
    "data_residency_mismatch": BadRequest,
}
"""Maps the code of a failed response with status 200 to an error; other codes are
server errors, as `server_error` is. `invalid_prompt` is the code for a prompt that
violates the usage policy of reasoning models."""


def encode_responses(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """Encode the body of a request to `/responses`.

    Args:
        request: The request.
        model: The model's name at the endpoint.
        shape: Variant for the endpoint. Instructions have a separate field here; if
            that is refused, they become items of the input.
    """
    messages = messages_in(request, shape)
    instructions = [message for role, message in messages if role == "system"]
    body: dict[str, Any] = {
        "model": model,
        "input": [
            {"role": role, "content": _input(message)}
            for role, message in messages
            if role != "system"
        ],
        # the provider would keep prompt and answer for 30 days, unlike those of chats
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
    """Yield the parameters of a chat request under their names in this form."""
    for name, value in chat_fields(request, shape).items():
        if name == shape.limit:
            yield "max_output_tokens", value
        elif name == "reasoning_effort":
            yield "reasoning", {"effort": value}
        else:
            yield name, value


def text_format(schema: Schema, shape: Shape) -> dict[str, object]:
    """Return the field that requests *schema*, or at least a JSON object."""
    if shape.structure is Structure.OBJECT:
        return {"type": "json_object"}
    json_format: dict[str, object] = {"type": "json_schema", "name": schema.name}
    if shape.structure is Structure.SCHEMA:
        json_format["strict"] = True
    json_format["schema"] = msgspec.Raw(schema_json(schema, shape).encode())
    return json_format


def _input(message: Message) -> msgspec.Raw | list[dict[str, Any]]:
    if message.images:
        return [
            {"type": "input_image", "image_url": run.uri}
            if isinstance(run, ImagePart)
            else {"type": "input_text", "text": run}
            for run in content_runs(message)
        ]
    return _quoted([message])


def _quoted(messages: Iterable[Message]) -> msgspec.Raw:
    """Encode the texts of *messages* as one JSON string, separated by blank lines."""
    texts = (
        b"".join([escaped_part(part.text) for part in message.parts])
        for message in messages
    )
    return msgspec.Raw(b'"%s"' % rb"\n\n".join(texts))


_object: Final = msgspec.json.Decoder(dict[str, Any])


def decode_responses(body: bytes) -> Reply:
    """Decode the reply in a body.

    Raises:
        MalformedReply: The body is not a response of this form.
        AttemptError: The response failed, with neither text nor usage.
    """
    try:
        response = read_body(_object, body)
    except UNREADABLE as error:
        raise not_a_reply("a response", error, body) from error
    output = response.get("output")
    if not isinstance(output, list) and not isinstance(response.get("error"), dict):
        raise MalformedReply("The reply is a response without output.", body=body)
    items = list(_objects(output))
    texts, refusals = _texts_and_refusals(items)
    usage = usage_in(response.get("usage"))
    # counted tokens are billed: such a response is kept as an answer without text
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
    """Return the texts and the refusals of the output's messages.

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
    """Return the reasoning in the output, in full or as a summary."""
    return "\n\n".join(
        text
        for item in output
        if item.get("type") == "reasoning"
        for part in (*_objects(item.get("content")), *_objects(item.get("summary")))
        if isinstance(text := part.get("text"), str)
    )


def _objects(items: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; nothing for other types."""
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def _reason(response: Mapping[str, Any]) -> str:
    """Return the finish reason under its common name."""
    status = response.get("status")
    if status is None or status == "completed":
        return "stop"
    if status in FAILED:
        return "error"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return "length" if reason == "max_output_tokens" else end_of(reason)


def _failure(response: Mapping[str, Any], body: bytes) -> AttemptError:
    """Return the error of a failed response."""
    error = response.get("error")
    details = error if isinstance(error, dict) else {}
    code = details.get("code")
    words = " ".join(str(part) for part in (code, details.get("message")) if part)
    words = " ".join(words.split())[:LONGEST_WORDS] or "it does not say why"
    kind = FAILURES.get(code, ServerError) if isinstance(code, str) else ServerError
    return kind(f"The response failed: {words}", body=body)
