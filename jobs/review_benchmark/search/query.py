"""A query as a model plans it, and as FTS5 is asked it.

Text of a model never reaches FTS5 as syntax: what it says is cut into words, and each
is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

GROUPS = 8
TERMS = 12
WORDS = 8
"""At most so many groups a query, synonyms a group and words a term."""

_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is searched: every group by one of its synonyms, and none of the others."""

    label: str
    all_of: tuple[tuple[str, ...], ...]  #: groups of synonyms; at least one
    none_of: tuple[str, ...] = ()


def expression(query: Query) -> str:
    """A query in the syntax of FTS5; empty where no term can be searched.

    Synonyms by OR, groups by AND, exclusions by NOT.
    """
    groups = [
        "(" + " OR ".join(terms) + ")"
        for group in query.all_of[:GROUPS]
        if (terms := _terms(group))
    ]
    if not groups:
        return ""
    wanted = "(" + " AND ".join(groups) + ")"
    unwanted = _terms(query.none_of)
    return f"({wanted} NOT ({' OR '.join(unwanted)}))" if unwanted else wanted


def _terms(given: Iterable[str]) -> list[str]:
    """Terms that hold a letter or a digit, quoted, each once."""
    found = dict.fromkeys(quoted for term in given if (quoted := _quoted(term)))
    return list(found)[:TERMS]


def _quoted(term: str) -> str:
    """A term as a phrase; a star at its end asks for words that begin so."""
    words = term.split()[:WORDS]
    is_prefix = bool(words) and words[-1].endswith("*")
    phrase = " ".join(words).rstrip("*").replace('"', '""').replace("\0", " ").strip()
    if not _WORD.search(phrase):
        return ""
    return f'"{phrase}"*' if is_prefix else f'"{phrase}"'
