"""Models against each other, on the papers and questions that both have.

The headline of a pair is the difference of the paper score with its paired interval;
it splits exactly into what recall and what question accuracy contribute. The sign test
over papers respects that questions of a paper hang together; McNemar's over questions
does not, and is secondary.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.comparison.difference import Gap, gap
from jobs.comparison.pairing import pair
from jobs.metrics import Resamples, holm, mcnemar, mean, round12
from jobs.paper_investigation.tallies.ballots import Ballots
from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.comparable import averaged
from jobs.paper_investigation.tallies.figures import Papers
from jobs.paper_investigation.tallies.headline import RECALL, SCORE, Average
from runner.scorecard import ItemValues


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
class Columns:
    """One model item by item."""

    averages: Mapping[str, ItemValues]  #: by path, over papers
    verdicts: ItemValues  #: over questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """What comparing the models of a run takes."""

    papers: Mapping[str, Papers]  #: by model; none in mode questions
    ballots: Ballots
    averages: tuple[Average, ...]  #: those that the mode has
    draw: Callable[[Sequence[str]], Resamples]  #: the resamples of some papers

    def pairs(self, models: Sequence[str]) -> tuple[Pair, ...]:
        """Every two *models*, in order, with Holm's correction over all of them."""
        columns = {model: self._columns(model) for model in models}
        made = [
            self._pair(left, right, columns[left], columns[right])
            for left, right in itertools.combinations(models, 2)
        ]
        corrected = holm([each.sign_p for each in made])
        return tuple(
            replace(each, sign_p=_stored(each.sign_p), sign_p_holm=_stored(p))
            for each, p in zip(made, corrected, strict=True)
        )

    def _columns(self, model: str) -> Columns:
        papers = self.papers[model]
        return Columns(
            averages={each.path: averaged(papers, each) for each in self.averages},
            verdicts=self.ballots.values(model, f"pipeline.{TOTAL}.accuracy"),
        )

    def _pair(self, left: str, right: str, a: Columns, b: Columns) -> Pair:
        ours, theirs = self.papers[left], self.papers[right]
        shared = sorted(set(ours.scored) & set(theirs.scored))
        # a comparison is B minus A, and here the left model's excess is asked for
        paired = {path: pair(b.averages[path], own) for path, own in a.averages.items()}
        verdicts = pair(b.verdicts, a.verdicts)
        standing = verdicts.standing()
        made = Pair(
            left=left,
            right=right,
            papers=len(shared),
            only_left=len(ours.scored) - len(shared),
            only_right=len(theirs.scored) - len(shared),
            gaps={
                path: gap(both, self.draw(both.drawn)) for path, both in paired.items()
            },
            questions=verdicts.overlap.n,
            mcnemar_p=_stored(mcnemar(standing.wins, standing.losses).p)
            if verdicts.items
            else None,
        )
        if not shared or SCORE not in self.averages:
            return made
        scores = paired[SCORE.path].standing()
        return replace(
            _with_parts(made, ours, theirs, shared),
            wins=scores.wins,
            losses=scores.losses,
            sign_p=mcnemar(scores.wins, scores.losses).p,
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
