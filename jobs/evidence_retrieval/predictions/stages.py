"""Computes the local stages of a pipeline: fusion, sentence graph, dynamic K."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.sentence_order import DECIMALS
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.lexical import Idf, tokens
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.selective import STATES, States

RRF = 60
"""Constant of reciprocal rank fusion (Cormack and others, 2009)."""


def reciprocal_ranks(orders: Sequence[Sequence[int]], k: int = 0) -> Floats:
    """Return the mean of 1 / (k + rank) over *orders*, by index into the pool.

    With k = 0, this is the mean reciprocal rank, used to merge replicates; with `RRF`,
    it orders like reciprocal rank fusion. Rounded to ten decimals.
    """
    parts: list[list[float]] = [[] for _ in orders[0]]
    for order in orders:
        for rank, index in enumerate(order, start=1):
            parts[index].append(1 / (k + rank))
    sums = [math.fsum(terms) for terms in parts]
    means: Floats = np.round(np.array(sums) / len(orders), DECIMALS)
    return means


Method: TypeAlias = Literal["ppr", "label_propagation"]

SIMILARITY = 0.7
"""Weight of similarity in an edge; the rest is adjacency."""
LEAST = 0.10
NEIGHBOURS = 5
DAMPING = 0.3
DENSE_NODES = 500
TOLERANCE = 1e-12
_MOST_ROUNDS = 10_000


def edges(similarity: Floats) -> Floats:
    """Return the weights of a post's graph, from the similarity of its sentences.

    Similarity below `LEAST` is dropped. Each sentence keeps its five nearest, and an
    edge exists if either side keeps it.
    """
    n = len(similarity)
    adjacency = np.where(similarity < LEAST, 0.0, similarity)
    np.fill_diagonal(adjacency, 0.0)
    if n > NEIGHBOURS + 1:
        # ties go to the earlier sentence, independent of the sort
        order = np.argsort(-np.round(adjacency, 10), axis=1, kind="stable")
        np.put_along_axis(adjacency, order[:, NEIGHBOURS:], 0.0, axis=1)
    adjacency = np.maximum(adjacency, adjacency.T)
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1
    weights: Floats = SIMILARITY * adjacency + (1 - SIMILARITY) * near
    return weights


def start(scores: Sequence[float]) -> Floats:
    """Convert scores to shares: softmax of z-scores, uniform if all are equal."""
    column = np.asarray(scores, dtype=np.float64)
    spread = column.std()
    if not spread > 0:
        return np.full(len(column), 1 / max(1, len(column)))
    z = (column - column.mean()) / spread
    raised = np.exp(z - z.max())
    shares: Floats = raised / raised.sum()
    return shares


def spread(
    weights: Floats,
    shares: Floats,
    method: Method = "ppr",
    damping: float = DAMPING,
) -> Floats:
    """Spread the shares along the edges, (n,) or (n, criteria).

    `ppr`: personalised PageRank, x = (1-d)(I - d P^T)^-1 v, with rows without an edge
    jumping to v. `label_propagation`: x = (1-d)(I - d D^-1/2 W D^-1/2)^-1 v.
    """
    degrees = weights.sum(axis=1)
    has_edge = degrees > 0
    safe = np.where(has_edge, degrees, 1.0)
    if method == "label_propagation":
        root = np.sqrt(safe)
        flow = weights / root[:, None] / root[None, :]
        settled: Floats = (1 - damping) * _solver(flow, damping)(shares)
        return settled
    flow = (weights / safe[:, None]).T
    solve = _solver(flow, damping)
    flowed: Floats = (1 - damping) * solve(shares)
    # mass on rows without an edge jumps back to v: x = a + d * s * b, with b the
    # solution for v and s the sum of x over those rows
    alone = ~has_edge
    back = damping * solve(shares)
    flowed += back * (flowed[alone].sum(axis=0) / (1 - back[alone].sum(axis=0)))
    return flowed


def _solver(flow: Floats, damping: float) -> Callable[[Floats], Floats]:
    """Return a solver of (I - d flow) x = v."""
    n = len(flow)
    if n <= DENSE_NODES:
        # most uses of the job need no graph
        from scipy.linalg import lu_factor, lu_solve  # noqa: PLC0415 - see above

        factors = lu_factor(np.eye(n) - damping * flow)

        def solve(shares: Floats) -> Floats:
            solution: Floats = lu_solve(factors, shares)
            return solution

        return solve

    def iterate(shares: Floats) -> Floats:
        solution = shares
        for _ in range(_MOST_ROUNDS):
            before, solution = solution, shares + damping * (flow @ solution)
            if np.abs(solution - before).max() < TOLERANCE:
                break
        return solution

    return iterate


def lexical_similarity(pool: Sequence[str]) -> Floats:
    """Return cosines of the sentences' tf-idf vectors.

    A sentence without words has similarity 0. Rounded to ten decimals, like every
    score.
    """
    words = [tokens(sentence) for sentence in pool]
    idf = Idf(words)
    word_index: dict[str, int] = {}
    for sentence_words in words:
        for word in sentence_words:
            word_index.setdefault(word, len(word_index))
    table = np.zeros((len(pool), len(word_index)))
    for row, sentence_words in zip(table, words, strict=True):
        for word, count in Counter(sentence_words).items():
            row[word_index[word]] = count * idf.of(word)
    norms = np.sqrt((table * table).sum(axis=1, keepdims=True))
    units = table / np.where(norms > 0, norms, 1.0)
    similarity: Floats = np.round(units @ units.T, DECIMALS)
    return similarity


@dataclass(frozen=True, slots=True, kw_only=True)
class KRule:
    """Rule for the number of sentences of a query in one state."""

    gamma: float  #: share of the mass that must be shown
    k_min: int
    cap: int
    ratio: float  #: maximum share of the pool

    def bounds(self, n: int) -> tuple[int, int]:
        """Return minimum and maximum for a pool of *n*; the maximum prevails."""
        # as a decimal: 0.7 * 10 is not 7 as a double, and its ceiling would be 8
        share = math.ceil(Decimal(str(self.ratio)) * n)
        most = min(self.cap, share, n)
        return min(self.k_min, most), most


UNCERTAIN = KRule(gamma=0.95, k_min=5, cap=12, ratio=0.70)
POS = KRule(gamma=0.90, k_min=3, cap=12, ratio=0.60)

RULES: Mapping[str, KRule | None] = {"NEG": None, "UNCERTAIN": UNCERTAIN, "POS": POS}
"""By state; NEG shows no sentences. Without states, all use UNCERTAIN."""

Scale = Literal["zscore", "raw"]


def cumulative_mass(
    scores: Sequence[float] | Floats,
    *,
    scale: Scale = "zscore",
    temperature: float = 1.0,
) -> Floats:
    """Return the share of the softmax mass in the first 1, 2, ... scores.

    Scores are z-scored first, because a softmax of probabilities is almost flat.
    """
    column = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    if not len(column):
        return column
    if scale == "zscore":
        spread = column.std()
        column = (column - column.mean()) / spread if spread > 0 else column * 0
    raised = np.exp((column - column[0]) / temperature)
    mass: Floats = np.cumsum(raised) / raised.sum()
    return mass


def mass_k(mass: Floats, gamma: float) -> int:
    """Return the first rank at which *mass* reaches *gamma*.

    If rounding keeps the sum below, it is the size of the pool.
    """
    reached = np.flatnonzero(mass >= gamma)
    return int(reached[0]) + 1 if len(reached) else len(mass)


def selected_k(mass: Floats, rule: KRule | None, gamma: float | None = None) -> int:
    """Return the number of sentences shown under *rule*; 0 without one.

    *gamma* replaces that of the rule, as in a sweep.
    """
    if rule is None:
        return 0
    fewest, most = rule.bounds(len(mass))
    k = mass_k(mass, rule.gamma if gamma is None else gamma)
    return min(max(k, fewest), most)


MASS = "mass"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedK:
    """K by query."""

    k: Ints
    rule: str  #: "K" if it is selected by query, else the number
    sweep: Mapping[float, Ints] = field(default_factory=dict)  #: by gamma, ascending


def selection(
    config: Config,
    settings: EvidenceSettings,
    scores: Sequence[Floats],
    states: States | None,
    gamma: float | None = None,
) -> SelectedK:
    """Return the K of each query.

    Args:
        config: configuration with the rule.
        settings: settings of the mass rule.
        scores: scores of the last step, by query.
        states: states of the queries; without them, all use the rule of UNCERTAIN.
        gamma: a value chosen from a grid, which replaces that of the states.
    """
    if config.dynamic_k != MASS:
        k_text = config.dynamic_k.removeprefix("fixed:")
        fixed = config.top if k_text == "none" else int(k_text)
        return SelectedK(k=np.full(len(scores), fixed, dtype=np.int64), rule=str(fixed))
    gammas = sorted(settings.gammas)
    k = np.empty(len(scores), dtype=np.int64)
    swept = np.empty((len(gammas), len(scores)), dtype=np.int64)
    for i, query_scores in enumerate(scores):
        mass = cumulative_mass(
            query_scores, scale=settings.k_scale, temperature=settings.k_temperature
        )
        rule = rule_of(-1 if states is None else int(states[i]))
        k[i] = selected_k(mass, rule, gamma)
        for row, other in enumerate(gammas):
            swept[row, i] = selected_k(mass, rule, other)
    return SelectedK(k=k, rule="K", sweep=dict(zip(gammas, swept, strict=True)))


def rule_of(state: int) -> KRule | None:
    """Return the mass rule of a query by its state, which may be UNKNOWN."""
    return UNCERTAIN if state < 0 else RULES[STATES[state]]
