"""Averages over papers: recall, question accuracy, paper score, alternatives.

A paper of several replicates counts once: its value is the mean over the replicates in
which it has one.

Beside each stand the named alternatives: what the number would be under another
reading of an open point. They are printed with it, never instead of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.kit import measurements
from jobs.kit.measurements import Measurement
from jobs.kit.metrics import Ratio, mean, ratio
from jobs.paper_investigation.grading import GradedPaper, distinct
from jobs.paper_investigation.measures import (
    count,
    mean_of_values,
    mean_over_papers,
    rate,
    ratio_of,
)
from jobs.paper_investigation.records import Mode

UNPARSED = "extraction_unparsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperScore:
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
    def of(cls, paper: GradedPaper) -> PaperScore:
        """The numbers of *paper*."""
        accuracies = tuple(paper.accuracies.values())
        answered = [q for q in paper.answers if q.judgement]
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
            missing=len(paper.answers) - len(answered),
            planned=len(paper.answers) + len(paper.unasked),
            not_asked=len(paper.recalled) - len(paper.links),
            unlinked=len(paper.unlinked),
            merged=len(distinct(paper.record.truth, "keep")) - len(paper.truth),
        )

    @property
    def pooled_accuracy(self) -> float:
        """Right answers over all answers; 0 where there are none."""
        return ratio(self.right, self.answered) or 0.0


Value = Callable[[PaperScore], float | None]


class PaperScores:
    """The figures of one model's papers, in the order in which they came."""

    def __init__(self) -> None:
        self._figures: dict[str, tuple[PaperScore, ...]] = {}  #: by replicate

    def add(self, paper: GradedPaper) -> None:
        """Take one paper of one replicate in."""
        pmcid = paper.record.pmcid
        self._figures[pmcid] = (*self._figures.get(pmcid, ()), PaperScore.of(paper))

    def __len__(self) -> int:
        return len(self._figures)

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    @property
    def scored(self) -> list[str]:
        """Papers with a score in some replicate, ascending as text."""
        return sorted(
            p for p, replicates in self._figures.items() if _skip(replicates) is None
        )

    @property
    def skips(self) -> dict[str, str]:
        """The other papers and why, in order."""
        reasons = {
            pmcid: _skip(replicates) for pmcid, replicates in self._figures.items()
        }
        return {pmcid: reason for pmcid, reason in reasons.items() if reason}

    def value(self, pmcid: str, of: Value) -> float | None:
        """A paper's value: its mean over the replicates that have one."""
        values = [
            of(replicate)
            for replicate in self._figures[pmcid]
            if replicate.skip is None
        ]
        # most runs have one replicate, and large ones are asked this a million times
        return values[0] if len(values) == 1 else mean(values)

    def values(self, of: Value) -> list[float | None]:
        """The value of each scored paper."""
        return [self.value(pmcid, of) for pmcid in self.scored]

    def sums(self, of: Callable[[PaperScore], int]) -> list[int]:
        """The total over replicates of each scored paper."""
        return [sum(map(of, self._counted(pmcid))) for pmcid in self.scored]

    def parsed_values(self, of: Value) -> list[float | None]:
        """The value of each paper whose extraction was read, scored or not."""
        return [
            mean(of(replicate) for replicate in replicates if replicate.is_parsed)
            for replicates in self._figures.values()
            if any(replicate.is_parsed for replicate in replicates)
        ]

    def total(self, of: Callable[[PaperScore], int]) -> int:
        """The total over all papers and replicates, skipped ones included."""
        return sum(
            of(replicate)
            for replicates in self._figures.values()
            for replicate in replicates
        )

    def accuracies(self) -> list[float]:
        """The question accuracy of every recalled variant of every scored paper."""
        return [
            accuracy
            for pmcid in self.scored
            for replicate in self._counted(pmcid)
            for accuracy in replicate.accuracies
        ]

    def _counted(self, pmcid: str) -> list[PaperScore]:
        return [
            replicate for replicate in self._figures[pmcid] if replicate.skip is None
        ]


def _skip(replicates: Sequence[PaperScore]) -> str | None:
    """Why a paper has no score in any replicate; None where one has."""
    reasons = [replicate.skip for replicate in replicates]
    return None if None in reasons else reasons[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperAverage:
    """A mean over scored papers."""

    path: str
    of: str  #: what a paper's value is
    value: Value

    @property
    def definition(self) -> str:
        """What a metric states, and what a comparison asks to be the same."""
        return mean_over_papers(self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRatio:
    """A ratio of sums over scored papers."""

    path: str
    of: str
    above: Callable[[PaperScore], int]
    below: Callable[[PaperScore], int]

    @property
    def definition(self) -> str:
        """What a metric states, and what a comparison asks to be the same."""
        return ratio_of(self.of)

    def measure(self, papers: PaperScores) -> Measurement:
        """The ratio over *papers*, with its columns."""
        above, below = papers.sums(self.above), papers.sums(self.below)
        return rate(self.path, sum(above), sum(below), self.of, Ratio(above, below))


RECALL = PaperAverage(
    path="avg_variant_recall",
    of="|R|/|T|",
    value=lambda paper: paper.recall,
)
PRECISION = PaperAverage(
    path="avg_precision",
    of="|R|/|L|, a lower bound as the truth lists findings only",
    value=lambda paper: paper.precision,
)
F1 = PaperAverage(
    path="avg_f1",
    of="2|R|/(|T|+|L|)",
    value=lambda paper: paper.f1,
)
QUESTION_ACC = PaperAverage(
    path="avg_question_acc",
    of="mean right/answered over recalled variants with answers",
    value=lambda paper: paper.question_accuracy,
)
SCORE = PaperAverage(
    path="avg_paper_score",
    of="recall x question accuracy, 0 without questions",
    value=lambda paper: paper.score,
)

AVERAGES: Mapping[Mode, tuple[PaperAverage, ...]] = {
    "investigate": (RECALL, QUESTION_ACC, SCORE, PRECISION, F1),
    "extract": (RECALL, PRECISION, F1),
    "questions": (),
}

HEADLINES: Mapping[Mode, str] = {
    "investigate": SCORE.path,
    "extract": RECALL.path,
    "questions": "pipeline.TOTAL.accuracy",
}
"""The one metric that a scoring is judged by."""


MICRO = (
    PooledRatio(
        path="avg_variant_recall~micro",
        of="sum |R| / sum |T|",
        above=lambda paper: paper.recalled,
        below=lambda paper: paper.truth,
    ),
    PooledRatio(
        path="avg_precision~micro",
        of="sum |R| / sum |L|",
        above=lambda paper: paper.recalled,
        below=lambda paper: paper.predicted,
    ),
    PooledRatio(
        path="avg_f1~micro",
        of="2 sum |R| / sum (|T|+|L|)",
        above=lambda paper: 2 * paper.recalled,
        below=lambda paper: paper.truth + paper.predicted,
    ),
)
QUESTIONS_POOLED = PooledRatio(
    path="avg_question_acc~questions_pooled",
    of="right / answered over all questions",
    above=lambda paper: paper.right,
    below=lambda paper: paper.answered,
)

POOLED: Mapping[Mode, tuple[PooledRatio, ...]] = {
    "investigate": (*MICRO, QUESTIONS_POOLED),
    "extract": MICRO,
    "questions": (),
}


def headline(papers: PaperScores, mode: Mode) -> Iterator[Measurement]:
    """The averages of one model with their intervals, and their alternatives."""
    yield from _counts(papers)
    for average in AVERAGES[mode]:
        values = papers.values(average.value)
        yield _mean(average.path, average.of, values, sampled=True)
    yield from (pooled.measure(papers) for pooled in MICRO)
    yield count(
        "truth_merged",
        papers.total(lambda paper: paper.merged),
        "spellings in the truth that are one variant with an earlier one",
    )
    if mode == "investigate":
        yield from _reach(papers)
        yield from _accuracy_alternatives(papers)
        yield from _score_alternatives(papers)


def headline_variants(
    name: str, papers: PaperScores, mode: Mode
) -> Iterator[Measurement]:
    """The averages of the same replies under other settings, called *name*."""
    for average in AVERAGES[mode]:
        if average not in (PRECISION, F1):
            values = papers.values(average.value)
            yield _mean(f"{average.path}~{name}", average.of, values)


def _counts(papers: PaperScores) -> Iterator[Measurement]:
    yield count("papers_scored", len(papers.scored), "papers with a score")
    yield count("papers_skipped", len(papers.skips), "papers without a score")
    reasons = Counter(papers.skips.values())
    for reason in sorted(reasons):
        yield count(f"papers_skipped.{reason}", reasons[reason], "papers by reason")


def _reach(papers: PaperScores) -> Iterator[Measurement]:
    """How many recalled variants the questions reach."""
    yield count(
        "recalled_not_asked",
        papers.total(lambda paper: paper.not_asked),
        "recalled variants without a question in the run",
    )
    yield count(
        "recalled_without_questions",
        papers.total(lambda paper: paper.unlinked),
        "recalled variants that no question names",
    )


def _accuracy_alternatives(papers: PaperScores) -> Iterator[Measurement]:
    of_paper = papers.values(QUESTION_ACC.value)
    with_questions = sum(value is not None for value in of_paper)
    yield count(
        "papers_with_questions",
        with_questions,
        "scored papers with a question accuracy",
    )
    yield count(
        "papers_without_questions",
        len(of_paper) - with_questions,
        "scored papers without a question on a recalled variant; their score is 0",
    )
    yield _mean(
        "avg_question_acc~pooled_per_paper_zeros",
        "right/answered of the paper, 0 without questions",
        papers.values(lambda paper: paper.pooled_accuracy),
    )
    yield _mean(
        "avg_question_acc~zeros_for_papers_without",
        f"{QUESTION_ACC.of}, 0 without questions",
        [value or 0.0 for value in of_paper],
    )
    accuracies = papers.accuracies()
    yield Measurement(
        path="avg_question_acc~variants_pooled",
        definition="mean@1(right/answered, over=recalled variants with answers)",
        measured=measurements.count(mean(accuracies), len(accuracies)),
    )
    yield QUESTIONS_POOLED.measure(papers)


def _score_alternatives(papers: PaperScores) -> Iterator[Measurement]:
    scores = papers.values(SCORE.value)
    skips = papers.skips.values()
    unparsed = sum(reason == UNPARSED for reason in skips)
    yield _mean(
        "avg_paper_score~parse_failures_as_zero",
        f"{SCORE.of}, 0 for papers whose extraction was unparsed",
        [*scores, *[0.0] * unparsed],
    )
    yield _mean(
        "avg_paper_score~skipped_as_zero",
        f"{SCORE.of}, 0 for skipped papers",
        [*scores, *[0.0] * len(skips)],
    )
    yield _mean(
        "avg_paper_score~papers_with_questions",
        f"{SCORE.of}, only papers with a question accuracy",
        papers.values(_score_with_questions),
        sampled=True,
    )
    if papers.total(lambda paper: paper.missing):
        yield _mean(
            "avg_paper_score~missing_as_wrong",
            f"{SCORE.of}, questions without a reply counted as wrong",
            papers.parsed_values(lambda paper: paper.score_with_missing_as_wrong),
        )


def _score_with_questions(paper: PaperScore) -> float | None:
    return None if paper.question_accuracy is None else paper.score


def _mean(
    path: str, of: str, values: list[float | None], *, sampled: bool = False
) -> Measurement:
    return Measurement(
        path=path,
        definition=mean_over_papers(of),
        measured=mean_of_values(values, is_drawn=sampled),
    )
