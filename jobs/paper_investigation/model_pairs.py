"""Compares models on the papers and questions that both have.

Differences, tests and verdicts are those of `jobs.kit.comparison`: the test of the
paper score permutes signs by paper, as its interval is drawn by paper. The score's
difference splits exactly into what recall and what question accuracy contribute. The
sign test over papers asks another question, how often a model is ahead, and McNemar's
over questions ignores that questions of a paper hang together; both are secondary and
decide nothing.

A question is a number here, the same for all models, and a model's verdicts are one
byte a question; texts are not held.

The columns are made when a comparison asks for them; until then nothing is held beyond
what is counted anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jobs.kit.comparison.difference import ComparedMetric
from jobs.kit.comparison.models import ComparisonSettings, ModelPair, model_pairs
from jobs.kit.comparison.pairing import pair_items
from jobs.kit.metrics import holm, mcnemar, mean, round12
from jobs.paper_investigation.grading import GradedPaper
from jobs.paper_investigation.judging import AnswerJudgement
from jobs.paper_investigation.measures import ratio_of
from jobs.paper_investigation.paper_scores import (
    AVERAGES,
    POOLED,
    RECALL,
    SCORE,
    PaperAverage,
    PaperScores,
    PooledRatio,
)
from jobs.paper_investigation.question_counts import ACCURACY, STUDY, TOTAL, right_of
from jobs.paper_investigation.records import Mode
from jobs.paper_investigation.settings import PIPELINES, Pipeline
from runner.scorecard import Comparable, ItemValues

_ANSWERED, _RIGHT, _P_VALUE, _SIGNIFICANCE = 1, 2, 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShare:
    """Answers that are right in some way, among those of some questions."""

    pipeline: str  #: TOTAL: all of them
    bit: int  #: of a verdict
    of: str


SHARES: Mapping[str, AnswerShare] = {
    **{
        f"pipeline.{name}.accuracy": AnswerShare(pipeline=name, bit=_RIGHT, of=ACCURACY)
        for name in (*PIPELINES, TOTAL)
    },
    **{
        f"{STUDY}.{name}.accuracy": AnswerShare(
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


class AnswerVerdicts:
    """The verdicts of all models."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._papers: list[str] = []  #: of each question, as the next
        self._pipelines: list[Pipeline] = []
        self._verdicts: dict[str, bytearray] = {}

    def add(self, paper: GradedPaper) -> None:
        """Note the verdicts on one paper's questions, in its replicate."""
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
        """The paths of what *model* has answers to."""
        answered = set(self._answered(model))
        pipelines = {self._pipelines[number] for number in answered}
        for path, share in SHARES.items():
            if share.pipeline in {TOTAL, *pipelines}:
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
    """A question as an item; later replicates are items of their own."""
    return key if replicate == 1 else f"{key} (replicate {replicate})"


def comparable(
    model: str, papers: PaperScores, verdicts: AnswerVerdicts, mode: Mode
) -> Comparable:
    """Makers of the items of *model*'s headline metrics, by path."""
    makers: dict[str, Callable[[], ItemValues]] = {}
    for average in AVERAGES[mode]:
        makers[average.path] = partial(averaged, papers, average)
    for pooled in POOLED[mode]:
        makers[pooled.path] = partial(summed, papers, pooled)
    for path in verdicts.shares(model) if mode != "extract" else ():
        makers[path] = partial(verdicts.values, model, path)
    return makers


def averaged(papers: PaperScores, average: PaperAverage) -> ItemValues:
    """The value of each scored paper."""
    return ItemValues(
        kind="mean",
        items=papers.scored,
        clusters=papers.scored,
        cluster="paper",
        first=papers.values(average.value),
        definition=average.definition,
        family=average.path,
    )


def summed(papers: PaperScores, pooled: PooledRatio) -> ItemValues:
    """What each scored paper adds above and below the line."""
    return ItemValues(
        kind="ratio",
        items=papers.scored,
        clusters=papers.scored,
        cluster="paper",
        first=papers.sums(pooled.above),
        second=papers.sums(pooled.below),
        definition=pooled.definition,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperModelPair:
    """Two models of a run."""

    left: str
    right: str
    papers: int  #: scored by both
    only_left: int  #: papers that only the left model has a score for
    only_right: int
    averages: Mapping[str, ComparedMetric]  #: left minus right, by the average's path
    wins: int = 0  #: papers with a higher score of the left model
    losses: int = 0
    sign_p: float | None = None  #: exact, two-sided; secondary
    sign_p_holm: float | None = None  #: corrected for the pairs of the run
    recall_part: float | None = None
    accuracy_part: float | None = None
    questions: int = 0  #: answered by both
    mcnemar_p: float | None = None  #: secondary

    @property
    def ties(self) -> int:
        """Papers with equal scores."""
        return self.papers - self.wins - self.losses


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPairing:
    """What comparing the models of a run takes."""

    papers: Mapping[str, PaperScores]  #: by model; none in mode questions
    verdicts: AnswerVerdicts
    averages: tuple[PaperAverage, ...]  #: those that the mode has
    settings: ComparisonSettings

    def pairs(self, models: Sequence[str]) -> tuple[PaperModelPair, ...]:
        """Every two *models*, in order, with Holm's correction over all of them."""
        compared = model_pairs(
            {
                model: {
                    average.path: partial(averaged, self.papers[model], average)
                    for average in self.averages
                }
                for model in models
            },
            [average.path for average in self.averages],
            self.settings,
        )
        pairs = [self._pair(pair) for pair in compared]
        corrected = holm([pair.sign_p for pair in pairs])
        return tuple(
            replace(pair, sign_p=_stored(pair.sign_p), sign_p_holm=_stored(p))
            for pair, p in zip(pairs, corrected, strict=True)
        )

    def _pair(self, pair: ModelPair) -> PaperModelPair:
        left, right = self.papers[pair.left], self.papers[pair.right]
        shared = sorted(set(left.scored) & set(right.scored))
        path = f"pipeline.{TOTAL}.accuracy"
        verdicts = pair_items(
            *(self.verdicts.values(model, path) for model in (pair.right, pair.left))
        )
        win_loss = verdicts.outcomes()
        paper_pair = PaperModelPair(
            left=pair.left,
            right=pair.right,
            papers=len(shared),
            only_left=len(left.scored) - len(shared),
            only_right=len(right.scored) - len(shared),
            averages=pair.metrics,
            questions=verdicts.overlap.n,
            mcnemar_p=_stored(mcnemar(win_loss.wins, win_loss.losses).p)
            if verdicts.items
            else None,
        )
        score = pair.metrics.get(SCORE.path)
        if not shared or score is None or score.outcomes is None:
            return paper_pair
        wins, losses = score.outcomes.wins, score.outcomes.losses
        return replace(
            _with_parts(paper_pair, left, right, shared),
            wins=wins,
            losses=losses,
            sign_p=mcnemar(wins, losses).p,
        )


def _with_parts(
    paper_pair: PaperModelPair,
    left: PaperScores,
    right: PaperScores,
    shared: Sequence[str],
) -> PaperModelPair:
    """What the difference of the scores is made of.

    A paper's score is its recall r times a factor f, so that the difference of two is
    (rA - rB)(fA + fB)/2 + (fA - fB)(rA + rB)/2. With one replicate f is the question
    accuracy; with several it is what makes the product right.
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


def _stored(p: float | None) -> float | None:
    return None if p is None else round12(p)
