"""The order in which papers are drawn: by a hash, and so the same on every machine.

No library's generator takes part. A larger draw only adds papers.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator

_PART = "\x1f"
"""Between the parts of what is hashed (unit separator)."""


def lot(seed: int, review: str, kind: str, paper: str) -> str:
    """The paper's place in its pool, as the hexadecimal SHA-256 that orders it."""
    ((found, _),) = _lots((paper,), seed, review, kind)
    return found.hex()


def drawn(
    papers: Iterable[str], n: int, *, seed: int, review: str, kind: str
) -> list[str]:
    """The first *n* papers of a pool, in order of their lots; all if there are fewer.

    No more than *n* are ever held.
    """
    lots = _lots(papers, seed, review, kind)
    return [paper for _, paper in heapq.nsmallest(n, lots)]


def shuffled(reviews: Iterable[str], seed: int) -> list[str]:
    """Reviews in the seeded order, of which `max_reviews` takes the first."""
    return sorted(reviews, key=lambda review: (lot(seed, review, "review", ""), review))


def _lots(
    papers: Iterable[str], seed: int, review: str, kind: str
) -> Iterator[tuple[bytes, str]]:
    """Papers with the hashes that order them, which all begin alike."""
    begun = hashlib.sha256(_PART.join((str(seed), review, kind, "")).encode())
    for paper in papers:
        own = begun.copy()
        own.update(paper.encode())
        yield own.digest(), paper
