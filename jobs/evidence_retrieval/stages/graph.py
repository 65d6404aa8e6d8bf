"""Scores spread over a graph of the post's sentences.

Sentences are tied by likeness and by standing next to each other; a sentence near good
ones gains. One graph serves all criteria of a post: its system is factorised once and
solved for every criterion at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from jobs.metrics.columns import Floats

Method: TypeAlias = Literal["ppr", "label_propagation"]

LIKENESS = 0.7
"""Share of likeness in an edge; the rest is being neighbours."""
LEAST = 0.10
NEIGHBOURS = 5
DAMPING = 0.3
DENSE_NODES = 500
TOLERANCE = 1e-12
_MOST_ROUNDS = 10_000


def edges(likeness: Floats) -> Floats:
    """The weights of a post's graph, from the likeness of its sentences.

    Likeness below `LEAST` is dropped, of the rest each sentence keeps its five
    nearest, and an edge that one side keeps is kept.
    """
    n = len(likeness)
    kept = np.where(likeness < LEAST, 0.0, likeness)
    np.fill_diagonal(kept, 0.0)
    if n > NEIGHBOURS + 1:
        # ties go to the earlier sentence, whatever a sort would do
        order = np.argsort(-np.round(kept, 10), axis=1, kind="stable")
        np.put_along_axis(kept, order[:, NEIGHBOURS:], 0.0, axis=1)
    kept = np.maximum(kept, kept.T)
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1
    weights: Floats = LIKENESS * kept + (1 - LIKENESS) * near
    return weights


def start(scores: Sequence[float]) -> Floats:
    """Incoming scores as shares: softmax of their z-scores, level if all are alike."""
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
    """The shares after they have flowed along the edges, (n,) or (n, criteria).

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
    found: Floats = (1 - damping) * solve(shares)
    # what sits on rows without an edge jumps back to v: x = a + d * s * b, with b the
    # solution for v and s the sum of x over those rows
    alone = ~has_edge
    back = damping * solve(shares)
    found += back * (found[alone].sum(axis=0) / (1 - back[alone].sum(axis=0)))
    return found


def _solver(flow: Floats, damping: float) -> Callable[[Floats], Floats]:
    """Solves (I - d flow) x = v."""
    n = len(flow)
    if n <= DENSE_NODES:
        # the job is loaded by who never walks a graph
        from scipy.linalg import lu_factor, lu_solve  # noqa: PLC0415 - see above

        factors = lu_factor(np.eye(n) - damping * flow)

        def solve(shares: Floats) -> Floats:
            found: Floats = lu_solve(factors, shares)
            return found

        return solve

    def iterate(shares: Floats) -> Floats:
        found = shares
        for _ in range(_MOST_ROUNDS):
            before, found = found, shares + damping * (flow @ found)
            if np.abs(found - before).max() < TOLERANCE:
                break
        return found

    return iterate
