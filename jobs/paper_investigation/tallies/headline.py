"""The numbers a reader looks at first: recall, question accuracy, paper score.

Beside each stand the named alternatives: what the number would be under another
reading of an open point. They are printed with it, never instead of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from jobs.metrics import Ratio, mean, mean_of
from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.tallies.figures import (
    UNPARSED,
    Figures,
    Papers,
    Value,
)
from jobs.paper_investigation.tallies.measure import (
    Measure,
    count,
    mean_over_papers,
    rate,
    ratio_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """A mean over scored papers."""

    path: str
    of: str  #: what a paper's value is
    value: Value

    @property
    def definition(self) -> str:
        """What a metric states, and what a comparison asks to be the same."""
        return mean_over_papers(self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A ratio of sums over scored papers."""

    path: str
    of: str
    above: Callable[[Figures], int]
    below: Callable[[Figures], int]

    @property
    def definition(self) -> str:
        """What a metric states, and what a comparison asks to be the same."""
        return ratio_of(self.of)

    def measure(self, papers: Papers) -> Measure:
        """The ratio over *papers*, with its columns."""
        above, below = papers.sums(self.above), papers.sums(self.below)
        return rate(self.path, sum(above), sum(below), self.of, Ratio(above, below))


RECALL = Average(
    path="avg_variant_recall",
    of="|R|/|T|",
    value=lambda paper: paper.recall,
)
PRECISION = Average(
    path="avg_precision",
    of="|R|/|L|, a lower bound as the truth lists findings only",
    value=lambda paper: paper.precision,
)
F1 = Average(
    path="avg_f1",
    of="2|R|/(|T|+|L|)",
    value=lambda paper: paper.f1,
)
QUESTION_ACC = Average(
    path="avg_question_acc",
    of="mean right/answered over recalled variants with answers",
    value=lambda paper: paper.question_accuracy,
)
SCORE = Average(
    path="avg_paper_score",
    of="recall x question accuracy, 0 without questions",
    value=lambda paper: paper.score,
)

AVERAGES: Mapping[Mode, tuple[Average, ...]] = {
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
    Pooled(
        path="avg_variant_recall~micro",
        of="sum |R| / sum |T|",
        above=lambda paper: paper.recalled,
        below=lambda paper: paper.truth,
    ),
    Pooled(
        path="avg_precision~micro",
        of="sum |R| / sum |L|",
        above=lambda paper: paper.recalled,
        below=lambda paper: paper.predicted,
    ),
    Pooled(
        path="avg_f1~micro",
        of="2 sum |R| / sum (|T|+|L|)",
        above=lambda paper: 2 * paper.recalled,
        below=lambda paper: paper.truth + paper.predicted,
    ),
)
QUESTIONS_POOLED = Pooled(
    path="avg_question_acc~questions_pooled",
    of="right / answered over all questions",
    above=lambda paper: paper.right,
    below=lambda paper: paper.answered,
)

POOLED: Mapping[Mode, tuple[Pooled, ...]] = {
    "investigate": (*MICRO, QUESTIONS_POOLED),
    "extract": MICRO,
    "questions": (),
}


def headline(papers: Papers, mode: Mode) -> Iterator[Measure]:
    """The averages of one model with their intervals, and their alternatives."""
    yield from _counts(papers)
    for average in AVERAGES[mode]:
        values = papers.values(average.value)
        measure = _mean(average.path, average.of, values)
        yield replace(measure, statistic=mean_of(values))
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


def under(name: str, papers: Papers, mode: Mode) -> Iterator[Measure]:
    """The averages of the same replies under other settings, called *name*."""
    for average in AVERAGES[mode]:
        if average not in (PRECISION, F1):
            values = papers.values(average.value)
            yield _mean(f"{average.path}~{name}", average.of, values)


def _counts(papers: Papers) -> Iterator[Measure]:
    yield count("papers_scored", len(papers.scored), "papers with a score")
    yield count("papers_skipped", len(papers.skips), "papers without a score")
    reasons = Counter(papers.skips.values())
    for reason in sorted(reasons):
        yield count(f"papers_skipped.{reason}", reasons[reason], "papers by reason")


def _reach(papers: Papers) -> Iterator[Measure]:
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


def _accuracy_alternatives(papers: Papers) -> Iterator[Measure]:
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
    yield Measure(
        path="avg_question_acc~variants_pooled",
        value=mean(accuracies),
        n=len(accuracies),
        definition="mean@1(right/answered, over=recalled variants with answers)",
    )
    yield QUESTIONS_POOLED.measure(papers)


def _score_alternatives(papers: Papers) -> Iterator[Measure]:
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


def _score_with_questions(paper: Figures) -> float | None:
    return None if paper.question_accuracy is None else paper.score


def _mean(
    path: str, of: str, values: list[float | None], *, sampled: bool = False
) -> Measure:
    return Measure(
        path=path,
        value=mean(values),
        n=len(values),
        n_defined=sum(value is not None for value in values),
        definition=mean_over_papers(of),
        statistic=mean_of(values) if sampled else None,
    )
