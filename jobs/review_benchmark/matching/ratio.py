"""How alike two titles are: difflib's ratio, found without computing most of them.

The ratio of `difflib.SequenceMatcher` counts characters in common blocks, twice, over
the characters of both; the blocks are one common subsequence, and rapidfuzz's Indel
similarity counts the longest. So a pair whose Indel similarity is too small cannot
reach the cutoff, and only the others are given to difflib.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from rapidfuzz.distance import Indel
from rapidfuzz.process import extract_iter

JUNK_FROM = 200
"""Characters of a record's title from which on `autojunk` makes a difference."""

MARGIN = 1e-5
"""How far below the cutoff rapidfuzz is asked: it keeps about eight digits of it."""


def ratio(truth: str, record: str, *, autojunk: bool = True) -> float:
    """The ratio of two normalised titles, 0 to 1, as difflib has it.

    It is not symmetric: the truth paper's title comes first.

    Args:
        truth: title of the truth paper.
        record: title of the record.
        autojunk: leave out characters that make up more than 1 % of a record's title
            of 200 characters or more, as difflib does by default.
    """
    return SequenceMatcher(None, truth, record, autojunk=autojunk).ratio()


def alike(
    truth: str, records: Sequence[str], cutoff: float, *, autojunk: bool = True
) -> Iterator[tuple[int, float]]:
    """The titles at or above a cutoff, in their order, each as place and ratio.

    An empty title is alike to none.

    Args:
        truth: normalised title of the truth paper.
        records: normalised titles of the records.
        cutoff: least ratio, inclusive.
        autojunk: as for `ratio`.
    """
    if not truth:
        return
    # the cutoff of rapidfuzz must be at least 0; what is empty is left out by hand
    least = max(cutoff - MARGIN, 0.0)
    survivors = extract_iter(
        truth,
        records,
        scorer=Indel.normalized_similarity,
        processor=None,
        score_cutoff=least,
    )
    for title, _, place in survivors:
        if title:
            found = ratio(truth, title, autojunk=autojunk)
            if found >= cutoff:
                yield place, found
