"""Every form that a stored body may have, by the name that is stored with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, assert_never

from runner.errors import MalformedReply
from runner.reply import AnyReply, Ranking, Reply, Vectors
from runner.wire.anthropic import ANTHROPIC_MESSAGES, decode_messages
from runner.wire.chat import OPENAI_CHAT, decode_chat, encode_reply
from runner.wire.embeddings import (
    OPENAI_EMBEDDINGS,
    decode_embeddings,
    encode_vectors,
)
from runner.wire.rerank import RERANK, decode_ranking, encode_ranking
from runner.wire.responses import OPENAI_RESPONSES, decode_responses

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
