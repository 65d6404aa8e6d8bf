"""Encodes requests and decodes stored replies in all wire forms; pure.

A form is the reply format of one family of endpoints. Its name is stored with every
answer, and its decoder is kept forever, because scoring reads the original bytes.
Answers that never crossed a wire (baselines, recordings, imports) are written in the
same forms by `encode_answer`, so replay has a single code path.

`FORMS` lists all forms. OpenAI's chats are in `wire_openai`, shared code is in
`wire_shared`; Anthropic's messages, embeddings and rerank are here. No sockets, HTTP
errors or keys.

A vector is a list of numbers, or packed float32 in base64. Base64 is requested if the
endpoint is known to support it (`design/clients.md`); both are read.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, assert_never

import msgspec

from runner.clients.usage import usage_in
from runner.clients.wire_openai import (
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    decode_chat,
    decode_responses,
    encode_reply,
    end_of,
    split_content,
)
from runner.clients.wire_shared import (
    PLAIN,
    UNREADABLE,
    Shape,
    Structure,
    chat_fields,
    escaped_part,
    messages_in,
    not_a_reply,
    quoted,
    read_body,
    schema_json,
)
from runner.errors import MalformedReply
from runner.messages import (
    FLOAT_BYTES,
    AnyReply,
    ChatRequest,
    EmbedRequest,
    ImagePart,
    Message,
    RankedDocument,
    Ranking,
    Reply,
    RerankRequest,
    Schema,
    Usage,
    Vectors,
    decoded,
    pack,
)
from store.served_by import served_in

ANTHROPIC_MESSAGES: Final = "anthropic.messages"
"""Anthropic's messages form."""

MOST_BREAKPOINTS: Final = 4
"""Anthropic refuses requests with more (its documentation, "Prompt caching")."""


def encode_messages(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """Encode the body of a message request.

    Args:
        request: The request.
        model: The model's name at the endpoint.
        shape: Variant for the endpoint. A schema is sent as the output format or, for
            older models and schemas with unsupported keywords, as the input of a forced
            tool (Anthropic's documentation, "Structured outputs" and "Tool use"). The
            limit is always sent, since this form requires it.
    """
    spare = sum(part.cache for message in request.messages for part in message.parts)
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for role, message in messages_in(request, shape):
        blocks, spare = _blocks(message, spare)
        if message.role == "system":
            system += blocks
        else:
            turns.append({"role": role, "content": blocks})
    body: dict[str, Any] = {"model": model, "messages": turns}
    if system:
        body["system"] = system
    body |= chat_fields(request, replace(shape, limit="max_tokens"))
    body.setdefault("max_tokens", request.limit)
    if request.schema is not None:
        body |= _form(request.schema, shape)
    return msgspec.json.encode(body)


def _form(schema: Schema, shape: Shape) -> dict[str, Any]:
    """Return the fields that request *schema*; empty if the prompt has it."""
    form = msgspec.Raw(schema_json(schema, shape).encode())
    match shape.structure:
        case Structure.SCHEMA | Structure.LOOSE:
            return {
                "output_config": {"format": {"type": "json_schema", "schema": form}}
            }
        case Structure.OBJECT:
            return {
                "tools": [{"name": schema.name, "input_schema": form}],
                "tool_choice": {"type": "tool", "name": schema.name},
            }
        case Structure.TEXT:
            return {}


def _blocks(message: Message, marks: int) -> tuple[list[dict[str, Any]], int]:
    """Split the message after its breakpoints; only the last few *marks* are set."""
    blocks: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for part in message.parts:
        is_image = isinstance(part, ImagePart)
        if not is_image:
            pieces.append(escaped_part(part.text))
        if pieces and (part.cache or is_image):
            blocks.append(_block(pieces))
            pieces = []
        if isinstance(part, ImagePart):
            blocks.append(_image(part))
        if part.cache:
            if marks <= MOST_BREAKPOINTS:
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
            marks -= 1
    if pieces or not blocks:
        blocks.append(_block(pieces))
    return blocks, marks


def _block(pieces: list[bytes]) -> dict[str, Any]:
    return {"type": "text", "text": msgspec.Raw(b'"%s"' % b"".join(pieces))}


def _image(part: ImagePart) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": part.base64}
    return {"type": "image", "source": source}


class _Message(msgspec.Struct):
    content: list[Any] | str
    model: Any = None
    id: Any = None
    stop_reason: Any = None
    usage: Any = None


_message: Final = msgspec.json.Decoder(_Message)


def decode_messages(body: bytes) -> Reply:
    """Decode the reply in a body; raise `MalformedReply` if it is no message."""
    try:
        message = read_body(_message, body)
    except UNREADABLE as error:
        raise not_a_reply("a message of Anthropic's form", error, body) from error
    finish_reason = end_of(message.stop_reason)
    content = message.content
    tools = "".join(_inputs(content))
    text, thought = split_content(content)
    return Reply(
        # text beside a tool's input is a comment
        text=tools or text,
        finish_reason="stop" if finish_reason == "tool_use" else finish_reason,
        reasoning=thought,
        usage=usage_in(message.usage),
        served=served_in(msgspec.structs.asdict(message)),
    )


def _inputs(content: list[Any] | str) -> Iterator[str]:
    """Yield inputs of tools as JSON: a schema is requested as a tool's input."""
    for block in content:
        if (
            isinstance(block, dict)
            and block.get("type") == "tool_use"
            and "input" in block
        ):
            yield msgspec.json.encode(block["input"]).decode()


OPENAI_EMBEDDINGS: Final = "openai.embeddings"
"""OpenAI's embeddings form."""


def encode_embed(request: EmbedRequest, model: str, *, packed: bool) -> bytes:
    """Encode the body of an embeddings request.

    Args:
        request: The request; the form has no field for its purpose.
        model: The model's name at the endpoint.
        packed: Request base64, a third of the bytes of plain numbers.
    """
    body: dict[str, object] = {
        "model": model,
        "input": [quoted(text) for text in request.texts],
    }
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    if packed:
        body["encoding_format"] = "base64"
    return msgspec.json.encode({**body, **decoded(request.parameters.extra_body)})


def encode_vectors(vectors: Vectors) -> bytes:
    """Encode vectors from offline sources in the form `OPENAI_EMBEDDINGS`."""
    body: dict[str, object] = {
        "data": [
            {"index": index, "embedding": b64encode(vector).decode()}
            for index, vector in enumerate(vectors.packed)
        ]
    }
    if vectors.usage is not None:
        body["usage"] = {"prompt_tokens": vectors.usage.tokens_in}
    return msgspec.json.encode(body)


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float] | str


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]
    model: Any = None
    usage: Any = None
    id: Any = None
    provider: Any = None
    received: Any = None


_embeddings: Final = msgspec.json.Decoder(_Embeddings)


def decode_embeddings(body: bytes) -> Vectors:
    """Decode vectors by index; raise `MalformedReply` if the body is invalid.

    A missing or repeated index is an error, because vectors could not be assigned.
    """
    try:
        embeddings = read_body(_embeddings, body)
        by_index = {
            vector.index: _packed(vector.embedding) for vector in embeddings.data
        }
        in_order = tuple(by_index[index] for index in range(len(embeddings.data)))
    except KeyError as error:
        raise MalformedReply(
            f"The reply's embeddings lack index {error}.", body=body
        ) from error
    except (*UNREADABLE, OverflowError, Base64Error, ValueError) as error:
        raise not_a_reply("a list of embeddings", error, body) from error
    return Vectors(
        packed=in_order,
        usage=usage_in(embeddings.usage, has_output=False),
        served=served_in(msgspec.structs.asdict(embeddings)),
    )


def _packed(vector: list[float] | str) -> bytes:
    if not isinstance(vector, str):
        return pack(vector)
    data = b64decode(vector, validate=True)
    if len(data) % FLOAT_BYTES:
        raise ValueError(f"a vector of {len(data)} bytes is not of float32")
    return data


RERANK: Final = "cohere.rerank"
"""Cohere's rerank form."""


def encode_rerank(request: RerankRequest, model: str) -> bytes:
    """Encode the body of a rerank request; *model* is its name at the endpoint."""
    body: dict[str, object] = {
        "model": model,
        "query": quoted(request.query),
        "documents": [quoted(text) for text in request.documents],
    }
    if request.top_n is not None:
        body["top_n"] = request.top_n
    return msgspec.json.encode({**body, **decoded(request.parameters.extra_body)})


def encode_ranking(ranking: Ranking) -> bytes:
    """Encode scores from offline sources in the form `RERANK`."""
    body: dict[str, object] = {
        "results": [
            {"index": ranked.index, "relevance_score": ranked.score}
            for ranked in ranking.results
        ]
    }
    if ranking.usage is not None:
        body["usage"] = {"total_tokens": ranking.usage.tokens_in}
    return msgspec.json.encode(body)


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Ranking(msgspec.Struct):
    results: list[_Result]
    usage: Any = None  #: of Jina and vLLM
    meta: Any = None  #: of Cohere
    model: Any = None
    id: Any = None
    received: Any = None


_ranking: Final = msgspec.json.Decoder(_Ranking)


def decode_ranking(body: bytes) -> Ranking:
    """Decode the scores in a body; raise `MalformedReply` if it has none."""
    try:
        ranking = read_body(_ranking, body)
    except UNREADABLE as error:
        raise not_a_reply("a ranking", error, body) from error
    results = tuple(
        RankedDocument(index=result.index, score=result.relevance_score)
        for result in ranking.results
    )
    return Ranking(
        results=results,
        usage=_usage(ranking),
        served=served_in(msgspec.structs.asdict(ranking)),
    )


def _usage(ranking: _Ranking) -> Usage | None:
    """Return tokens if the endpoint counts any; Cohere bills by search."""
    usage = usage_in(ranking.usage, has_output=False)
    if usage is not None or not isinstance(ranking.meta, Mapping):
        return usage
    kinds = (ranking.meta.get("tokens"), ranking.meta.get("billed_units"))
    counts = (usage_in(kind, has_output=False) for kind in kinds)
    return next((usage for usage in counts if usage is not None), None)


FORMS: Final[Mapping[str, Callable[[bytes], AnyReply]]] = {
    OPENAI_CHAT: decode_chat,
    OPENAI_RESPONSES: decode_responses,
    ANTHROPIC_MESSAGES: decode_messages,
    OPENAI_EMBEDDINGS: decode_embeddings,
    RERANK: decode_ranking,
}
"""Decoder of each form; a name that was ever stored stays here."""


def decode_reply(form: str, body: bytes) -> AnyReply:
    """Decode the reply in a stored body.

    Raises:
        MalformedReply: The body is not in that form, or the form is unknown.
        AttemptError: The body says that the call failed.
    """
    try:
        decode = FORMS[form]
    except KeyError:
        raise MalformedReply(
            f"This siftlog does not know the wire form {form!r}; upgrade it."
        ) from None
    return decode(body)


def encode_answer(reply: AnyReply, created_s: int | None = None) -> tuple[str, bytes]:
    """Encode a reply from an offline source; return the form of its kind and body.

    Args:
        reply: the reply.
        created_s: time of a chat's reply, if it was made before.
    """
    match reply:
        case Reply():
            body = encode_reply(
                reply.text,
                reply.finish_reason,
                reply.usage,
                served=reply.served,
                created_s=created_s,
            )
            return OPENAI_CHAT, body
        case Vectors():
            return OPENAI_EMBEDDINGS, encode_vectors(reply)
        case Ranking():
            return RERANK, encode_ranking(reply)
        case _:
            assert_never(reply)
