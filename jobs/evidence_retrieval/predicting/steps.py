"""What a model makes of a post under a configuration, step by step.

Each step gives every sentence a score and every query an order. Where a model said
nothing that could be read, the order of the step before stands, and behind the first
stage that of bm25: a ranking is always a permutation of the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.pipeline import Config, GraphMethod, Reranker
from jobs.evidence_retrieval.predicting.grids import CONSTANTS, Constants
from jobs.evidence_retrieval.predicting.merging import Assessed, merge, merged_order
from jobs.evidence_retrieval.predicting.outputs import Outputs, SubjectOutputs
from jobs.evidence_retrieval.predicting.pool import Pool
from jobs.evidence_retrieval.stages.fusion import RRF, reciprocal_ranks
from jobs.evidence_retrieval.stages.graph import DAMPING, Method, spread, start
from jobs.evidence_retrieval.stages.ordering import DECIMALS, ranked, shuffled
from jobs.metrics.columns import Bools, Floats

Order: TypeAlias = tuple[int, ...]
RETRIEVER, RERANKED, GRAPH = "retriever", "reranked", "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What decides a ranking: a step with all before it."""

    first_stage: tuple[str, ...]
    rerank: Reranker = "none"
    graph: GraphMethod = "none"
    rrf_k: int = RRF
    damping: float = DAMPING


def path(config: Config, constants: Constants = CONSTANTS) -> tuple[Chain, ...]:
    """The steps of a configuration, the last of which a reader sees."""
    steps = [Chain(first_stage=config.first_stage, rrf_k=constants.rrf_k)]
    if config.rerank != "none":
        steps.append(replace(steps[-1], rerank=config.rerank))
    if config.graph != "none":
        steps.append(replace(steps[-1], graph=config.graph, damping=constants.damping))
    return tuple(steps)


def telling(chains: Sequence[Chain]) -> Chain:
    """The last step whose scores say whether there is evidence, not only where.

    A graph's scores are shares of the pool and those of a model's ranking go by place:
    the best of a pool of one has all there is, whatever it says. So a gate that went by
    them would learn how long posts are.
    """
    *_, last = (
        chain for chain in chains if chain.graph == "none" and chain.rerank != "llm"
    )
    return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """All queries of one post after one step; columns are criteria."""

    name: str
    scores: Floats  #: (sentences, criteria), to ten decimals
    orders: tuple[Order, ...]  #: places in the pool, best first
    known: Bools
    """(criteria,) False where the scores come from a stage that gave none."""


_Column: TypeAlias = tuple[Floats, Order]
"""One query's scores and order."""


class Steps:
    """One model on one post; what configurations share is computed once."""

    def __init__(
        self, pool: Pool, outputs: Outputs, subject: SubjectOutputs, seed: int
    ) -> None:
        self._pool = pool
        self._outputs = outputs
        self._subject = subject
        self._seed = seed
        self.assessed: list[Assessed | None] = []
        self.assess_orders: list[list[Order]] = []
        for column, key in enumerate(pool.keys):
            own = subject.assessed.get(key)
            merged, orders = (
                merge(own, pool.lexical[:, column].tolist()) if own else (None, [])
            )
            self.assessed.append(merged)
            self.assess_orders.append(orders)
        self._made: dict[Chain, Step] = {}

    def at(self, chain: Chain) -> Step:
        """All queries after the last step of *chain*."""
        if chain not in self._made:
            self._made[chain] = self._make(chain)
        return self._made[chain]

    def _make(self, chain: Chain) -> Step:
        if chain.graph != "none":
            before = self.at(replace(chain, graph="none", damping=DAMPING))
            return self._spread(before, chain.graph, chain.damping)
        if chain.rerank != "none":
            return self._rerank(self.at(replace(chain, rerank="none")), chain.rerank)
        return self._start(chain.first_stage, chain.rrf_k)

    def _start(self, sources: tuple[str, ...], rrf_k: int) -> Step:
        columns: list[_Column | None] = []
        for column in range(len(self._pool.keys)):
            each = [self._source(name, column) for name in sources]
            found = [own for own in each if own is not None]
            if len(found) < len(sources):
                columns.append(None)
            elif len(found) == 1:
                columns.append(found[0])
            else:
                columns.append(self._fused([order for _, order in found], rrf_k))
        return self._step(RETRIEVER, columns, self._lexical)

    def _rerank(self, before: Step, reranker: Reranker) -> Step:
        def behind(column: int) -> _Column:
            return before.scores[:, column], before.orders[column]

        columns = [
            self._reranking(reranker, column, before.orders[column])
            for column in range(len(self._pool.keys))
        ]
        return self._step(RERANKED, columns, behind)

    def _spread(self, incoming: Step, method: Method, damping: float) -> Step:
        if not len(self._pool):
            scores = incoming.scores
        else:
            shares = np.column_stack([start(own) for own in incoming.scores.T])
            flowed = spread(self._pool.weights, shares, method, damping)
            scores = np.round(flowed, DECIMALS)
        return Step(
            name=GRAPH,
            scores=scores,
            orders=tuple(tuple(ranked(own)) for own in scores.T.tolist()),
            known=incoming.known,
        )

    def _step(
        self,
        name: str,
        columns: Sequence[_Column | None],
        behind: Callable[[int], _Column],
    ) -> Step:
        known = np.array([own is not None for own in columns], dtype=np.bool_)
        whole = [behind(i) if own is None else own for i, own in enumerate(columns)]
        return Step(
            name=name,
            scores=np.column_stack([scores for scores, _ in whole]),
            orders=tuple(order for _, order in whole),
            known=known,
        )

    def _lexical(self, column: int) -> _Column:
        return self._by_score(self._pool.lexical[:, column])

    def _source(self, name: str, column: int) -> _Column | None:
        """One first stage's view of one query."""
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
        """One reranker's view of one query."""
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
                own = [by_replicate[number] for number in sorted(by_replicate)]
                scores = reciprocal_ranks(own)
                return scores, merged_order(own)
            case _:
                return _by_endpoint(self._outputs.endpoint.get(key), behind)

    def _by_relevance(self, column: int) -> _Column | None:
        own = self.assessed[column]
        return None if own is None else (own.relevance, own.order)

    @staticmethod
    def _by_score(scores: Floats) -> _Column:
        return scores, tuple(ranked(scores.tolist()))

    def _fused(self, orders: Sequence[Order], k: int = 0) -> _Column:
        if not len(self._pool):
            return np.empty(0), ()
        return self._by_score(reciprocal_ranks(orders, k))


def _by_endpoint(given: Sequence[float | None] | None, behind: Order) -> _Column | None:
    """Scored sentences by score; the others after them, in the order from before."""
    there = [score for score in given or () if score is not None]
    if given is None or not there:
        return None
    least = min(there)
    scores = np.round(
        np.array([least if score is None else score for score in given]), DECIMALS
    )
    first = [place for place in ranked(scores.tolist()) if given[place] is not None]
    return scores, (*first, *(place for place in behind if given[place] is None))
