"""All queries of a run as columns: what each model stated, and each step's ranking.

Posts come one after the other in file order, their queries in criterion order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.features import score_shape
from jobs.evidence_retrieval.predicting.merging import Assessed
from jobs.evidence_retrieval.predicting.outputs import Outputs
from jobs.evidence_retrieval.predicting.pool import Pool
from jobs.evidence_retrieval.predicting.replicates import Replicates
from jobs.evidence_retrieval.predicting.steps import Chain, Steps
from jobs.metrics.columns import Floats


@dataclass(slots=True, kw_only=True)
class StepColumns:
    """One step of one model over all queries."""

    name: str = ""
    lists: list[tuple[str, ...]] = field(default_factory=list)  #: uids, best first
    scores: list[Floats] = field(default_factory=list)  #: along the lists
    known: list[bool] = field(default_factory=list)
    shapes: list[Floats] = field(default_factory=list)  #: (shape, queries) a post

    def add(self, uids: Sequence[str], steps: Steps, chain: Chain) -> None:
        """Take in a post."""
        step = steps.at(chain)
        self.name = step.name
        for order, scores in zip(step.orders, step.scores.T, strict=True):
            self.lists.append(tuple(uids[place] for place in order))
            self.scores.append(scores[list(order)])
        self.known.extend(step.known.tolist())
        self.shapes.append(np.where(step.known, score_shape(step.scores), np.nan))

    @property
    def shape(self) -> Floats:
        """(shape, queries); NaN where the step gave a query no score of its own."""
        return np.concatenate(self.shapes, axis=1)


@dataclass(slots=True, kw_only=True)
class ModelColumns:
    """One model over all queries."""

    assessed: list[Assessed | None] = field(default_factory=list)
    steps: dict[Chain, StepColumns]
    replicates: Replicates = field(default_factory=Replicates)

    def stated(self, what: str) -> Floats:
        """A number of each assessment by its field's name; NaN where there is none."""
        found = [None if own is None else getattr(own, what) for own in self.assessed]
        return np.array(
            [np.nan if value is None else value for value in found], dtype=np.float64
        )

    @property
    def replicates_read(self) -> Sequence[int]:
        """How many replicates of each query could be read."""
        return [0 if own is None else own.replicates for own in self.assessed]


def columns(
    dataset: Dataset, outputs: Outputs, chains: Iterable[Chain]
) -> dict[str, ModelColumns]:
    """By model, everything that its configurations are made of."""
    wanted = tuple(dict.fromkeys(chains))
    made = {
        model: ModelColumns(steps={chain: StepColumns() for chain in wanted})
        for model in outputs.subjects
    }
    # a post's matrices are small: a second thread would be waited for, not gained
    with threadpool_limits(limits=1):
        _fill(made, dataset, outputs, wanted)
    return made


def _fill(
    made: Mapping[str, ModelColumns],
    dataset: Dataset,
    outputs: Outputs,
    wanted: Sequence[Chain],
) -> None:
    for post in dataset.posts:
        pool = Pool(dataset, post, outputs.cosines.get(post.id))
        uids = [sentence.uid for sentence in post.sentences]
        for model, subject in outputs.subjects.items():
            steps = Steps(pool, outputs, subject, dataset.settings.seed)
            own = made[model]
            own.assessed.extend(steps.assessed)
            own.replicates.add(pool, subject, steps.assess_orders, dataset.settings.tau)
            for chain in wanted:
                own.steps[chain].add(uids, steps, chain)
