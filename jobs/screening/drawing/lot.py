"""The order in which papers are drawn: by a hash, and so the same on every machine.

No library's generator takes part. A larger draw only adds papers.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

_PART = "\x1f"
"""Between the parts of what is hashed (unit separator)."""


def lot(seed: int, review: str, kind: str, paper: str) -> str:
    """The paper's place in its pool, as the hexadecimal SHA-256 that orders it."""
    return _lot(_urn(seed, review, kind), paper).hex()


def drawn(
    papers: Iterable[str], n: int, *, seed: int, review: str, kind: str
) -> list[str]:
    """The first *n* papers of a pool, in order of their lots; all if there are fewer.

    No more than *n* are ever held.
    """
    urn = _urn(seed, review, kind)
    lots = ((_lot(urn, paper), paper) for paper in papers)
    return [paper for _, paper in heapq.nsmallest(n, lots)]


def shuffled(reviews: Iterable[str], seed: int) -> list[str]:
    """Reviews in the seeded order, of which `max_reviews` takes the first."""
    return sorted(reviews, key=lambda review: (lot(seed, review, "review", ""), review))


def _urn(seed: int, review: str, kind: str) -> Hash:
    """The hash of what all lots of a pool begin with, made once for all of them."""
    return hashlib.sha256(_PART.join((str(seed), review, kind, "")).encode())


def _lot(urn: Hash, paper: str) -> bytes:
    own = urn.copy()
    own.update(paper.encode())
    return own.digest()
