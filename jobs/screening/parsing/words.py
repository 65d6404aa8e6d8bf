"""Decisions in words, as models write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.screening.judgement import Decision

WORDS: Mapping[str, Decision] = {
    "include": "include",
    "included": "include",
    "yes": "include",
    "relevant": "include",
    "true": "include",
    "1": "include",
    "exclude": "exclude",
    "excluded": "exclude",
    "no": "exclude",
    "irrelevant": "exclude",
    "false": "exclude",
    "0": "exclude",
    "unclear": "unclear",
    "uncertain": "unclear",
    "unsure": "unclear",
    "maybe": "unclear",
    "cannot tell": "unclear",
}

SHORT = 200
"""The longest reply, in characters, in which one bare word counts as its decision."""

_MARKUP = re.compile(r"[*_`#>~]+")
_LONGEST_FIRST = sorted(WORDS, key=len, reverse=True)
_STATED = re.compile(
    r"(?:final\s+)?(?:decision|verdict|answer)\s*(?:[:=-]|is\b)"
    # a share such as 0.8 or 1% is a number, and "include or exclude" a question
    rf"\W*({'|'.join(_LONGEST_FIRST)})\b(?![.,]?\d|\s*(?:[%/|]|or\b))",
    re.IGNORECASE,
)
# a lone digit in prose is a number, not a decision
_BARE = re.compile(
    rf"\b({'|'.join(word for word in _LONGEST_FIRST if not word.isdigit())})\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\bnot\b|n['\u2019]t\b|\bcannot\b", re.IGNORECASE)
_LACK = re.compile(r"\bno\s+\w", re.IGNORECASE)


def decision_of(value: object) -> Decision | None:
    """The decision that a JSON value stands for; numbers come as texts."""
    if isinstance(value, bool):
        return "include" if value else "exclude"
    if not isinstance(value, str):
        return None
    return WORDS.get(" ".join(value.split()).strip(" .").casefold())


def stated(text: str) -> Decision | None:
    """The decision of the last line that names one as such."""
    for line in reversed(text.splitlines()):
        found = list(_STATED.finditer(_MARKUP.sub("", line)))
        if found:
            return WORDS[found[-1][1].casefold()]
    return None


def bare(text: str) -> Decision | None:
    """The decision of a short reply that holds one decision word and no denial."""
    short = _MARKUP.sub("", text).strip()
    whole = decision_of(short)
    if whole is not None or len(short) > SHORT:
        return whole
    # "cannot tell" is a decision, and no denial of another one
    if _NEGATED.search(_BARE.sub("", short)):
        return None
    # "no abstract" says what is missing: it may go with a decision, and is none
    if not _BARE.search(_LACK.sub("", short)):
        return None
    decisions = {WORDS[found.casefold()] for found in _BARE.findall(short)}
    return decisions.pop() if len(decisions) == 1 else None
