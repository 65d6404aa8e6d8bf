"""Models against each other, on the papers and questions that both have.

The headline of a pair is the difference of the paper score with its paired interval;
it splits exactly into what recall and what question accuracy contribute. The sign test
over papers respects that questions of a paper hang together; McNemar's over questions
does not, and is secondary.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.metrics import (
    Difference,
    Interval,
    Resamples,
    holm,
    mcnemar,
    mean,
    mean_of,
    round12,
)
from jobs.paper_investigation.tallies.ballots import Ballots
from jobs.paper_investigation.tallies.figures import Papers
from jobs.paper_investigation.tallies.headline import RECALL, SCORE, Average


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One average of the left model minus the right one's."""

    value: float | None
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models of a run."""

    left: str
    right: str
    papers: int  #: scored by both
    only_left: int  #: papers that only the left model has a score for
    only_right: int
    gaps: Mapping[str, Gap] = field(default_factory=dict)  #: by the average's path
    wins: int = 0  #: papers with a higher score of the left model
    losses: int = 0
    sign_p: float | None = None  #: exact, two-sided
    sign_p_holm: float | None = None  #: corrected for the pairs of the run
    recall_part: float | None = None
    accuracy_part: float | None = None
    questions: int = 0  #: answered by both
    mcnemar_p: float | None = None

    @property
    def ties(self) -> int:
        """Papers with equal scores."""
        return self.papers - self.wins - self.losses


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What comparing the models of a run takes."""

    papers: Mapping[str, Papers]  #: by model; none in mode questions
    ballots: Ballots
    averages: tuple[Average, ...]  #: those that the mode has
    draw: Callable[[Sequence[str]], Resamples]  #: the resamples of some papers

    def pairs(self, models: Sequence[str]) -> tuple[Pair, ...]:
        """Every two *models*, in order, with Holm's correction over all of them."""
        made = [self._pair(*both) for both in itertools.combinations(models, 2)]
        corrected = holm([pair.sign_p for pair in made])
        return tuple(
            replace(pair, sign_p=_stored(pair.sign_p), sign_p_holm=_stored(p))
            for pair, p in zip(made, corrected, strict=True)
        )

    def _pair(self, left: str, right: str) -> Pair:
        ours, theirs = self.papers[left], self.papers[right]
        shared = sorted(set(ours.scored) & set(theirs.scored))
        questions, test = self.ballots.paired(left, right)
        pair = Pair(
            left=left,
            right=right,
            papers=len(shared),
            only_left=len(ours.scored) - len(shared),
            only_right=len(theirs.scored) - len(shared),
            gaps=self._gaps(ours, theirs, shared),
            questions=questions,
            mcnemar_p=_stored(test.p) if questions else None,
        )
        if not shared or SCORE not in self.averages:
            return pair
        return _compared(pair, ours, theirs, shared)

    def _gaps(
        self, ours: Papers, theirs: Papers, shared: Sequence[str]
    ) -> dict[str, Gap]:
        columns = [_columns(each, ours, theirs, shared) for each in self.averages]
        drawn = self.draw(shared).intervals(
            [Difference(mean_of(a), mean_of(b)) for a, b in columns]
        )
        return {
            average.path: Gap(value=_mean_gap(a, b), interval=interval)
            for average, (a, b), interval in zip(
                self.averages, columns, drawn, strict=True
            )
        }


def _columns(
    average: Average, ours: Papers, theirs: Papers, shared: Sequence[str]
) -> tuple[list[float | None], list[float | None]]:
    """Both models' values, undefined for both where one has none."""
    left, right = [], []
    for pmcid in shared:
        a, b = ours.value(pmcid, average.value), theirs.value(pmcid, average.value)
        left.append(None if b is None else a)
        right.append(None if a is None else b)
    return left, right


def _mean_gap(
    left: Iterable[float | None], right: Iterable[float | None]
) -> float | None:
    both = zip(left, right, strict=True)
    return mean(a - b for a, b in both if a is not None and b is not None)


def _compared(pair: Pair, ours: Papers, theirs: Papers, shared: Sequence[str]) -> Pair:
    """Who wins on how many papers, and what the difference is made of.

    A paper's score is its recall r times a factor f, so that the difference of two is
    (rA - rB)(fA + fB)/2 + (fA - fB)(rA + rB)/2. With one replicate f is the question
    accuracy; with several it is what makes the product right.
    """
    wins = losses = 0
    by_recall, by_accuracy = [], []
    for pmcid in shared:
        (r_a, f_a, score_a), (r_b, f_b, score_b) = (
            _factors(papers, pmcid) for papers in (ours, theirs)
        )
        wins += score_a > score_b
        losses += score_a < score_b
        by_recall.append((r_a - r_b) * (f_a + f_b) / 2)
        by_accuracy.append((f_a - f_b) * (r_a + r_b) / 2)
    return replace(
        pair,
        wins=wins,
        losses=losses,
        sign_p=mcnemar(wins, losses).p,
        recall_part=mean(by_recall),
        accuracy_part=mean(by_accuracy),
    )


def _factors(papers: Papers, pmcid: str) -> tuple[float, float, float]:
    recall = papers.value(pmcid, RECALL.value) or 0.0
    score = papers.value(pmcid, SCORE.value) or 0.0
    return recall, score / recall if recall else 0.0, score


def _stored(p: float | None) -> float | None:
    return None if p is None else round12(p)
