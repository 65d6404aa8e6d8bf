"""A plan in an order that chance has chosen, and always the same.

A run that may stop in the middle must not have asked the easy papers first: what is
seen of a shuffled list is a sample of it. What belongs to one document stays together.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from runner.task import TaskSpec

_SEED = 20260118


def shuffled(specs: Iterable[TaskSpec]) -> list[TaskSpec]:
    """All of *specs*, by the hash of their keys' first part.

    A key begins with its document, as in `PMC123/mcq:7`; what has the first part in
    common stays in the order that it had.
    """
    return sorted(specs, key=lambda spec: _place(re.split(r"[/:#]", spec.key)[0]))


def _place(name: str) -> bytes:
    return hashlib.sha256(f"{_SEED}\0{name}".encode()).digest()
