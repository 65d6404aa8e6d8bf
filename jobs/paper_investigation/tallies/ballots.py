"""Who answered which question, and what was right about it, for pairing models.

A question is a number here, the same for all models, and a model's verdicts are one
byte a question; texts are not held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.paper_investigation.marking.judging import Judgement
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.settings import PIPELINES, Pipeline
from jobs.paper_investigation.tallies.breakdown import ACCURACY, TOTAL
from jobs.paper_investigation.tallies.measure import ratio_of
from jobs.paper_investigation.tallies.study import STUDY, right_of
from runner.scorecard import ItemValues

_ANSWERED, _RIGHT, _P_VALUE, _SIGNIFICANCE = 1, 2, 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Answers that are right in some way, among those of some questions."""

    pipeline: str  #: TOTAL: all of them
    bit: int  #: of a verdict
    of: str


SHARES: Mapping[str, Share] = {
    **{
        f"pipeline.{name}.accuracy": Share(pipeline=name, bit=_RIGHT, of=ACCURACY)
        for name in (*PIPELINES, TOTAL)
    },
    **{
        f"{STUDY}.{name}.accuracy": Share(
            pipeline="study_param", bit=bit, of=right_of(name)
        )
        for name, bit in (
            ("p_value", _P_VALUE),
            ("significance", _SIGNIFICANCE),
        )
    },
}
"""Of which metrics the verdicts are the items, by path.

Both fields right is what right means: the accuracy of the pipeline.
"""


class Ballots:
    """The verdicts of all models."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._papers: list[str] = []  #: of each question, as the next
        self._pipelines: list[Pipeline] = []
        self._verdicts: dict[str, bytearray] = {}

    def add(self, paper: MarkedPaper) -> None:
        """Note the verdicts on one paper's questions, in its replicate."""
        own = self._verdicts.setdefault(paper.record.model, bytearray())
        for marked in paper.questions:
            if marked.judgement is None:
                continue
            identity = (marked.item.key, paper.record.replicate)
            number = self._numbers.setdefault(identity, len(self._numbers))
            if number == len(self._papers):
                self._papers.append(paper.record.pmcid)
                self._pipelines.append(marked.item.question.pipeline)
            own.extend(bytes(max(0, number + 1 - len(own))))
            own[number] = _verdict(marked.judgement)

    def shares(self, model: str) -> Iterator[str]:
        """The paths of what *model* has answers to."""
        answered = set(self._answered(model))
        asked = {self._pipelines[number] for number in answered}
        for path, share in SHARES.items():
            if share.pipeline in {TOTAL, *asked}:
                yield path

    def values(self, model: str, path: str) -> ItemValues:
        """Right or not, by answered question of the share at *path*."""
        share = SHARES[path]
        verdicts = self._verdicts.get(model, b"")
        numbers = [
            number
            for number in self._answered(model)
            if share.pipeline in {TOTAL, self._pipelines[number]}
        ]
        names = list(self._numbers)
        return ItemValues(
            kind="mean",
            items=[_name(*names[number]) for number in numbers],
            clusters=[self._papers[number] for number in numbers],
            cluster="paper",
            first=[float(verdicts[number] & share.bit > 0) for number in numbers],
            definition=ratio_of(share.of),
        )

    def _answered(self, model: str) -> list[int]:
        verdicts = np.frombuffer(self._verdicts.get(model, b""), dtype=np.uint8)
        found: list[int] = np.flatnonzero(verdicts).tolist()
        return found


def _verdict(judgement: Judgement) -> int:
    return (
        _ANSWERED
        | _RIGHT * judgement.right
        | _P_VALUE * judgement.p_value_right
        | _SIGNIFICANCE * judgement.significance_right
    )


def _name(key: str, replicate: int) -> str:
    """A question as an item; later replicates are items of their own."""
    return key if replicate == 1 else f"{key} (replicate {replicate})"
