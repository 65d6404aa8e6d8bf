"""What two spellings of one text have in common."""

from __future__ import annotations

import re
import unicodedata

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"))
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_RAISED = re.compile(r"\^?([⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+)")


def folded(text: str) -> str:
    """A text without what case, blanks and compatible characters (NFKC) tell apart."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def plain_dashes(text: str) -> str:
    """A text whose dashes and minus signs are all the one of the keyboard."""
    return text.translate(_DASHES)


def plain_superscripts(text: str) -> str:
    """A text with `10⁻⁹` written as `10^-9`; before NFKC, which would make it 10−9."""
    if text.isascii():  # as nearly all are
        return text
    return _RAISED.sub(lambda run: f"^{run[1].translate(_SUPERSCRIPTS)}", text)
