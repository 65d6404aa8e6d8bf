"""How far a model agrees with itself when it is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jobs.metrics import fleiss_kappa, ratio
from jobs.screening.decisions import READABLE, Decisions
from runner.scorecard import Metric

_PAIR = 2


def repeated(replicates: Sequence[Decisions]) -> Iterator[Metric]:
    """Flip rate and Fleiss' kappa over records with two readable replies or more."""
    if len(replicates) < _PAIR:
        return
    outcomes = np.stack([own.outcome for own in replicates])
    votes = np.stack([(outcomes == own).sum(axis=0) for own in READABLE])
    votes = votes[:, votes.sum(axis=0) >= _PAIR]
    n = votes.shape[1]
    flipped = int(((votes > 0).sum(axis=0) > 1).sum())
    yield Metric(
        path="replicates.flip_rate",
        value=ratio(flipped, n),
        n=n,
        subset="two readable replicates or more",
        definition="flip rate@1(records whose replicates do not all say the same)",
    )
    yield Metric(
        path="replicates.fleiss_kappa",
        value=fleiss_kappa(votes.T),
        n=n,
        subset="two readable replicates or more",
        definition="fleiss kappa@1(include, exclude, unclear)",
    )
