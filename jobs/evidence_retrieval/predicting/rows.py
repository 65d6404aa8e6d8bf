"""Queries as a gate sees them: features in canonical order, and back again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.gating.features import features
from jobs.evidence_retrieval.gating.gate import Rows
from jobs.evidence_retrieval.predicting.columns import ModelColumns, StepColumns
from jobs.evidence_retrieval.queries import Queries
from jobs.metrics.columns import Bools

_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRows:
    """The queries that a gate can speak of, and where they stand among all."""

    rows: Rows
    places: npt.NDArray[np.intp]  #: of the rows in file order

    def taken(self, column: npt.NDArray[_Kind]) -> npt.NDArray[_Kind]:
        """A column of all queries, for the rows."""
        return column[self.places]

    def spread(
        self, column: npt.NDArray[_Kind], empty: npt.NDArray[_Kind]
    ) -> npt.NDArray[_Kind]:
        """A column of the rows put into that of all queries."""
        filled = empty.copy()
        filled[self.places] = column
        return filled


def gate_rows(
    queries: Queries, model: ModelColumns, step: StepColumns, *, needs_statement: bool
) -> GateRows:
    """The rows of one model and ranking.

    A query whose assessment was asked for and could not be read has no row, nor has a
    post without sentences.
    """
    stated = model.stated("probability")
    there: Bools = queries.pool > 0
    if needs_statement or not np.isnan(stated).all():
        there &= ~np.isnan(stated)
    post_rank = _ranks(queries.posts)[queries.post]
    criterion_rank = _ranks(queries.criteria)[queries.criterion]
    order = np.lexsort((criterion_rank, post_rank))
    places = order[there[order]]
    made = features(
        probability=stated[places],
        deviation=model.stated("deviation")[places],
        shape=step.shape[:, places],
        listed=model.stated("listed")[places],
        relevance=model.stated("largest")[places],
        pool=queries.pool[places],
        criterion=queries.criterion[places],
        criteria=queries.criteria,
    )
    return GateRows(
        rows=Rows(
            names=made.names,
            values=made.values,
            stated=stated[places],
            posts=tuple(queries.posts[i] for i in queries.post[places].tolist()),
        ),
        places=places,
    )


def _ranks(ids: tuple[str, ...]) -> npt.NDArray[np.intp]:
    """The place of each id among all in the order of their text."""
    rank = {name: i for i, name in enumerate(sorted(ids))}
    return np.array([rank[name] for name in ids], dtype=np.intp)
