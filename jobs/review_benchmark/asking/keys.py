"""The item keys of tasks.

A paper is `<review>:<id>`; a conclusion is `<review>#<digest>` of the papers it is
drawn from, so that another threshold makes another task. What compares conclusions
names reviews and the subject model, and has a digest of the texts.
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
    return f"{review}#{_digest(','.join(map(str, papers)))}"


def review_of_key(key: str) -> str:
    """The review of a key of a conclusion, or of what its authors concluded."""
    return key.rpartition("#")[0]


def truth_key(review: str, conclusion: str) -> str:
    """The key of what a review's authors concluded."""
    return f"{review}#{_digest(conclusion)}"


def said_key(review: str, conclusion: str, model: str) -> str:
    """The key of a subject model's conclusion alone."""
    return f"{review}#{_digest(conclusion)}/{model}"


def judged_key(review: str, truth: str, texts: tuple[str, str], model: str) -> str:
    """The key of two conclusions that a judge is shown.

    Args:
        review: what the subject model concludes about.
        truth: the review whose authors' conclusion stands beside it.
        texts: its conclusion and theirs.
        model: the subject model.
    """
    return f"{review}~{truth}#{_digest(*texts)}/{model}"


def is_first(key: str) -> bool:
    """Whether the model's conclusion is called A: a coin that the key tosses."""
    return sha256(key.encode()).digest()[-1] % 2 == 0


def _digest(*texts: str) -> str:
    joined = "\0".join(texts)
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]
