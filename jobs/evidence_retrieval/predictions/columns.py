"""Collects all queries of a run as columns: labels, folds, answers, rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.inputs import assign_folds, natural_order
from jobs.evidence_retrieval.predictions.classifier import score_shape
from jobs.evidence_retrieval.predictions.outputs import Outputs, SubjectOutputs
from jobs.evidence_retrieval.predictions.rankings import (
    MergedAssessment,
    PostPool,
    RankingChain,
    RankingSteps,
)
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.kit.metrics import flip_rate, kendall_tau, mean
from jobs.kit.metrics.columns import Floats, Ints

FLIP_RATE, ORDER_TAU = "flip_rate", "replicate_tau"


class Replicates:
    """First replicates compared with later ones, over the queries of a run."""

    def __init__(self) -> None:
        self._decisions: list[tuple[bool, bool]] = []
        self._taus: list[float | None] = []

    def add(
        self,
        pool: PostPool,
        subject: SubjectOutputs,
        assess_orders: Sequence[Sequence[tuple[int, ...]]],
        tau: float,
    ) -> None:
        """Add a post.

        Orders are those of reranks, whose later replicates list the candidates in
        another order, to reveal a model that depends on position; else those of the
        assessments.
        """
        for key, assessed_orders in zip(pool.keys, assess_orders, strict=True):
            stated = subject.assessed.get(key, {})
            called = [stated[number].probability >= tau for number in sorted(stated)]
            self._decisions += [(called[0], later) for later in called[1:]]
            reranked = subject.orders.get(key, {})
            orders = [
                reranked[number] for number in sorted(reranked)
            ] or assessed_orders
            self._taus += [kendall_tau(orders[0], later) for later in orders[1:]]

    def numbers(self) -> dict[str, float | None]:
        """Return the flip rate of decisions, and the mean Kendall tau of orders."""
        return {
            FLIP_RATE: flip_rate(self._decisions),
            ORDER_TAU: mean(self._taus),
        }


@dataclass(slots=True, kw_only=True)
class StepColumns:
    """Columns of one step of one model over all queries."""

    name: str = ""
    lists: list[tuple[str, ...]] = field(default_factory=list)  #: uids, best first
    scores: list[Floats] = field(default_factory=list)  #: in the order of the lists
    answered: list[bool] = field(default_factory=list)
    shapes: list[Floats] = field(default_factory=list)  #: (shape, queries) per post

    def add(
        self, uids: Sequence[str], steps: RankingSteps, chain: RankingChain
    ) -> None:
        """Add a post."""
        step = steps.at(chain)
        self.name = step.name
        for order, scores in zip(step.orders, step.scores.T, strict=True):
            self.lists.append(tuple(uids[index] for index in order))
            self.scores.append(scores[list(order)])
        self.answered.extend(step.answered.tolist())
        self.shapes.append(np.where(step.answered, score_shape(step.scores), np.nan))

    @property
    def shape(self) -> Floats:
        """(shape, queries); NaN if the step gave a query no score."""
        return np.concatenate(self.shapes, axis=1)


@dataclass(slots=True, kw_only=True)
class ModelColumns:
    """Columns of one model over all queries."""

    assessed: list[MergedAssessment | None] = field(default_factory=list)
    steps: dict[RankingChain, StepColumns]
    replicates: Replicates = field(default_factory=Replicates)

    def stated(self, field_name: str) -> Floats:
        """Return a field of each assessment; NaN if there is none."""
        # an array of floats reads None as NaN
        values = [
            None if one is None else getattr(one, field_name) for one in self.assessed
        ]
        return np.array(values, dtype=np.float64)

    @property
    def replicates_read(self) -> Sequence[int]:
        """Number of readable replicates of each query."""
        return [0 if one is None else one.replicates for one in self.assessed]


def columns(
    dataset: EvidenceDataset, outputs: Outputs, chains: Iterable[RankingChain]
) -> dict[str, ModelColumns]:
    """Return, by model, the columns that its configurations need."""
    distinct = dict.fromkeys(chains)
    by_model = {
        model: ModelColumns(steps={chain: StepColumns() for chain in distinct})
        for model in outputs.subjects
    }
    settings = dataset.settings
    # a post's matrices are small, so a second thread would only cost time
    with threadpool_limits(limits=1):
        for post in dataset.posts:
            pool = PostPool(dataset, post, outputs.cosines.get(post.id))
            uids = [sentence.uid for sentence in post.sentences]
            for model, subject in outputs.subjects.items():
                steps = RankingSteps(pool, outputs, subject, settings.seed)
                into = by_model[model]
                into.assessed.extend(steps.assessed)
                into.replicates.add(pool, subject, steps.assess_orders, settings.tau)
                for chain, step_columns in into.steps.items():
                    step_columns.add(uids, steps, chain)
    return by_model


def queries(dataset: EvidenceDataset) -> Queries:
    """Return posts times criteria, in file order of posts, then in criterion order."""
    posts, criteria = dataset.posts, dataset.criteria
    fold_of = folds_of(dataset)
    names = natural_order(fold_of.values())
    fold_index = {name: i for i, name in enumerate(names)}
    folds = [fold_index[fold_of[post.id]] if fold_of else UNKNOWN for post in posts]
    evidence = {} if dataset.gold is None else dataset.gold.evidence
    return Queries(
        posts=tuple(post.id for post in posts),
        criteria=tuple(criterion.id for criterion in criteria),
        post=_per_query(range(len(posts)), len(criteria)),
        criterion=np.tile(np.arange(len(criteria), dtype=np.int64), len(posts)),
        pool=_per_query([len(post.sentences) for post in posts], len(criteria)),
        folds=names,
        fold=_per_query(folds, len(criteria)),
        y=_truth(dataset),
        gold=None
        if dataset.gold is None
        else [
            evidence.get((post.id, criterion.id), ())
            for post in posts
            for criterion in criteria
        ],
    )


def folds_of(dataset: EvidenceDataset) -> Mapping[str, str]:
    """Return the fold of each post; empty if there is no gold to test with."""
    if dataset.folds is not None:
        return {post.id: dataset.folds[post.id] for post in dataset.posts}
    if dataset.gold is None:
        return {}
    settings = dataset.settings
    ids = (post.id for post in dataset.posts)
    return assign_folds(ids, settings.n_folds, settings.seed)


def _truth(dataset: EvidenceDataset) -> Ints:
    """Return 1 for queries with evidence, 0 for judged posts without, else UNKNOWN."""
    gold = dataset.gold
    if gold is None:
        return np.full(len(dataset.posts) * len(dataset.criteria), UNKNOWN)
    return np.array(
        [
            int((post.id, criterion.id) in gold.evidence)
            if post.id in gold.posts
            else UNKNOWN
            for post in dataset.posts
            for criterion in dataset.criteria
        ],
        dtype=np.int64,
    )


def _per_query(values: range | list[int], criteria: int) -> Ints:
    return np.repeat(np.array(values, dtype=np.int64), criteria)
