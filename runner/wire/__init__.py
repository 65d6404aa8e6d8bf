"""The wire forms: requests to bytes, stored bytes to replies; pure.

A form is how one family of endpoints writes a reply. Its name is stored with every
answer, and its decoder is kept forever, because scoring reads the bytes as they came.
Answers that never crossed a wire (baselines, recordings, imports) are written in the
same forms by `encode_answer`, so that replay knows one way only.

No sockets, errors of HTTP or keys in here: those belong to `runner.clients`.
"""

from runner.wire.anthropic import ANTHROPIC_MESSAGES, encode_messages
from runner.wire.chat import OPENAI_CHAT, encode_chat, encode_reply
from runner.wire.embeddings import OPENAI_EMBEDDINGS, encode_embed
from runner.wire.forms import FORMS, decode_reply, encode_answer
from runner.wire.reading import MOST_TOKENS, UNREADABLE
from runner.wire.rerank import RERANK, encode_rerank
from runner.wire.shape import Shape, Structure
from runner.wire.skeleton import Skeleton, skeleton
from runner.wire.texts import CACHED_PARTS

__all__ = [
    "ANTHROPIC_MESSAGES",
    "CACHED_PARTS",
    "FORMS",
    "MOST_TOKENS",
    "OPENAI_CHAT",
    "OPENAI_EMBEDDINGS",
    "RERANK",
    "UNREADABLE",
    "Shape",
    "Skeleton",
    "Structure",
    "decode_reply",
    "encode_answer",
    "encode_chat",
    "encode_embed",
    "encode_messages",
    "encode_reply",
    "encode_rerank",
    "skeleton",
]
