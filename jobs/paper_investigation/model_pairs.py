"""Compares models on the papers and questions that both have.

Differences, tests and verdicts are those of `jobs.kit.comparison`: the test of the
paper score permutes signs by paper, as its interval is drawn by paper. The difference
of scores is split exactly into the contributions of recall and of question accuracy.
The sign test over papers tests how often a model is ahead, and McNemar's test over
questions ignores that questions of a paper are dependent; both are secondary and affect
no verdict.

A question is a number here, the same for all models, and a model's verdicts take one
byte per question; texts are not stored.

The columns are built when a comparison needs them; until then only the counts are in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.kit.comparison.difference import ComparedMetric
from jobs.kit.comparison.models import (
    ComparisonSettings,
    ModelPair,
    SignTest,
    model_pairs,
)
from jobs.kit.comparison.pairing import pair_items
from jobs.kit.metrics import mcnemar, mean, round12
from jobs.kit.score import ItemFrame, ItemMetric, comparable
from jobs.paper_investigation.grading import (
    GradedPaper,
    PaperScores,
)
from jobs.paper_investigation.judging import AnswerJudgement
from jobs.paper_investigation.paper_scores import (
    AVERAGES,
    POOLED,
    RECALL,
    SCORE,
    PaperAverage,
    PooledRatio,
)
from jobs.paper_investigation.question_counts import (
    ACCURACY,
    FIELD_DEFINITION,
    STUDY,
    TOTAL,
)
from jobs.paper_investigation.records import Mode
from jobs.paper_investigation.settings import PIPELINES, Pipeline
from runner.scorecard import Comparable

_ANSWERED, _RIGHT, _P_VALUE, _SIGNIFICANCE = 1, 2, 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShare:
    """Share of correct answers, by some criterion, to a set of questions."""

    pipeline: str  #: TOTAL: all questions
    bit: int  #: bit of a verdict
    definition: str


SHARES: Mapping[str, AnswerShare] = {
    **{
        f"pipeline.{name}.accuracy": AnswerShare(
            pipeline=name, bit=_RIGHT, definition=ACCURACY
        )
        for name in (*PIPELINES, TOTAL)
    },
    **{
        f"{STUDY}.{name}.accuracy": AnswerShare(
            pipeline=STUDY, bit=bit, definition=FIELD_DEFINITION.format(part=name)
        )
        for name, bit in (
            ("p_value", _P_VALUE),
            ("significance", _SIGNIFICANCE),
        )
    },
}
"""Metrics whose items are verdicts, by path.

Correct means that both fields are: the accuracy of the pipeline.
"""


class AnswerVerdicts:
    """Verdicts of all models."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._papers: list[str] = []  #: of each question, as below
        self._pipelines: list[Pipeline] = []
        self._verdicts: dict[str, bytearray] = {}

    def add(self, paper: GradedPaper) -> None:
        """Record the verdicts on one paper's questions, in its replicate."""
        verdicts = self._verdicts.setdefault(paper.record.model, bytearray())
        for graded_answer in paper.answers:
            if graded_answer.judgement is None:
                continue
            identity = (graded_answer.item.key, paper.record.replicate)
            number = self._numbers.setdefault(identity, len(self._numbers))
            if number == len(self._papers):
                self._papers.append(paper.record.pmcid)
                self._pipelines.append(graded_answer.item.question.pipeline)
            verdicts.extend(bytes(max(0, number + 1 - len(verdicts))))
            verdicts[number] = _verdict(graded_answer.judgement)

    def shares(self, model: str) -> Iterator[str]:
        """Yield the paths of the shares that *model* has answers for."""
        answered = set(self._answered(model))
        pipelines = {self._pipelines[number] for number in answered}
        for path, share in SHARES.items():
            if share.pipeline in {TOTAL, *pipelines}:
                yield path

    def frame(self, model: str, path: str) -> ItemFrame:
        """Return the answered questions of the share at *path*, with their verdicts."""
        share = SHARES[path]
        verdicts = self._verdicts.get(model, b"")
        numbers = [
            number
            for number in self._answered(model)
            if share.pipeline in {TOTAL, self._pipelines[number]}
        ]
        names = list(self._numbers)
        right = [verdicts[number] & share.bit > 0 for number in numbers]
        return ItemFrame.of(
            [_name(*names[number]) for number in numbers],
            [self._papers[number] for number in numbers],
            cluster="paper",
            truth=np.ones(len(numbers), dtype=np.int64),
            label=np.array(right, dtype=np.int64),
        )

    def _answered(self, model: str) -> list[int]:
        verdicts = np.frombuffer(self._verdicts.get(model, b""), dtype=np.uint8)
        numbers: list[int] = np.flatnonzero(verdicts).tolist()
        return numbers


def _verdict(judgement: AnswerJudgement) -> int:
    return (
        _ANSWERED
        | _RIGHT * judgement.right
        | _P_VALUE * judgement.p_value_right
        | _SIGNIFICANCE * judgement.significance_right
    )


def _name(key: str, replicate: int) -> str:
    """Return a question's name as an item; later replicates are separate items."""
    return key if replicate == 1 else f"{key} (replicate {replicate})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """Data of one model for comparisons."""

    model: str
    papers: PaperScores  #: empty in mode questions
    verdicts: AnswerVerdicts  #: of all models

    def compared(self, mode: Mode) -> Comparable:
        """Return functions for the items of the model's headline metrics, by path."""
        metrics: list[ItemMetric[ModelAnswers]] = [*map(averaged, AVERAGES[mode])]
        metrics += map(_pooled, POOLED[mode])
        if mode != "extract":
            metrics += map(_shared, self.verdicts.shares(self.model))
        return comparable(metrics, self, {})


def _papers(answers: ModelAnswers) -> ItemFrame:
    return ItemFrame.of(answers.papers.scored, cluster="paper")


def averaged(average: PaperAverage) -> ItemMetric[ModelAnswers]:
    """Return the metric with the value of each scored paper."""
    return ItemMetric(
        average.path,
        _papers,
        lambda answers: answers.papers.values(average.value),
        definition=average.definition,
        family=average.path,
    )


def _pooled(pooled: PooledRatio) -> ItemMetric[ModelAnswers]:
    """Return the metric with numerators and denominators of each scored paper."""
    return ItemMetric(
        pooled.path,
        _papers,
        lambda answers: pooled.ratio(answers.papers),
        definition=pooled.definition,
    )


def _shared(path: str) -> ItemMetric[ModelAnswers]:
    """Return the metric with the verdict on each answered question of a share."""
    return ItemMetric(
        path,
        lambda answers: answers.verdicts.frame(answers.model, path),
        definition=SHARES[path].definition,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperModelPair:
    """Comparison of two models of a run."""

    compared: ModelPair
    papers: int  #: with a score of both
    only_left: int  #: papers with a score of the left model only
    only_right: int
    recall_part: float | None = None
    accuracy_part: float | None = None
    questions: int = 0  #: answered by both
    mcnemar_p: float | None = None  #: of the questions; secondary

    @property
    def sign_test(self) -> SignTest:
        """Exact sign test over papers by their score; secondary."""
        return self.compared.sign_test

    @property
    def ties(self) -> int:
        """Number of papers with equal scores."""
        return self.papers - self.sign_test.left_alone - self.sign_test.right_alone

    def average(self, path: str) -> ComparedMetric | None:
        """Return the difference of an average, left minus right."""
        return self.compared.metrics.get(path)


def paper_pairs(
    answers: Mapping[str, ModelAnswers], mode: Mode, settings: ComparisonSettings
) -> tuple[PaperModelPair, ...]:
    """Compare every two models, in order, with Holm's correction over all.

    Args:
        answers: answers by model.
        mode: mode of the run.
        settings: settings of the job.
    """
    averages = [averaged(average) for average in AVERAGES[mode]]
    compared = model_pairs(
        {model: comparable(averages, source, {}) for model, source in answers.items()},
        [average.path for average in averages],
        settings,
        SCORE.path,
    )
    return tuple(
        _pair(pair, answers[pair.left], answers[pair.right]) for pair in compared
    )


def _pair(pair: ModelPair, left: ModelAnswers, right: ModelAnswers) -> PaperModelPair:
    shared = sorted(set(left.papers.scored) & set(right.papers.scored))
    questions = _shared(f"pipeline.{TOTAL}.accuracy")
    paired = pair_items(
        questions.values(right, questions.definition),
        questions.values(left, questions.definition),
    )
    outcomes = paired.outcomes()
    paper_pair = PaperModelPair(
        compared=pair,
        papers=len(shared),
        only_left=len(left.papers.scored) - len(shared),
        only_right=len(right.papers.scored) - len(shared),
        questions=paired.overlap.n,
        mcnemar_p=round12(mcnemar(outcomes.wins, outcomes.losses).p)
        if paired.items
        else None,
    )
    if not shared or SCORE.path not in pair.metrics:
        return paper_pair
    return _with_parts(paper_pair, left.papers, right.papers, shared)


def _with_parts(
    paper_pair: PaperModelPair,
    left: PaperScores,
    right: PaperScores,
    shared: Sequence[str],
) -> PaperModelPair:
    """Add the contributions to the difference of the scores.

    A paper's score is its recall r times a factor f, so that the difference of two is
    (rA - rB)(fA + fB)/2 + (fA - fB)(rA + rB)/2. With one replicate f is the question
    accuracy; with several it is the quotient of score and recall.
    """
    by_recall, by_accuracy = [], []
    for pmcid in shared:
        (r_a, f_a), (r_b, f_b) = (_factors(papers, pmcid) for papers in (left, right))
        by_recall.append((r_a - r_b) * (f_a + f_b) / 2)
        by_accuracy.append((f_a - f_b) * (r_a + r_b) / 2)
    return replace(
        paper_pair, recall_part=mean(by_recall), accuracy_part=mean(by_accuracy)
    )


def _factors(papers: PaperScores, pmcid: str) -> tuple[float, float]:
    recall = papers.value(pmcid, RECALL.value) or 0.0
    score = papers.value(pmcid, SCORE.value) or 0.0
    return recall, score / recall if recall else 0.0


def rounded(p: float | None) -> float | None:
    """Round a p-value to the digits of a table."""
    return None if p is None else round12(p)
