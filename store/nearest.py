"""Finds the names that a misspelt word may stand for: one rule for every kind of name.

Commands, options, settings, jobs, models, runs, keys of files and of filters all answer
a typing mistake with the nearest name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHORTEST = 3
"""Letters from which the beginning of a name stands for it."""

RATIO = 0.6
"""Similarity from which a name is near, 0 to 1 (`difflib.SequenceMatcher.ratio`)."""


def nearest(
    word: str, names: Iterable[str], *, limit: int = 1, ratio: float = RATIO
) -> list[str]:
    """Return the names that *word* may stand for, the likeliest first.

    Case and the difference of `-` and `_` do not count. A name is near if it is the
    word, ends with it after a slash, begins with it, or has similar letters.

    >>> nearest("GPT-4o-mini", ["openai/gpt-4o", "openai/gpt-4o-mini"])
    ['openai/gpt-4o-mini']
    >>> nearest("screning", ["ask", "screening"])
    ['screening']

    Args:
        word: the misspelt word.
        names: the known names.
        limit: maximum number of names.
        ratio: similarity from which a name is near; 0: some name always is.
    """
    plain = {name: _plain(name) for name in names}
    typed = _plain(word)
    same = [name for name, known in plain.items() if known == typed]
    tails = [name for name, known in plain.items() if known.endswith(f"/{typed}")]
    heads = [
        name
        for name, known in plain.items()
        if len(typed) >= SHORTEST and known.startswith(typed)
    ]
    near = [*same, *sorted(tails, key=len), *sorted(heads, key=len)]
    if len(near) < limit:
        names_of: dict[str, list[str]] = {}
        for name, known in plain.items():
            for text in {known, known.rpartition("/")[2]}:
                names_of.setdefault(text, []).append(name)
        similar = difflib.get_close_matches(typed, names_of, n=limit, cutoff=ratio)
        near += [name for text in similar for name in names_of[text]]
    return list(dict.fromkeys(near))[:limit]


def did_you_mean(
    word: str, names: Iterable[str], otherwise: str, *, limit: int = 1
) -> str:
    """Return the end of a sentence: "did you mean 'x'?", or *otherwise*."""
    near = nearest(word, names, limit=limit)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")
