"""What a model can be compared in: papers by their scores, questions by their verdicts.

The columns are made when a comparison asks for them; until then nothing is held beyond
what is counted anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.tallies.ballots import Ballots
from jobs.paper_investigation.tallies.figures import Papers
from jobs.paper_investigation.tallies.headline import (
    AVERAGES,
    POOLED,
    Average,
    Pooled,
)
from runner.scorecard import Comparable, ItemValues


def comparable(model: str, papers: Papers, ballots: Ballots, mode: Mode) -> Comparable:
    """Makers of the items of *model*'s headline metrics, by path."""
    made: dict[str, Callable[[], ItemValues]] = {}
    for average in AVERAGES[mode]:
        made[average.path] = partial(averaged, papers, average)
    for pooled in POOLED[mode]:
        made[pooled.path] = partial(summed, papers, pooled)
    for path in ballots.shares(model) if mode != "extract" else ():
        made[path] = partial(ballots.values, model, path)
    return made


def averaged(papers: Papers, average: Average) -> ItemValues:
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


def summed(papers: Papers, pooled: Pooled) -> ItemValues:
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
