"""OpenAI's form of embeddings, which vLLM, Ollama, TEI and most others speak.

A vector comes as a list of numbers, or in base64 as packed float32. Base64 is asked for
where the endpoint is known to have it (`design/kinds.md`); both are read.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

import msgspec

from runner.errors import MalformedReply
from runner.parameters import decoded
from runner.reply import FLOAT_BYTES, Vectors, pack
from runner.request import EmbedRequest
from runner.wire.reading import UNREADABLE, read_body, usage_of
from runner.wire.texts import quoted

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


class _Usage(msgspec.Struct):
    prompt_tokens: int


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float] | str


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]
    usage: _Usage | None = None


_embeddings: Final = msgspec.json.Decoder(_Embeddings)


def decode_embeddings(body: bytes) -> Vectors:
    """The vectors in a body, by their index; raise `MalformedReply` where it is none.

    An index that is missing or comes twice is a fault of the form: nobody could say
    which vector is whose.
    """
    try:
        found = read_body(_embeddings, body)
        by_index = {each.index: _packed(each.embedding) for each in found.data}
        in_order = tuple(by_index[index] for index in range(len(found.data)))
    except KeyError as error:
        raise MalformedReply(
            f"The reply's embeddings lack index {error}.", body=body
        ) from error
    except (*UNREADABLE, OverflowError, Base64Error, ValueError) as error:
        raise MalformedReply(
            f"The reply holds no embeddings ({error}).", body=body
        ) from error
    usage = usage_of(found.usage.prompt_tokens) if found.usage is not None else None
    return Vectors(packed=in_order, usage=usage)


def _packed(vector: list[float] | str) -> bytes:
    if not isinstance(vector, str):
        return pack(vector)
    data = b64decode(vector, validate=True)
    if len(data) % FLOAT_BYTES:
        raise ValueError(f"a vector of {len(data)} bytes is not of float32")
    return data
