"""Averages over papers: recall, question accuracy, paper score, alternatives.

Each has alternatives, by name: the value under another interpretation of an open point.
They are printed in addition to it, never instead of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jobs.kit.measurements import MeasuredValue, Measurement, count
from jobs.kit.measures import RateMeasure, ValueMeasure, measured
from jobs.kit.metrics import Ratio, mean, mean_of
from jobs.paper_investigation.grading import PaperScore, PaperScores, Value
from jobs.paper_investigation.records import Mode

UNPARSED = "extraction_unparsed"


def counted(counts: Mapping[str, int]) -> dict[str, MeasuredValue]:
    """Return counts by name, sorted by name."""
    return {name: count(n) for name, n in sorted(counts.items())}


def mean_of_values(
    values: Sequence[float | None], *, is_drawn: bool = False
) -> MeasuredValue:
    """Return the mean of the defined values."""
    return MeasuredValue(
        value=mean(values),
        n=len(values),
        n_defined=sum(value is not None for value in values),
        statistic=mean_of(values) if is_drawn else None,
    )


def mean_over_papers(subject: str) -> str:
    """Return the definition of a mean over papers."""
    return f"mean@1({subject}; over papers, exact sum)"


@dataclass(frozen=True, slots=True)
class PaperAverage:
    """A mean over scored papers."""

    path: str
    name: str
    meaning: str
    subject: str  #: value of a paper
    value: Value

    @property
    def definition(self) -> str:
        """The definition of the metric, which must be equal in comparisons."""
        return mean_over_papers(self.subject)

    @property
    def measure(self) -> ValueMeasure[PaperScores]:
        """The mean with its interval."""
        return ValueMeasure(
            self.name,
            self.meaning,
            "higher",
            of=lambda papers: mean_of_values(papers.values(self.value), is_drawn=True),
            definition=self.definition,
        )


@dataclass(frozen=True, slots=True)
class PooledRatio:
    """A ratio of sums over scored papers."""

    path: str
    subject: str
    above: Callable[[PaperScore], int]
    below: Callable[[PaperScore], int]

    @property
    def definition(self) -> str:
        """The definition of the metric, which must be equal in comparisons."""
        return f"ratio@1({self.subject})"

    def ratio(self, papers: PaperScores) -> Ratio:
        """Return the sums over *papers*."""
        return Ratio(papers.sums(self.above), papers.sums(self.below))

    def measure(self, name: str, meaning: str = "") -> RateMeasure[PaperScores]:
        """Return the ratio with its interval; name and meaning are of its form."""
        return RateMeasure(name, meaning, of=self.ratio, definition=self.definition)


# in definitions: T is the truth of a paper, L what the model lists, R their overlap

RECALL = PaperAverage(
    "avg_variant_recall",
    "Variant recall",
    "Share of a paper's known variants that the model finds, as a mean over papers",
    "|R|/|T|",
    lambda paper: paper.recall,
)
PRECISION = PaperAverage(
    "avg_precision",
    "Variant precision",
    "Share of the listed variants that the paper is known to study, as a mean over "
    "papers; a lower bound, as the truth lists findings only",
    "|R|/|L|, a lower bound as the truth lists findings only",
    lambda paper: paper.precision,
)
F1 = PaperAverage(
    "avg_f1",
    "Variant F1",
    "Harmonic mean of variant precision and recall, as a mean over papers",
    "2|R|/(|T|+|L|)",
    lambda paper: paper.f1,
)
QUESTION_ACC = PaperAverage(
    "avg_question_acc",
    "Question accuracy",
    "Share of right answers about the variants that the model found, as a mean over "
    "papers",
    "mean right/answered over recalled variants with answers",
    lambda paper: paper.question_accuracy,
)
SCORE = PaperAverage(
    "avg_paper_score",
    "Paper score",
    "Variant recall times question accuracy, as a mean over papers; a paper without "
    "questions scores 0",
    "recall x question accuracy, 0 without questions",
    lambda paper: paper.score,
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
"""The main metric of a scoring."""


MICRO = (
    PooledRatio(
        "avg_variant_recall~micro",
        "sum |R| / sum |T|",
        lambda paper: paper.recalled,
        lambda paper: paper.truth,
    ),
    PooledRatio(
        "avg_precision~micro",
        "sum |R| / sum |L|",
        lambda paper: paper.recalled,
        lambda paper: paper.predicted,
    ),
    PooledRatio(
        "avg_f1~micro",
        "2 sum |R| / sum (|T|+|L|)",
        lambda paper: 2 * paper.recalled,
        lambda paper: paper.truth + paper.predicted,
    ),
)
QUESTIONS_POOLED = PooledRatio(
    "avg_question_acc~questions_pooled",
    "right / answered over all questions",
    lambda paper: paper.right,
    lambda paper: paper.answered,
)

POOLED: Mapping[Mode, tuple[PooledRatio, ...]] = {
    "investigate": (*MICRO, QUESTIONS_POOLED),
    "extract": MICRO,
    "questions": (),
}

PaperMeasures: TypeAlias = Mapping[
    str, ValueMeasure[PaperScores] | RateMeasure[PaperScores]
]
"""By path; for a path with a form, name and meaning are those of the form."""


def _with_zeros(papers: PaperScores, zeros: int) -> MeasuredValue:
    return mean_of_values([*papers.values(SCORE.value), *[0.0] * zeros])


def _with_questions(papers: PaperScores) -> int:
    values = papers.values(QUESTION_ACC.value)
    return sum(value is not None for value in values)


def _variants_pooled(papers: PaperScores) -> MeasuredValue:
    accuracies = papers.accuracies()
    return count(mean(accuracies), len(accuracies))


def _missing_as_wrong(papers: PaperScores) -> Mapping[str, MeasuredValue]:
    if not papers.total(lambda paper: paper.missing):
        return {}
    values = papers.parsed_values(lambda paper: paper.score_with_missing_as_wrong)
    return {"": mean_of_values(values)}


COUNTS: PaperMeasures = {
    "papers_scored": ValueMeasure(
        "Papers scored",
        "Papers with a score",
        of=lambda papers: count(len(papers.scored)),
        definition="count@1(papers with a score)",
    ),
    "papers_skipped": ValueMeasure(
        "Papers skipped",
        "Papers without a score",
        "lower",
        of=lambda papers: count(len(papers.skips)),
        definition="count@1(papers without a score)",
    ),
    "papers_skipped.{reason}": ValueMeasure(
        "Papers skipped, {reason}",
        "Papers without a score, for the reason {reason}",
        "lower",
        of=lambda papers: counted(Counter(papers.skips.values())),
        definition="count@1(papers by reason)",
    ),
}
POOLED_MEASURES: PaperMeasures = {
    **{pooled.path: pooled.measure("pooled over papers") for pooled in MICRO},
    "truth_merged": ValueMeasure(
        "Truth spellings merged",
        "Spellings in the truth that are one variant with an earlier spelling",
        of=lambda papers: count(papers.total(lambda paper: paper.merged)),
        definition="count@1(spellings in the truth that are one variant with an "
        "earlier one)",
    ),
}
ALTERNATIVES: PaperMeasures = {
    "recalled_not_asked": ValueMeasure(
        "Recalled variants not asked about",
        "Recalled variants without a question in the run",
        of=lambda papers: count(papers.total(lambda paper: paper.not_asked)),
        definition="count@1(recalled variants without a question in the run)",
    ),
    "recalled_without_questions": ValueMeasure(
        "Recalled variants without questions",
        "Recalled variants that no question of the truth names",
        of=lambda papers: count(papers.total(lambda paper: paper.unlinked)),
        definition="count@1(recalled variants that no question names)",
    ),
    "papers_with_questions": ValueMeasure(
        "Papers with questions",
        "Scored papers with a question accuracy",
        of=lambda papers: count(_with_questions(papers)),
        definition="count@1(scored papers with a question accuracy)",
    ),
    "papers_without_questions": ValueMeasure(
        "Papers without questions",
        "Scored papers without a question on a recalled variant; their score is 0",
        of=lambda papers: count(len(papers.scored) - _with_questions(papers)),
        definition="count@1(scored papers without a question on a recalled variant; "
        "their score is 0)",
    ),
    "avg_question_acc~pooled_per_paper_zeros": ValueMeasure(
        "questions pooled by paper",
        "right by answered questions of each paper, 0 without questions",
        of=lambda papers: mean_of_values(
            papers.values(lambda paper: paper.pooled_accuracy)
        ),
        definition=mean_over_papers("right/answered of the paper, 0 without questions"),
    ),
    "avg_question_acc~zeros_for_papers_without": ValueMeasure(
        "papers without questions as 0",
        "a paper without questions counts as 0",
        of=lambda papers: mean_of_values(
            [value or 0.0 for value in papers.values(QUESTION_ACC.value)]
        ),
        definition=mean_over_papers(f"{QUESTION_ACC.subject}, 0 without questions"),
    ),
    "avg_question_acc~variants_pooled": ValueMeasure(
        "mean over variants",
        "each recalled variant with answers counts once, not each paper",
        of=_variants_pooled,
        definition="mean@1(right/answered, over=recalled variants with answers)",
    ),
    QUESTIONS_POOLED.path: QUESTIONS_POOLED.measure(
        "pooled over questions", "each question counts once, not each paper"
    ),
    "avg_paper_score~parse_failures_as_zero": ValueMeasure(
        "unreadable lists as 0",
        "a paper whose list of variants could not be read counts as 0",
        of=lambda papers: _with_zeros(
            papers, sum(reason == UNPARSED for reason in papers.skips.values())
        ),
        definition=mean_over_papers(
            f"{SCORE.subject}, 0 for papers whose extraction was unparsed"
        ),
    ),
    "avg_paper_score~skipped_as_zero": ValueMeasure(
        "skipped papers as 0",
        "a skipped paper counts as 0",
        of=lambda papers: _with_zeros(papers, len(papers.skips)),
        definition=mean_over_papers(f"{SCORE.subject}, 0 for skipped papers"),
    ),
    "avg_paper_score~papers_with_questions": ValueMeasure(
        "papers with questions only",
        "only papers with a question accuracy count",
        of=lambda papers: mean_of_values(
            papers.values(
                lambda paper: None if paper.question_accuracy is None else paper.score
            ),
            is_drawn=True,
        ),
        definition=mean_over_papers(
            f"{SCORE.subject}, only papers with a question accuracy"
        ),
    ),
    "avg_paper_score~missing_as_wrong": ValueMeasure(
        "missing replies as wrong",
        "a question without a reply counts as wrong",
        of=_missing_as_wrong,
        definition=mean_over_papers(
            f"{SCORE.subject}, questions without a reply counted as wrong"
        ),
    ),
}
"""The averages under other interpretations of open points, and the number of recalled
variants with questions."""


def headline(papers: PaperScores, mode: Mode) -> Iterator[Measurement]:
    """Yield the averages of one model with their intervals, and their alternatives."""
    averages = {average.path: average.measure for average in AVERAGES[mode]}
    alternatives = ALTERNATIVES if mode == "investigate" else {}
    for group in (COUNTS, averages, POOLED_MEASURES, alternatives):
        yield from measured(group, papers)


def headline_variants(
    name: str, papers: PaperScores, mode: Mode
) -> Iterator[Measurement]:
    """Yield the averages of the same replies under other settings, called *name*."""
    for average in AVERAGES[mode]:
        if average not in (PRECISION, F1):
            value = mean_of_values(papers.values(average.value))
            yield average.measure.measurement(average.path, value, form=f"~{name}")
