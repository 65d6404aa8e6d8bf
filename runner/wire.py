"""The wire forms: requests to bytes, stored bytes to replies; pure.

A form is how one family of endpoints writes a reply. Its name is stored with every
answer, and its decoder is kept forever, because scoring reads the bytes as they came.
Answers that never crossed a wire (baselines, recordings, imports) are written in the
same form by `encode_reply`, so that replay knows one way only.

No sockets, errors of HTTP or keys in here: those belong to `runner.clients`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec

from runner.errors import MalformedReply
from runner.reply import Reply, Usage
from runner.request import ChatRequest, Message
from store.events import Blob

OPENAI_CHAT: Final = "openai.chat"
"""The form of OpenAI's chat completions, which most servers speak."""

CACHED_PARTS: Final = 128
"""Message parts kept encoded. Papers come first in a prompt and are asked about in a
row, so this covers far more papers than calls in flight; at 60 KB each it stays below
25 MB."""


MOST_TOKENS: Final = 10**9
"""More than any call has; the sum of many still fits a database's integer."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes that are no JSON of ours raise; the last: brackets in brackets in ..."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class _Part(NamedTuple):
    """A message part in the two shapes it is sent and stored in."""

    json: bytes  #: its characters escaped for JSON, without the quotes
    blob: Blob


class Skeleton(NamedTuple):
    """A request as it is stored: small, with its texts by reference."""

    body: bytes  #: JSON: model, parameters, and part hashes by message
    blobs: tuple[Blob, ...]  #: the texts, and the schema, behind the hashes
    sha256: str  #: hex, of the body: what makes two requests the same


def encode_chat(
    request: ChatRequest,
    model: str,
    *,
    structured: bool,
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
) -> bytes:
    """The body of a chat completion request.

    Args:
        request: What is asked.
        model: The model's name as the endpoint knows it.
        structured: Whether the request's schema is sent as a strict `response_format`.
        limit: The field that carries the output limit; OpenAI's own endpoint renamed
            it, and its reasoning models refuse the old name.
    """
    body: dict[str, object] = {
        "model": model,
        "messages": [
            {"role": message.role, "content": _content(message)}
            for message in request.messages
        ],
        limit: request.max_tokens,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.schema is not None and structured:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.schema.name,
                "strict": True,
                "schema": msgspec.Raw(request.schema.json.encode()),
            },
        }
    return msgspec.json.encode(body)


def skeleton(request: ChatRequest, model: str) -> Skeleton:
    """What is stored beside `AttemptStarted`: the request with its texts by hash.

    The hash depends on the model, the parameters, the parts and the schema, and on
    nothing that may differ between two sendings of the same question: neither the
    endpoint nor the way the schema is put to it.
    """
    blobs: dict[bytes, Blob] = {}

    def reference(text: str) -> str:
        blob = _part(text).blob
        blobs.setdefault(blob.sha256, blob)
        return blob.sha256.hex()

    body = msgspec.json.encode(
        {
            "model": model,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "schema": request.schema
            and {
                "name": request.schema.name,
                "sha256": reference(request.schema.json),
            },
            "messages": [
                {
                    "role": message.role,
                    "parts": [reference(part.text) for part in message.parts],
                }
                for message in request.messages
            ],
        }
    )
    return Skeleton(body, tuple(blobs.values()), hashlib.sha256(body).hexdigest())


def decode_reply(form: str, body: bytes) -> Reply:
    """The reply in a stored body.

    Raises:
        MalformedReply: The body is not in that form, or the form is unknown.
    """
    try:
        decode = FORMS[form]
    except KeyError:
        raise MalformedReply(
            f"This siftlog does not know the wire form {form!r}; upgrade it."
        ) from None
    return decode(body)


def encode_reply(
    text: str, finish_reason: str = "stop", usage: Usage | None = None
) -> bytes:
    """An answer that never crossed a wire, in the form `OPENAI_CHAT`."""
    body: dict[str, object] = {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": msgspec.Raw(b'"%s"' % _escaped(text)),
                },
                "finish_reason": finish_reason,
            }
        ]
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage.tokens_in,
            "completion_tokens": usage.tokens_out,
            "prompt_tokens_details": {"cached_tokens": usage.tokens_cached},
        }
    return msgspec.json.encode(body)


def _content(message: Message) -> msgspec.Raw:
    return msgspec.Raw(
        b'"%s"' % b"".join([_part(part.text).json for part in message.parts])
    )


@lru_cache(maxsize=CACHED_PARTS)
def _part(text: str) -> _Part:
    data = text.encode(errors="replace")
    return _Part(_escaped(text), Blob(sha256=hashlib.sha256(data).digest(), data=data))


def _escaped(text: str) -> bytes:
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:
        # Half a surrogate pair, as a careless JSON writer leaves it, has no UTF-8.
        return msgspec.json.encode(text.encode(errors="replace").decode())[1:-1]


class _TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None


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


def _decode_openai_chat(body: bytes) -> Reply:
    try:
        completion = _read(body)
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
        finish_reason=choice.finish_reason or "unknown",
        usage=usage,
    )


def _read(body: bytes) -> _Completion:
    """The completion in *body*.

    Half a surrogate pair, as a careless JSON writer leaves it where an emoji was cut in
    two, becomes a question mark: it is no reason to lose what was paid for.
    """
    try:
        return _completion.decode(body)
    except msgspec.DecodeError:
        if _SURROGATE.search(body) is None:
            raise
    with suppress(ValueError):
        content = json.dumps(json.loads(body), ensure_ascii=False)
        body = content.encode(errors="replace")
    return _completion.decode(body)


def _usage(counted: _Usage | None) -> Usage | None:
    """The tokens; None for counts that can be none."""
    if counted is None:
        return None
    details = counted.prompt_tokens_details
    cached = (details.cached_tokens if details else None) or 0
    tokens = (counted.prompt_tokens, counted.completion_tokens, cached)
    if min(tokens) < 0 or max(tokens) > MOST_TOKENS:
        return None
    return Usage(tokens_in=tokens[0], tokens_out=tokens[1], tokens_cached=cached)


FORMS: Final[Mapping[str, Callable[[bytes], Reply]]] = {
    OPENAI_CHAT: _decode_openai_chat
}
