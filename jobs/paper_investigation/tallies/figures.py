"""What stays of a paper once it is marked: a few numbers, and none of its texts.

A paper of several replicates counts once: its value is the mean over the replicates in
which it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobs.metrics import mean, ratio
from jobs.paper_investigation.marking.paper import MarkedPaper, distinct

UNPARSED = "extraction_unparsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The numbers of one paper in one replicate."""

    skip: str | None
    is_parsed: bool
    truth: int  #: variants
    recalled: int
    predicted: int
    recall: float | None
    precision: float | None
    f1: float | None
    accuracies: tuple[float, ...]  #: by recalled variant with answers
    question_accuracy: float | None
    score: float | None
    score_with_missing_as_wrong: float | None
    right: int
    answered: int
    missing: int  #: asked, without a reply
    planned: int  #: questions of recalled variants, whether the run asked them or not
    not_asked: int  #: recalled variants about which nothing was asked
    unlinked: int  #: recalled variants that no question names
    merged: int  #: spellings in the truth that are one variant with an earlier one

    @classmethod
    def of(cls, paper: MarkedPaper) -> Figures:
        """The numbers of *paper*."""
        accuracies = tuple(paper.accuracies.values())
        answered = [q for q in paper.questions if q.judgement]
        return cls(
            skip=paper.skip,
            is_parsed=paper.is_parsed,
            truth=len(paper.truth),
            recalled=len(paper.recalled),
            predicted=len(paper.predicted or ()),
            recall=paper.recall,
            precision=paper.precision,
            f1=paper.f1,
            accuracies=accuracies,
            question_accuracy=mean(accuracies),
            score=paper.score,
            score_with_missing_as_wrong=paper.score_with_missing_as_wrong,
            right=sum(q.is_right for q in answered),
            answered=len(answered),
            missing=len(paper.questions) - len(answered),
            planned=len(paper.questions) + len(paper.unasked),
            not_asked=len(paper.recalled) - len(paper.links),
            unlinked=len(paper.unlinked),
            merged=len(distinct(paper.record.truth, "keep")) - len(paper.truth),
        )

    @property
    def pooled_accuracy(self) -> float:
        """Right answers over all answers; 0 where there are none."""
        return ratio(self.right, self.answered) or 0.0


Value = Callable[[Figures], float | None]


class Papers:
    """The figures of one model's papers, in the order in which they came."""

    def __init__(self) -> None:
        self._figures: dict[str, tuple[Figures, ...]] = {}  #: by replicate

    def add(self, paper: MarkedPaper) -> None:
        """Take one paper of one replicate in."""
        pmcid = paper.record.pmcid
        self._figures[pmcid] = (*self._figures.get(pmcid, ()), Figures.of(paper))

    def __len__(self) -> int:
        return len(self._figures)

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    @property
    def scored(self) -> list[str]:
        """Papers with a score in some replicate, ascending as text."""
        return sorted(p for p, own in self._figures.items() if _skip(own) is None)

    @property
    def skips(self) -> dict[str, str]:
        """The other papers and why, in order."""
        reasons = {pmcid: _skip(own) for pmcid, own in self._figures.items()}
        return {pmcid: reason for pmcid, reason in reasons.items() if reason}

    def value(self, pmcid: str, of: Value) -> float | None:
        """A paper's value: its mean over the replicates that have one."""
        values = [of(each) for each in self._figures[pmcid] if each.skip is None]
        # most runs have one replicate, and large ones are asked this a million times
        return values[0] if len(values) == 1 else mean(values)

    def values(self, of: Value) -> list[float | None]:
        """The value of each scored paper."""
        return [self.value(pmcid, of) for pmcid in self.scored]

    def sums(self, of: Callable[[Figures], int]) -> list[int]:
        """The total over replicates of each scored paper."""
        return [sum(map(of, self._counted(pmcid))) for pmcid in self.scored]

    def parsed_values(self, of: Value) -> list[float | None]:
        """The value of each paper whose extraction was read, scored or not."""
        return [
            mean(of(each) for each in own if each.is_parsed)
            for own in self._figures.values()
            if any(each.is_parsed for each in own)
        ]

    def total(self, of: Callable[[Figures], int]) -> int:
        """The total over all papers and replicates, skipped ones included."""
        return sum(of(each) for own in self._figures.values() for each in own)

    def accuracies(self) -> list[float]:
        """The question accuracy of every recalled variant of every scored paper."""
        return [
            accuracy
            for pmcid in self.scored
            for each in self._counted(pmcid)
            for accuracy in each.accuracies
        ]

    def _counted(self, pmcid: str) -> list[Figures]:
        return [each for each in self._figures[pmcid] if each.skip is None]


def _skip(replicates: Sequence[Figures]) -> str | None:
    """Why a paper has no score in any replicate; None where one has."""
    reasons = [each.skip for each in replicates]
    return None if None in reasons else reasons[0]
