"""Encodes requests and decodes stored replies in all wire forms; pure.

A form is how one family of endpoints writes a reply. Its name is stored with every
answer, and its decoder is kept forever, because scoring reads the bytes as they came.
Answers that never crossed a wire (baselines, recordings, imports) are written in the
same forms by `encode_answer`, so replay has a single code path.

`FORMS` has them all. OpenAI's chats are in `wire_openai`, what all forms share in
`wire_shared`; Anthropic's messages, embeddings and rerank are here. It has no sockets,
HTTP errors or keys.

A vector comes as a list of numbers, or in base64 as packed float32. Base64 is requested
if the endpoint is known to support it (`design/clients.md`); both are read.
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
    encoded_part,
    messages_in,
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
"""The form of Anthropic's messages."""

MOST_BREAKPOINTS: Final = 4
"""A request with more of them is refused (its documentation, "Prompt caching")."""


def encode_messages(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """The body of a message request.

    Args:
        request: What is asked.
        model: The model's name as the endpoint knows it.
        shape: How the endpoint wants it written. A schema is put as the format of the
            output, or, for older models and for schemas with keywords that the format
            may not have, as the input of a tool that has to be used (its
            documentation, "Structured outputs" and "Tool use"). The limit is always
            sent, since this form requires it.
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
    """What asks for a reply that follows *schema*; nothing where the prompt says it."""
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
    """The message cut after its breakpoints; the last few of all *marks* are set."""
    blocks: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for part in message.parts:
        pieces.append(encoded_part(part.text).json)
        if part.cache:
            block = _block(pieces)
            if marks <= MOST_BREAKPOINTS:
                block["cache_control"] = {"type": "ephemeral"}
            marks -= 1
            blocks.append(block)
            pieces = []
    if pieces or not blocks:
        blocks.append(_block(pieces))
    return blocks, marks


def _block(pieces: list[bytes]) -> dict[str, Any]:
    return {"type": "text", "text": msgspec.Raw(b'"%s"' % b"".join(pieces))}


class _Message(msgspec.Struct):
    content: list[Any] | str
    model: Any = None
    id: Any = None
    stop_reason: Any = None
    usage: Any = None


_message: Final = msgspec.json.Decoder(_Message)


def decode_messages(body: bytes) -> Reply:
    """The reply in a body; raise `MalformedReply` where it is no message."""
    try:
        message = read_body(_message, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a message of Anthropic's form ({error}).", body=body
        ) from error
    finish_reason = end_of(message.stop_reason)
    content = message.content
    tools = "".join(_inputs(content))
    text, thought = split_content(content)
    return Reply(
        # beside a tool's input, a text is a remark
        text=tools or text,
        finish_reason="stop" if finish_reason == "tool_use" else finish_reason,
        reasoning=thought,
        usage=usage_in(message.usage),
        served=served_in(msgspec.structs.asdict(message)),
    )


def _inputs(content: list[Any] | str) -> Iterator[str]:
    """What was given to tools, as JSON: a schema is asked for as the input of one."""
    for block in content:
        if (
            isinstance(block, dict)
            and block.get("type") == "tool_use"
            and "input" in block
        ):
            yield msgspec.json.encode(block["input"]).decode()


OPENAI_EMBEDDINGS: Final = "openai.embeddings"
"""The form of OpenAI's embeddings."""


def encode_embed(request: EmbedRequest, model: str, *, packed: bool) -> bytes:
    """The body of an embeddings request.

    Args:
        request: What is asked; the form has no word for its purpose.
        model: The model's name as the endpoint knows it.
        packed: Whether to ask for base64, a third of the bytes of plain numbers.
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
    """Vectors that never crossed a wire, in the form `OPENAI_EMBEDDINGS`."""
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
    """The vectors in a body, by their index; raise `MalformedReply` where it is none.

    An index that is missing or comes twice is a fault of the form: nobody could say
    which vector is whose.
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
        raise MalformedReply(
            f"The reply holds no embeddings ({error}).", body=body
        ) from error
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
"""The form of Cohere's rerank."""


def encode_rerank(request: RerankRequest, model: str) -> bytes:
    """The body of a rerank request; *model* by the name the endpoint knows."""
    body: dict[str, object] = {
        "model": model,
        "query": quoted(request.query),
        "documents": [quoted(text) for text in request.documents],
    }
    if request.top_n is not None:
        body["top_n"] = request.top_n
    return msgspec.json.encode({**body, **decoded(request.parameters.extra_body)})


def encode_ranking(ranking: Ranking) -> bytes:
    """Scores that never crossed a wire, in the form `RERANK`."""
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
    """The scores in a body; raise `MalformedReply` where it has none."""
    try:
        ranking = read_body(_ranking, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a ranking ({error}).", body=body
        ) from error
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
    """Tokens, where the endpoint counts any: Cohere's own bills by the search."""
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
"""From a form's name to its decoder; a name that was ever stored stays here."""


def decode_reply(form: str, body: bytes) -> AnyReply:
    """The reply in a stored body.

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


def encode_answer(reply: AnyReply) -> tuple[str, bytes]:
    """A reply that never crossed a wire: the form of its kind, and the body in it."""
    match reply:
        case Reply():
            body = encode_reply(reply.text, reply.finish_reason, reply.usage)
            return OPENAI_CHAT, body
        case Vectors():
            return OPENAI_EMBEDDINGS, encode_vectors(reply)
        case Ranking():
            return RERANK, encode_ranking(reply)
        case _:
            assert_never(reply)
