"""Ranks the sentences of a post under a configuration, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval import sentence_order
from jobs.evidence_retrieval.data import EvidenceDataset, Post, query_key
from jobs.evidence_retrieval.parsing import MOST, Assessment
from jobs.evidence_retrieval.pipeline import Config, GraphMethod, Reranker
from jobs.evidence_retrieval.predictions.outputs import Cosines, Outputs, SubjectOutputs
from jobs.evidence_retrieval.predictions.stages import (
    DAMPING,
    MASS,
    RRF,
    Method,
    edges,
    lexical_similarity,
    reciprocal_ranks,
    spread,
    start,
)
from jobs.evidence_retrieval.queries import FoldGate
from jobs.evidence_retrieval.sentence_order import (
    DECIMALS,
    by_relevance,
    ranked,
    shuffled,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import std
from jobs.kit.metrics.columns import Bools, Floats


class PostPool:
    """A post with its criteria; columns of matrices are criteria.

    Data that does not depend on a model is computed once, on first use: the lexical
    scores, and the graph shared by all criteria and configurations.
    """

    def __init__(
        self, dataset: EvidenceDataset, post: Post, cosines: Cosines | None
    ) -> None:
        self.post = post
        self.keys = [query_key(post.id, criterion.id) for criterion in dataset.criteria]
        self.cosines = cosines
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self.post.sentences)

    @cached_property
    def lexical(self) -> Floats:
        """The bm25 score of each sentence (rows) for each criterion."""
        bm25 = sentence_order.lexical(self._dataset, self.post)
        criteria = self._dataset.criteria
        table = np.empty((len(self), len(criteria)))
        for column, criterion in enumerate(criteria):
            table[:, column] = bm25.scores(criterion.text)
        return np.round(table, DECIMALS)

    @cached_property
    def weights(self) -> Floats:
        """The graph: by embedding if there is one, else by words."""
        if self.cosines is not None:
            return edges(self.cosines.between)
        return edges(
            lexical_similarity([sentence.text for sentence in self.post.sentences])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedAssessment:
    """The readable replicates of an assessment, merged."""

    probability: float  #: mean
    deviation: float | None  #: standard deviation; None for a single replicate
    relevance: Floats  #: (sentences,) mean from 0 to 1; 0 for unlisted ones
    order: tuple[int, ...]  #: a permutation of the pool
    listed: int  #: number of sentences that any replicate listed
    largest: float  #: largest relevance among them, or 0
    replicates: int  #: number of readable ones


def merge(
    by_replicate: Mapping[int, Assessment], lexical: Sequence[float]
) -> tuple[MergedAssessment, list[tuple[int, ...]]]:
    """Merge the replicates of one query, and return the order of each.

    Args:
        by_replicate: the readable ones; at least one.
        lexical: bm25 scores of the pool, which break ties.
    """
    assessments = [by_replicate[number] for number in sorted(by_replicate)]
    orders = [by_relevance(lexical, assessment.relevance) for assessment in assessments]
    n = len(lexical)
    summed = [
        math.fsum(assessment.relevance.get(index, 0) for assessment in assessments)
        for index in range(n)
    ]
    relevance = np.round(np.array(summed) / (len(assessments) * MOST), DECIMALS)
    probabilities = [assessment.probability for assessment in assessments]
    merged = MergedAssessment(
        probability=math.fsum(probabilities) / len(assessments),
        deviation=std(probabilities),
        relevance=relevance,
        order=merged_order(orders),
        listed=len(
            {index for assessment in assessments for index in assessment.relevance}
        ),
        largest=float(relevance.max(initial=0.0)),
        replicates=len(assessments),
    )
    return merged, orders


def merged_order(orders: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Merge orders by mean reciprocal rank, ties by index; one order is unchanged."""
    if len(orders) == 1:
        return orders[0]
    return tuple(ranked(reciprocal_ranks(orders).tolist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Parameters of stages that no gate fits."""

    rrf_k: int = RRF
    damping: float = DAMPING
    gamma: float | None = None  #: None: by the rule of each state


CONSTANTS = Constants()
"""Values without a grid."""


def grid_constants(config: Config, settings: EvidenceSettings) -> tuple[Constants, ...]:
    """Return the candidate constants of a configuration; the first wins ties.

    A grid affects only configurations with its stage; a single value is not a choice
    but always applies.
    """
    grids = product(
        (len(config.first_stage) > 1 and settings.rrf_k_grid) or (RRF,),
        (config.graph != "none" and settings.damping_grid) or (DAMPING,),
        (config.dynamic_k == MASS and settings.gamma_grid) or (None,),
    )
    return tuple(
        dict.fromkeys(
            Constants(rrf_k=rrf_k, damping=damping, gamma=gamma)
            for rrf_k, damping, gamma in grids
        )
    )


def varied(grid: Sequence[Constants]) -> tuple[str, ...]:
    """Return the names of the constants that differ within a grid."""
    return tuple(
        field.name
        for field in fields(Constants)
        if len({getattr(constants, field.name) for constants in grid}) > 1
    )


def default_constants(grid: Sequence[Constants]) -> Constants:
    """Return the constants that apply without a choice: standard or single values."""
    return replace(grid[0], **{name: getattr(CONSTANTS, name) for name in varied(grid)})


def needed_constants(
    config: Config, settings: EvidenceSettings
) -> tuple[Constants, ...]:
    """Return the constants to rank with, for folds with and without a choice."""
    grid = grid_constants(config, settings)
    return tuple(dict.fromkeys((*grid, default_constants(grid))))


def constants_of(
    config: Config, settings: EvidenceSettings, gate: FoldGate | None
) -> Constants:
    """Return the constants of a fold, from its record if there is one."""
    chosen = {} if gate is None else gate.fitted.get("constants", {})
    return replace(default_constants(grid_constants(config, settings)), **chosen)


Order: TypeAlias = tuple[int, ...]
RETRIEVER, RERANKED, GRAPH = "retriever", "reranked", "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChain:
    """The parameters of a ranking: a step with all before it."""

    first_stage: tuple[str, ...]
    rerank: Reranker = "none"
    graph: GraphMethod = "none"
    rrf_k: int = RRF
    damping: float = DAMPING


def ranking_chains(
    config: Config, constants: Constants = CONSTANTS
) -> tuple[RankingChain, ...]:
    """Return the steps of a configuration; the last is the final ranking."""
    steps = [RankingChain(first_stage=config.first_stage, rrf_k=constants.rrf_k)]
    if config.rerank != "none":
        steps.append(replace(steps[-1], rerank=config.rerank))
    if config.graph != "none":
        steps.append(replace(steps[-1], graph=config.graph, damping=constants.damping))
    return tuple(steps)


def gate_chain(chains: Sequence[RankingChain]) -> RankingChain:
    """Return the last step whose scores indicate whether there is evidence.

    A graph's scores are shares of the pool, and those of a model's ranking depend on
    rank: the best of a pool of one always gets everything. A gate fitted to such scores
    would depend on the length of posts.
    """
    *_, last = (
        chain for chain in chains if chain.graph == "none" and chain.rerank != "llm"
    )
    return last


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingStep:
    """All queries of one post after one step; columns are criteria."""

    name: str
    scores: Floats  #: (sentences, criteria), to ten decimals
    orders: tuple[Order, ...]  #: indices into the pool, best first
    answered: Bools
    """(criteria,) False if the step has no scores and those before it are used."""


_Column: TypeAlias = tuple[Floats, Order]
"""Scores and order of one query."""


class RankingSteps:
    """The rankings of one model on one post; shared steps are computed once."""

    def __init__(
        self, pool: PostPool, outputs: Outputs, subject: SubjectOutputs, seed: int
    ) -> None:
        self._pool = pool
        self._outputs = outputs
        self._subject = subject
        self._seed = seed
        self.assessed: list[MergedAssessment | None] = []
        self.assess_orders: list[list[Order]] = []
        for column, key in enumerate(pool.keys):
            by_replicate = subject.assessed.get(key)
            merged, orders = (
                merge(by_replicate, pool.lexical[:, column].tolist())
                if by_replicate
                else (None, [])
            )
            self.assessed.append(merged)
            self.assess_orders.append(orders)
        self._steps: dict[RankingChain, RankingStep] = {}

    def at(self, chain: RankingChain) -> RankingStep:
        """Return all queries after the last step of *chain*."""
        if chain not in self._steps:
            self._steps[chain] = self._make(chain)
        return self._steps[chain]

    def _make(self, chain: RankingChain) -> RankingStep:
        if chain.graph != "none":
            before = self.at(replace(chain, graph="none", damping=DAMPING))
            return self._spread(before, chain.graph, chain.damping)
        if chain.rerank != "none":
            return self._rerank(self.at(replace(chain, rerank="none")), chain.rerank)
        return self._start(chain.first_stage, chain.rrf_k)

    def _start(self, sources: tuple[str, ...], rrf_k: int) -> RankingStep:
        columns: list[_Column | None] = []
        for column in range(len(self._pool.keys)):
            views = [self._source(name, column) for name in sources]
            orders = [view[1] for view in views if view is not None]
            if len(orders) < len(sources):
                columns.append(None)
            elif len(orders) == 1:
                columns.append(views[0])
            else:
                columns.append(self._fused(orders, rrf_k))
        return self._step(RETRIEVER, columns, self._lexical)

    def _rerank(self, before: RankingStep, reranker: Reranker) -> RankingStep:
        def behind(column: int) -> _Column:
            return before.scores[:, column], before.orders[column]

        columns = [
            self._reranking(reranker, column, before.orders[column])
            for column in range(len(self._pool.keys))
        ]
        return self._step(RERANKED, columns, behind)

    def _spread(
        self, incoming: RankingStep, method: Method, damping: float
    ) -> RankingStep:
        if not len(self._pool):
            scores = incoming.scores
        else:
            shares = np.column_stack([start(column) for column in incoming.scores.T])
            flowed = spread(self._pool.weights, shares, method, damping)
            scores = np.round(flowed, DECIMALS)
        return RankingStep(
            name=GRAPH,
            scores=scores,
            orders=tuple(tuple(ranked(column)) for column in scores.T.tolist()),
            answered=incoming.answered,
        )

    def _step(
        self,
        name: str,
        columns: Sequence[_Column | None],
        behind: Callable[[int], _Column],
    ) -> RankingStep:
        answered = np.array([column is not None for column in columns], dtype=np.bool_)
        whole = [
            behind(i) if column is None else column for i, column in enumerate(columns)
        ]
        return RankingStep(
            name=name,
            scores=np.column_stack([scores for scores, _ in whole]),
            orders=tuple(order for _, order in whole),
            answered=answered,
        )

    def _lexical(self, column: int) -> _Column:
        return self._by_score(self._pool.lexical[:, column])

    def _source(self, name: str, column: int) -> _Column | None:
        """Return one first stage's scores and order of a query."""
        n, key = len(self._pool), self._pool.keys[column]
        match name:
            case "bm25":
                return self._lexical(column)
            case "embedding":
                cosines = self._pool.cosines
                if cosines is None:
                    return None
                return self._by_score(cosines.query[:, column])
            case "assess":
                return self._by_relevance(column)
            case "document":
                return self._fused([tuple(range(n))])
            case _:
                return self._fused([tuple(shuffled(n, self._seed, key, 1))])

    def _reranking(
        self, reranker: Reranker, column: int, behind: Order
    ) -> _Column | None:
        """Return one reranker's scores and order of a query."""
        key = self._pool.keys[column]
        match reranker:
            case "assess":
                return self._by_relevance(column)
            case "llm":
                by_replicate = self._subject.orders.get(key)
                if len(behind) == 1:
                    return self._fused([behind])
                if not by_replicate:
                    return None
                orders = [by_replicate[number] for number in sorted(by_replicate)]
                scores = reciprocal_ranks(orders)
                return scores, merged_order(orders)
            case _:
                return _by_endpoint(self._outputs.endpoint.get(key), behind)

    def _by_relevance(self, column: int) -> _Column | None:
        assessment = self.assessed[column]
        return None if assessment is None else (assessment.relevance, assessment.order)

    @staticmethod
    def _by_score(scores: Floats) -> _Column:
        return scores, tuple(ranked(scores.tolist()))

    def _fused(self, orders: Sequence[Order], k: int = 0) -> _Column:
        if not len(self._pool):
            return np.empty(0), ()
        return self._by_score(reciprocal_ranks(orders, k))


def _by_endpoint(
    endpoint_scores: Sequence[float | None] | None, behind: Order
) -> _Column | None:
    """Sort scored sentences by score; the others follow in their previous order."""
    present_scores = [score for score in endpoint_scores or () if score is not None]
    if endpoint_scores is None or not present_scores:
        return None
    least = min(present_scores)
    scores = np.round(
        np.array([least if score is None else score for score in endpoint_scores]),
        DECIMALS,
    )
    first = [
        index for index in ranked(scores.tolist()) if endpoint_scores[index] is not None
    ]
    return scores, (
        *first,
        *(index for index in behind if endpoint_scores[index] is None),
    )
