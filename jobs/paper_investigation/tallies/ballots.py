"""Who answered which question rightly, for pairing models.

A question is a number here, the same for all models, and a model's verdicts are one
byte a question; texts are not held.
"""

from __future__ import annotations

import numpy as np

from jobs.metrics import McNemar, mcnemar
from jobs.paper_investigation.marking.paper import MarkedPaper

_WRONG, _RIGHT = 1, 2


class Ballots:
    """The verdicts of all models."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._verdicts: dict[str, bytearray] = {}

    def add(self, paper: MarkedPaper) -> None:
        """Note the verdicts on one paper's questions, in its replicate."""
        own = self._verdicts.setdefault(paper.record.model, bytearray())
        for marked in paper.questions:
            if marked.judgement is None:
                continue
            identity = (marked.item.key, paper.record.replicate)
            number = self._numbers.setdefault(identity, len(self._numbers))
            own.extend(bytes(max(0, number + 1 - len(own))))
            own[number] = _RIGHT if marked.is_right else _WRONG

    def paired(self, left: str, right: str) -> tuple[int, McNemar]:
        """Questions both models answered, and McNemar's test over them."""
        shared = min(len(self._of(left)), len(self._of(right)))
        a = np.frombuffer(self._of(left), dtype=np.uint8)[:shared]
        b = np.frombuffer(self._of(right), dtype=np.uint8)[:shared]
        only_left = int(np.sum((a == _RIGHT) & (b == _WRONG)))
        only_right = int(np.sum((a == _WRONG) & (b == _RIGHT)))
        return int(np.sum((a > 0) & (b > 0))), mcnemar(only_left, only_right)

    def _of(self, model: str) -> bytes:
        return bytes(self._verdicts.get(model, b""))
