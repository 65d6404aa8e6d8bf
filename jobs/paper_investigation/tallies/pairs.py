"""Models against each other, on the papers and questions that both have.

Differences, tests and verdicts are those of `jobs.comparison`: the test of the paper
score permutes signs by paper, as its interval is drawn by paper. The score's difference
splits exactly into what recall and what question accuracy contribute. The sign test
over papers asks another question, how often a model is ahead, and McNemar's over
questions ignores that questions of a paper hang together; both are secondary and
decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jobs.comparison.difference import Compared
from jobs.comparison.in_run import Drawn, ModelPair, model_pairs
from jobs.comparison.pairing import pair
from jobs.metrics import holm, mcnemar, mean, round12
from jobs.paper_investigation.tallies.ballots import Ballots
from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.comparable import averaged
from jobs.paper_investigation.tallies.figures import Papers
from jobs.paper_investigation.tallies.headline import RECALL, SCORE, Average


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models of a run."""

    left: str
    right: str
    papers: int  #: scored by both
    only_left: int  #: papers that only the left model has a score for
    only_right: int
    averages: Mapping[str, Compared]  #: left minus right, by the average's path
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
class Pairing:
    """What comparing the models of a run takes."""

    papers: Mapping[str, Papers]  #: by model; none in mode questions
    ballots: Ballots
    averages: tuple[Average, ...]  #: those that the mode has
    settings: Drawn

    def pairs(self, models: Sequence[str]) -> tuple[Pair, ...]:
        """Every two *models*, in order, with Holm's correction over all of them."""
        found = model_pairs(
            {
                model: {
                    each.path: partial(averaged, self.papers[model], each)
                    for each in self.averages
                }
                for model in models
            },
            [each.path for each in self.averages],
            self.settings,
        )
        made = [self._pair(each) for each in found]
        corrected = holm([each.sign_p for each in made])
        return tuple(
            replace(each, sign_p=_stored(each.sign_p), sign_p_holm=_stored(p))
            for each, p in zip(made, corrected, strict=True)
        )

    def _pair(self, found: ModelPair) -> Pair:
        ours, theirs = self.papers[found.left], self.papers[found.right]
        shared = sorted(set(ours.scored) & set(theirs.scored))
        path = f"pipeline.{TOTAL}.accuracy"
        verdicts = pair(
            *(self.ballots.values(model, path) for model in (found.right, found.left))
        )
        standing = verdicts.standing()
        made = Pair(
            left=found.left,
            right=found.right,
            papers=len(shared),
            only_left=len(ours.scored) - len(shared),
            only_right=len(theirs.scored) - len(shared),
            averages=found.metrics,
            questions=verdicts.overlap.n,
            mcnemar_p=_stored(mcnemar(standing.wins, standing.losses).p)
            if verdicts.items
            else None,
        )
        score = found.metrics.get(SCORE.path)
        if not shared or score is None or score.standing is None:
            return made
        wins, losses = score.standing.wins, score.standing.losses
        return replace(
            _with_parts(made, ours, theirs, shared),
            wins=wins,
            losses=losses,
            sign_p=mcnemar(wins, losses).p,
        )


def _with_parts(
    made: Pair, ours: Papers, theirs: Papers, shared: Sequence[str]
) -> Pair:
    """What the difference of the scores is made of.

    A paper's score is its recall r times a factor f, so that the difference of two is
    (rA - rB)(fA + fB)/2 + (fA - fB)(rA + rB)/2. With one replicate f is the question
    accuracy; with several it is what makes the product right.
    """
    by_recall, by_accuracy = [], []
    for pmcid in shared:
        (r_a, f_a), (r_b, f_b) = (_factors(papers, pmcid) for papers in (ours, theirs))
        by_recall.append((r_a - r_b) * (f_a + f_b) / 2)
        by_accuracy.append((f_a - f_b) * (r_a + r_b) / 2)
    return replace(made, recall_part=mean(by_recall), accuracy_part=mean(by_accuracy))


def _factors(papers: Papers, pmcid: str) -> tuple[float, float]:
    recall = papers.value(pmcid, RECALL.value) or 0.0
    score = papers.value(pmcid, SCORE.value) or 0.0
    return recall, score / recall if recall else 0.0


def _stored(p: float | None) -> float | None:
    return None if p is None else round12(p)
