"""Right answers by pipeline, question type and table type, and what study fields say.

Every question counts once here, however many recalled variants it belongs to; `links`
says how often the variants' own accuracies use them.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.metrics import Ratio
from jobs.paper_investigation.marking.paper import Marked, MarkedPaper
from jobs.paper_investigation.settings import PIPELINES
from jobs.paper_investigation.tallies.measure import (
    Measure,
    count,
    rate,
    wilson_rate,
)

TOTAL = "TOTAL"
"""Stands behind the pipelines for all of them together."""

ACCURACY = "right / answered, each question once"
"""What the accuracy of a pipeline is."""

TypeOf: TypeAlias = Literal["question_type", "table_type"]
TYPES: tuple[TypeOf, ...] = ("question_type", "table_type")


@dataclass(slots=True, kw_only=True)
class Group:
    """Questions that have something in common."""

    asked: int = 0
    right: int = 0
    unparsed: int = 0
    missing: Counter[str] = field(default_factory=Counter)  #: by reason
    links: int = 0

    @property
    def answered(self) -> int:
        """Questions that have a reply, readable or not."""
        return self.asked - self.missing.total()

    def add(self, question: Marked) -> None:
        """Count one question."""
        self.asked += 1
        judgement = question.judgement
        if judgement is None:
            self.missing[question.item.absent or ""] += 1
            return
        self.right += judgement.right
        self.unparsed += judgement.failed


class Breakdown:
    """The questions of one model, grouped in every way that is reported."""

    def __init__(self) -> None:
        names = (*PIPELINES, TOTAL)
        self.pipelines: dict[str, Group] = {name: Group() for name in names}
        #: by what is grouped, by pipeline, by its value
        self.types: dict[TypeOf, dict[str, dict[str, Group]]] = {
            kind: {name: defaultdict(Group) for name in names} for kind in TYPES
        }
        #: by pipeline, by paper: right, answered; for the intervals
        self._by_paper: dict[str, dict[str, list[int]]] = {name: {} for name in names}

    def add(self, paper: MarkedPaper) -> None:
        """Count the questions of one paper in one replicate."""
        for marked in paper.questions:
            question = marked.item.question
            for name in (question.pipeline, TOTAL):
                self.pipelines[name].add(marked)
                self._note(name, marked)
                self.types["question_type"][name][question.question_type].add(marked)
                self.types["table_type"][name][question.table_type].add(marked)
        for marked in itertools.chain.from_iterable(paper.links.values()):
            if marked.judgement is not None:
                self.pipelines[marked.item.question.pipeline].links += 1
                self.pipelines[TOTAL].links += 1

    @property
    def papers(self) -> list[str]:
        """Papers with an answered question, ascending as text."""
        return sorted(self._by_paper[TOTAL])

    def measures(self, papers: Sequence[str], level: float) -> Iterator[Measure]:
        """The figures of every group; *papers* are the clusters of the intervals."""
        for name, group in self.pipelines.items():
            path = f"pipeline.{name}"
            yield from _counts(path, group)
            yield rate(
                f"{path}.accuracy",
                group.right,
                group.answered,
                ACCURACY,
                self._ratio(name, papers),
            )
            yield wilson_rate(
                f"{path}.accuracy",
                group.right,
                group.answered,
                ACCURACY,
                level,
            )
        for kind in TYPES:
            for name, group in sorted(self.types[kind][TOTAL].items()):
                if name:
                    yield rate(
                        f"{kind}.{name}.accuracy",
                        group.right,
                        group.answered,
                        f"right / answered of the {kind}",
                    )

    def _note(self, name: str, marked: Marked) -> None:
        if marked.judgement is not None:
            pmcid = marked.item.question.pmcid
            paper = self._by_paper[name].setdefault(pmcid, [0, 0])
            paper[0] += marked.judgement.right
            paper[1] += 1

    def _ratio(self, name: str, papers: Sequence[str]) -> Ratio:
        """Right over answered, as columns over *papers*."""
        pairs = [self._by_paper[name].get(pmcid, (0, 0)) for pmcid in papers]
        return Ratio([right for right, _ in pairs], [n for _, n in pairs])


def _counts(path: str, group: Group) -> Iterator[Measure]:
    yield count(f"{path}.questions", group.answered, "questions with a reply")
    yield count(f"{path}.correct", group.right, "right answers")
    yield count(f"{path}.unparsed", group.unparsed, "replies that could not be read")
    missing = group.missing.total()
    yield count(f"{path}.missing", missing, "questions without a reply")
    for reason in sorted(group.missing):
        yield count(f"{path}.missing.{reason}", group.missing[reason], "by reason")
    yield count(f"{path}.links", group.links, "uses in variants' own accuracies")
