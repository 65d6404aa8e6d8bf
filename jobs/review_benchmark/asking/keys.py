"""The item keys of tasks.

A paper is `<review>:<id>`; a conclusion is `<review>#<digest>` of the papers it is
drawn from, so that another threshold makes another task; a judged pair names both
reviews and the conclusion's model.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

DIGEST = 10
"""Hex digits of a digest in a key."""


def paper_key(review: str, paper: int) -> str:
    """The key of a paper that is scored for a review."""
    return f"{review}:{paper}"


def paper_of_key(key: str) -> tuple[str, int]:
    """Review and paper of a key; raise `ValueError` where it is of no paper."""
    review, _, paper = key.rpartition(":")
    return review, int(paper)


def conclusion_key(review: str, papers: Iterable[int]) -> str:
    """The key of a conclusion from papers, in the order in which they are shown."""
    listed = ",".join(map(str, papers))
    return f"{review}#{sha256(listed.encode()).hexdigest()[:DIGEST]}"


def review_of_key(key: str) -> str:
    """The review of a conclusion's key."""
    return key.rpartition("#")[0]
