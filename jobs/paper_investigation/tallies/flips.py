"""Verdicts that differ between the two rule sets, on the same replies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.paper_investigation.marking.judging import Judgement, RuleChoice, judge
from jobs.paper_investigation.marking.paper import Marked, MarkedPaper
from jobs.paper_investigation.settings import PIPELINES
from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.measure import Measure, count


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """One answer whose verdict depends on the rules."""

    marked: Marked
    other: Judgement


def flips(paper: MarkedPaper, other: RuleChoice) -> Iterator[Flip]:
    """The counted answers of *paper* that the *other* rules judge differently."""
    for marked in paper.questions:
        judged = judge(marked.item, other)
        if judged is not None and judged.right != marked.is_right:
            yield Flip(marked=marked, other=judged)


class Flips:
    """Flips of one model, by pipeline and direction."""

    def __init__(self) -> None:
        self.to_right = dict.fromkeys((*PIPELINES, TOTAL), 0)
        self.to_wrong = dict.fromkeys((*PIPELINES, TOTAL), 0)

    def add(self, paper: MarkedPaper, other: RuleChoice) -> None:
        """Count the flips of one paper in one replicate."""
        for flip in flips(paper, other):
            counted = self.to_right if flip.other.right else self.to_wrong
            counted[flip.marked.item.question.pipeline] += 1
            counted[TOTAL] += 1

    def measures(self, rules: str) -> Iterator[Measure]:
        """Flips from the chosen rules to those of the lens called *rules*."""
        for name in self.to_right:
            for direction, counted in (
                ("to_right", self.to_right),
                ("to_wrong", self.to_wrong),
            ):
                yield count(
                    f"pipeline.{name}.{direction}~{rules}",
                    counted[name],
                    "verdicts that change under the other rules",
                )
