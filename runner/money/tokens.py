"""Estimates the tokens of a call before it is sent: maximum and expected."""

from __future__ import annotations

import hashlib
import math
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, assert_never

from runner.messages import (
    ChatRequest,
    EmbedRequest,
    ImagePart,
    Request,
    RerankRequest,
    Usage,
)

if TYPE_CHECKING:
    from tiktoken import Encoding


CountTokens: TypeAlias = Callable[[str], int]
"""Returns the maximum number of tokens of a text."""

CACHED_TEXTS: Final = 128
"""A paper is counted once for consecutive requests about it: 60 KB take 3.3 ms, an
abstract of 2 KB takes 0.07 ms."""

MARGIN: Final = 1 / 16
"""Added to a count: text is encoded part by part, and where two parts meet an encoding
may cut in another place."""


class Vocabulary(NamedTuple):
    """An encoding's vocabulary, and how text is cut before it is looked up."""

    file: str  #: in litellm's package; the name is the hash of its address
    sha256: str
    pattern: str  #: as in tiktoken's `openai_public`


VOCABULARIES: Final = {
    "cl100k_base": Vocabulary(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    "o200k_base": Vocabulary(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}

OWNERS: Final = ("openai", "azure")
"""Providers that serve OpenAI's models under their names."""


def tokenizer_of(model: str) -> CountTokens | None:
    """Return a counter of *model*'s tokens at its provider's address; None: unknown.

    The first call for an encoding takes 0.35 s and 75 MB.
    """
    provider, _, name = model.rpartition("/")
    if provider and provider not in OWNERS:
        return None
    if find_spec("tiktoken") is None:
        return None
    from tiktoken.model import (  # noqa: PLC0415 - 40 ms, for those who need it
        encoding_name_for_model,
    )

    try:
        encoding = encoding_name_for_model(name)
    except KeyError:
        return None
    return counter_of(encoding)


@cache
def counter_of(encoding: str) -> CountTokens | None:
    """Return a counter for an encoding; None: its vocabulary is not installed."""
    encoder = _encoder(encoding)
    if encoder is None:
        return None

    @lru_cache(maxsize=CACHED_TEXTS)
    def count(text: str) -> int:
        tokens = len(encoder.encode_ordinary(text))
        # never more than bytes: no token is empty
        return min(len(text.encode(errors="replace")), round(tokens * (1 + MARGIN)) + 1)

    return count


def _encoder(encoding: str) -> Encoding | None:
    vocabulary, package = VOCABULARIES.get(encoding), find_spec("litellm")
    folders = package.submodule_search_locations if package is not None else None
    if vocabulary is None or not folders:
        return None
    path = Path(folders[0], "litellm_core_utils", "tokenizers", vocabulary.file)
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != vocabulary.sha256:
            return None
        lines = (line.split() for line in content.splitlines())
        ranks = {b64decode(token): int(rank) for token, rank in lines}
    except (OSError, ValueError, Base64Error):
        return None
    from tiktoken import Encoding  # noqa: PLC0415 - 40 ms, for those who need it

    return Encoding(
        encoding, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )


USUAL_TOKEN: Final = 3
"""Bytes per token when tokens of a rate limit are reserved; the estimate may be a bit
low, as it is corrected soon."""

MESSAGE_TOKENS: Final = 8
"""Overhead of a message: OpenAI counts 3, and 3 for the reply. That of a text to embed
or rank is 2 or 3."""


CountImage: TypeAlias = Callable[[ImagePart], int]
"""Returns the maximum number of tokens of an image."""

_FITTED: Final = 2_048
_SHORT_SIDE: Final = 768
_TILE: Final = 512
"""An image is scaled down to fit into a square of 2,048 pixels, then to a shorter side
of 768 pixels, and read in tiles of 512 (OpenAI's documentation, "Images and vision",
section "Calculating costs")."""

TILE_TOKENS: Final = (85, 170)
"""Tokens of an image, and of each of its tiles, for gpt-4o (same source)."""

MINI_TILE_TOKENS: Final = (2_833, 5_667)
"""The same for gpt-4o-mini, whose tokens are cheaper by the same factor."""

MOST_IMAGE_TOKENS: Final = 6_404
"""Tokens of the largest image at providers that use other rules: Llama 4 on Together
takes 1,601 for each of up to 4 tiles; Claude takes a token per 750 pixels and at most
4,784, gpt-4.1-nano at most 3,779."""


def image_tiles(width: int, height: int) -> int:
    """Return the tiles of an image.

    >>> image_tiles(1024, 1024), image_tiles(2048, 4096), image_tiles(992, 1403)
    (4, 6, 6)
    """
    scale = min(1.0, _FITTED / max(width, height, 1))
    scale *= min(1.0, _SHORT_SIDE / max(min(width, height) * scale, 1))
    # rounded first: 1024 * (768 / 1024) may be a little more than 768
    sides = (round(side * scale, 6) for side in (width, height))
    return math.prod(max(1, math.ceil(side / _TILE)) for side in sides)


def image_tokens(image: ImagePart, per_tile: tuple[int, int] = TILE_TOKENS) -> int:
    """Return the likely tokens of an image, by the rule of gpt-4o."""
    base, tile = per_tile
    return base + tile * image_tiles(image.width, image.height)


def worst_image_tokens(image: ImagePart) -> int:
    """Return the maximum tokens of an image, for models other than gpt-4o-mini."""
    return max(MOST_IMAGE_TOKENS, image_tokens(image))


def image_counter(model: str) -> CountImage:
    """Return a counter of the maximum tokens of an image for *model*."""
    if "4o-mini" in model.lower():
        return partial(image_tokens, per_tile=MINI_TILE_TOKENS)
    return worst_image_tokens


LARGEST_OUTPUT: Final = 131_072
"""Tokens of the longest reply of nearly all models in the table; also assumed for
models that are not in it."""

LEAST_LEARNED: Final = 16_384
LEARNED_FACTOR: Final = 4
"""If a model's limit does not bound its replies, `LEARNED_FACTOR` times the longest one
is reserved, and at least `LEAST_LEARNED` tokens."""


def byte_tokens(text: str) -> int:
    """Return one token per byte, the maximum of a text for any tokenizer."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def worst_prompt(
    request: Request,
    count: CountTokens = byte_tokens,
    image: CountImage = worst_image_tokens,
) -> int:
    """Return the maximum tokens of a prompt.

    Args:
        request: what is asked.
        count: counts the tokens of a text. A schema always counts as one token per
            byte, because providers put it into the prompt in different forms.
        image: counts the tokens of an image.
    """
    texts, pieces = texts_read(request)
    schema = byte_tokens(schema_read(request))
    images = sum(map(image, images_read(request)))
    return sum(map(count, texts)) + schema + images + MESSAGE_TOKENS * pieces + 1


def usual_prompt(request: Request) -> int:
    """Return the usual tokens of a prompt."""
    texts, pieces = texts_read(request)
    size = sum(map(byte_tokens, (*texts, schema_read(request))))
    images = sum(map(image_tokens, images_read(request)))
    return size // USUAL_TOKEN + images + MESSAGE_TOKENS * pieces + 1


def worst_output(request: Request, most: int | None = None) -> int:
    """Return the maximum tokens of a reply; only those of chats are counted.

    Args:
        request: what is asked.
        most: maximum output of the model, if the request's limit does not bound it;
            None: it does.
    """
    if not isinstance(request, ChatRequest):
        return 0
    return max(request.limit, most or 0)


def images_read(request: Request) -> Iterator[ImagePart]:
    """Yield the images of a request."""
    if isinstance(request, ChatRequest):
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, ImagePart):
                    yield part


def schema_read(request: Request) -> str:
    """Return the schema sent with a prompt, as JSON; empty: there is none."""
    schema = request.schema if isinstance(request, ChatRequest) else None
    return "" if schema is None else schema.json


def texts_read(request: Request) -> tuple[Sequence[str], int]:
    """Return the texts of a request, without its schema, and the number of pieces."""
    match request:
        case ChatRequest():
            texts = [
                part.text for message in request.messages for part in message.parts
            ]
            return texts, len(request.messages)
        case EmbedRequest():
            return request.texts, len(request.texts)
        case RerankRequest():
            # most rerankers read and count the query once per document
            texts = [request.query + document for document in request.documents]
            return texts, len(request.documents)
        case _:
            assert_never(request)


@dataclass(slots=True, kw_only=True)
class TokenBounds:
    """Token bounds of one model's calls."""

    count: CountTokens = byte_tokens
    image: CountImage = worst_image_tokens
    most_output: int | None = None  #: None: the request's own limit
    is_unproven: bool = False  #: no reply has shown yet that the limit bounds reasoning

    def worst(self, request: Request, unlimited: int | None = None) -> tuple[int, int]:
        """Return the maximum tokens of the prompt and of the reply.

        Args:
            request: what is asked.
            unlimited: maximum tokens of a reply if no limit can be sent; None: one is
                sent.
        """
        prompt = worst_prompt(request, self.count, self.image)
        least = LEAST_LEARNED if self.is_unproven else 0
        most = max(self.most_output or 0, unlimited or 0, least)
        return prompt, worst_output(request, most)

    def learn(
        self, limit: int, usage: Usage | None, *, is_refusal: bool = False
    ) -> bool:
        """Learn from a reply's usage; return whether later reservations change.

        Args:
            limit: assumed maximum tokens of the reply; 0: none was assumed.
            usage: its tokens; None: not reported.
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
        if not is_over and not (usage.exceeds_completion and self.most_output is None):
            return
        learned = max(LEAST_LEARNED, LEARNED_FACTOR * usage.tokens_out)
        most = max(min(learned, LARGEST_OUTPUT), usage.tokens_out)
        self.most_output = max(most, self.most_output or 0)
        self.is_unproven = False

    def reservation_reason(self, request: Request) -> str:
        """Return why a call reserves more output than its limit; empty: it does not."""
        if not self.is_unproven and self.most_output is None:
            return ""
        most = worst_output(request, self.most_output)
        if self.is_unproven and most < worst_output(request, LEAST_LEARNED):
            return (
                f"{LEAST_LEARNED:,} tokens of output are reserved until a reply "
                "shows that its limit bounds reasoning"
            )
        if most > worst_output(request):
            return f"its limit does not bound reasoning: {most:,} tokens are reserved"
        return ""


USUAL_MESSAGE_TOKENS: Final = 4
"""Usual overhead of a message or text."""


_TOKEN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]{1,7}|\d{1,3}|[^\w\s]{1,2}|[^\W\d]")


@lru_cache(maxsize=CACHED_TEXTS)
def text_tokens(text: str) -> int:
    """Return the likely tokens of a text, by its letters, digits and marks."""
    return len(_TOKEN.findall(text))


def prompt_tokens(request: Request, count: CountTokens = text_tokens) -> int:
    """Return the likely tokens of a prompt."""
    texts, pieces = texts_read(request)
    read = (*texts, schema_read(request))
    images = sum(map(image_tokens, images_read(request)))
    return sum(map(count, read)) + images + USUAL_MESSAGE_TOKENS * pieces
