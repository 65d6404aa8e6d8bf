"""What two spellings of one text have in common."""

from __future__ import annotations

import re
import unicodedata

_DASH = re.compile("[‐‑‒–—―−﹘﹣－]")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


def folded(text: str) -> str:
    """A text without what case, blanks and compatible characters (NFKC) tell apart."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def plain_dashes(text: str) -> str:
    """A text whose dashes and minus signs are all the one of the keyboard."""
    return _DASH.sub("-", text)  # of a whole paper ten times faster than `translate`


def plain_superscripts(text: str) -> str:
    """A text with `10⁻⁹` written as `10^-9`; before NFKC, which would make it 10−9."""
    return _RAISED.sub(_lowered, text)


def _lowered(run: re.Match[str]) -> str:
    caret = "" if run.string.endswith("^", 0, run.start()) else "^"
    return caret + run[0].translate(_SUPERSCRIPTS)
