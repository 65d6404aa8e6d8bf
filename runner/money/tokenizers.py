"""Tokenizers that are on this machine, for the models that are known to use them.

litellm ships the vocabularies of OpenAI's encodings, and tiktoken says which of its
models has which. Both are read from their packages: nothing is downloaded, and a
vocabulary that is missing or is another one than expected means no tokenizer.

The tokenizer of an alias is not known: behind an address of the user's own, a model may
have any name. Anthropic's and Google's are not published; the one for Claude that
litellm ships is of 2023, and newer models count more.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tiktoken import Encoding

CountTokens: TypeAlias = Callable[[str], int]
"""Tokens of a text, at most."""

CACHED_TEXTS: Final = 128
"""A paper is counted once for all that is asked about it in a row: 60 KB take 3.3 ms,
an abstract of 2 KB takes 0.07 ms."""

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
    """Counts tokens as *model* does, at its provider's own address; None: not known.

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
    """Counts by an encoding; None where its vocabulary is not on this machine."""
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
