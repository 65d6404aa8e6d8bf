"""Words of a text, for every lexical stage."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """Lower-case words of the NFKC form; no stemming, no stop words."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())
