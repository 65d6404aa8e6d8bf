"""Tokens of a call at most, before anybody has counted them.

A call reserves what it can cost at worst, so that its true cost can only give money
back. Two bounds are needed, one for each direction:

- the prompt: by the model's own tokenizer where that is known and here, otherwise one
  token a byte, which no tokenizer passes (`design/money.md` says why);
- the reply: the limit that is sent with the request, where it bounds reasoning too.
  Where it does not, the most that the model ever returns.

Whether the limit bounds reasoning is known of some models by name. Behind an address
of the user's own it is learned from the first replies: those that bill reasoning beside
the completion, or more than their limit. Until one has come, each call under a
budget reserves `LEAST_LEARNED` tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from runner.clients.route import is_offline
from runner.money.catalogue import most_output_tokens
from runner.money.tokenizers import CountTokens, tokenizer_of
from runner.options import RunOptions
from runner.reply import Usage
from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest

USUAL_TOKEN: Final = 3
"""Bytes a token that a minute's share is reserved by; it is settled soon, and may be a
bit short."""

MESSAGE_TOKENS: Final = 8
"""Around a message: OpenAI counts 3, and 3 for the reply that is to follow. Around a
text to embed or rank it is 2 or 3."""

UNBOUNDED: Final = re.compile(r"grok|gemini", re.IGNORECASE)
"""Names of models whose OpenAI form counts reasoning beside the completion, so that the
limit of the completion does not bound it (xAI, and Gemini behind a gateway)."""

NATIVE: Final = re.compile(r"(gemini|vertex_ai|vertex_ai_beta)/", re.IGNORECASE)
"""Through litellm, Gemini is asked in its own form, whose limit bounds thoughts too."""

MAKERS: Final = ("", "xai/", "gemini/")
"""Under which the table has the models of these names."""

LARGEST_OUTPUT: Final = 131_072
"""Tokens of the longest reply of nearly all models in the table; of one that is not in
it nothing better is known."""

LEAST_LEARNED: Final = 16_384
LEARNED_FACTOR: Final = 4
"""A model whose limit turned out not to bound its replies reserves so many times the
longest of them, and no less than the first of these."""

ENOUGH_REPLIES: Final = 3
"""Replies of earlier processes after which a model's limit is trusted: some of them may
be refusals, which take no reasoning."""


def byte_tokens(text: str) -> int:
    """One token a byte: what a text has at most by any tokenizer."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def worst_prompt(request: Request, count: CountTokens = byte_tokens) -> int:
    """Tokens of what is sent, at most.

    Args:
        request: what is asked.
        count: tokens of a text, at most. A schema counts a token a byte in any case:
            providers write it into the prompt in words of their own.
    """
    texts, pieces = texts_read(request)
    schema = byte_tokens(schema_read(request))
    return sum(map(count, texts)) + schema + MESSAGE_TOKENS * pieces + 1


def usual_prompt(request: Request) -> int:
    """Tokens of what is sent, as a rule."""
    texts, pieces = texts_read(request)
    size = sum(map(byte_tokens, (*texts, schema_read(request))))
    return size // USUAL_TOKEN + MESSAGE_TOKENS * pieces + 1


def worst_output(request: Request, most: int | None = None) -> int:
    """Tokens of the reply, at most; only a chat's are counted.

    Args:
        request: what is asked.
        most: what the model returns at most, where the request's limit does not bound
            that; None: it does.
    """
    if not isinstance(request, ChatRequest):
        return 0
    return max(request.limit, most or 0)


def schema_read(request: Request) -> str:
    """The schema that a model reads with its prompt, as JSON; empty: there is none."""
    schema = request.schema if isinstance(request, ChatRequest) else None
    return "" if schema is None else schema.json


def texts_read(request: Request) -> tuple[Sequence[str], int]:
    """The texts that a model reads beside a schema, and how many pieces they make."""
    match request:
        case ChatRequest():
            texts = [part.text for each in request.messages for part in each.parts]
            return texts, len(request.messages)
        case EmbedRequest():
            return request.texts, len(request.texts)
        case RerankRequest():
            # most rerankers read, and count, the query again with each document
            texts = [request.query + document for document in request.documents]
            return texts, len(request.documents)
        case _:
            assert_never(request)


@dataclass(slots=True, kw_only=True)
class Bounds:
    """What bounds the calls of one model."""

    count: CountTokens = byte_tokens
    most_output: int | None = None  #: None: the request's own limit
    is_unproven: bool = False  #: no reply has shown yet whether the limit bounds all

    def worst(self, request: Request, unlimited: int | None = None) -> tuple[int, int]:
        """Tokens of the prompt and of the reply, at most.

        Args:
            request: what is asked.
            unlimited: tokens of a reply to a request without a limit, at most; None:
                a limit is sent.
        """
        prompt = worst_prompt(request, self.count)
        least = LEAST_LEARNED if self.is_unproven else 0
        most = max(self.most_output or 0, unlimited or 0, least)
        return prompt, worst_output(request, most)

    def learn(
        self, limit: int, usage: Usage | None, *, is_refusal: bool = False
    ) -> bool:
        """Take in what a reply was billed; whether calls reserve otherwise from now on.

        Args:
            limit: tokens that the reply was taken to have at most; 0: none was taken.
            usage: its tokens; None: it does not say.
            is_refusal: whether the model declined, which takes no reasoning and so
                proves nothing.
        """
        before = self.most_output, self.is_unproven
        self.is_unproven = self.is_unproven and is_refusal
        if usage is not None:
            self._learn(limit, usage)
        return (self.most_output, self.is_unproven) != before

    def _learn(self, limit: int, usage: Usage) -> None:
        is_over = 0 < limit < usage.tokens_out
        if not is_over and not (usage.is_beside and self.most_output is None):
            return
        learned = max(LEAST_LEARNED, LEARNED_FACTOR * usage.tokens_out)
        most = max(min(learned, LARGEST_OUTPUT), usage.tokens_out)
        self.most_output = max(most, self.most_output or 0)
        self.is_unproven = False

    def why(self, request: Request) -> str:
        """Why a call reserves more output than its own limit; empty: it does not."""
        most = worst_output(request, self.most_output)
        if self.is_unproven and most < worst_output(request, LEAST_LEARNED):
            return (
                f"{LEAST_LEARNED:,} tokens of output are reserved until a reply "
                "shows that its limit bounds reasoning"
            )
        if most > worst_output(request):
            return f"its limit does not bound reasoning: {most:,} tokens are reserved"
        return ""


def bounds_of(
    model: str, options: RunOptions, *, learned: int | None = None, replies: int = 0
) -> Bounds:
    """What is known to bound the calls of *model* before the next of them.

    Args:
        model: its name.
        options: where it is asked, and whether there is a budget.
        learned: tokens of its longest reply, as earlier processes of the run learned.
        replies: that earlier processes got.
    """
    if is_offline(model):
        return Bounds()
    is_foreign = options.of(model).base_url is not None
    count = None if is_foreign else tokenizer_of(model)
    most = None
    if UNBOUNDED.search(model) and (is_foreign or not NATIVE.match(model)):
        name = model.rpartition("/")[2]
        known = (most_output_tokens(maker + name) for maker in MAKERS)
        most = max(filter(None, known), default=LARGEST_OUTPUT)
    if learned is not None:
        most = max(learned, most or 0)
    is_unproven = is_foreign and options.budget is not None and most is None
    return Bounds(
        count=count or byte_tokens,
        most_output=most,
        is_unproven=is_unproven and replies < ENOUGH_REPLIES,
    )
