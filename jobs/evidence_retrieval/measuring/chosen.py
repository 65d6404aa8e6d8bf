"""How many sentences each query shows, and what share of its evidence they hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jobs.evidence_retrieval.measuring.ranked import compared, ranked_rows
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions, Queries
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.ranking import select

FIXED_AT = 10
"""Where lists of a fixed length are compared, however many sentences they show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Judged queries with a K; some of them have evidence and a list."""

    rows: Ints
    y: Bools
    nominal: Ints  #: K as selected or set
    k: Ints
    """Sentences that a reader was shown: no more than K, nor than the post has.

    Where the size of the post is unknown, a fixed K ends with the list and a K that was
    selected query by query counts as it is.
    """
    shown: Ints | None  #: K cut at the list's end; None: there is no list
    found: Ints  #: queries with evidence and a list
    recall: Floats  #: of those
    precision: Floats
    rule: str
    """What recall and precision are at: "K" where it is chosen query by query, else a
    number, which is `FIXED_AT` for longer lists: they are all held to that."""

    def within(self, mask: Bools) -> Chosen:
        """Those of *mask*, which has a place for every query."""
        at, there = mask[self.rows], mask[self.found]
        return replace(
            self,
            rows=self.rows[at],
            y=self.y[at],
            nominal=self.nominal[at],
            k=self.k[at],
            shown=None if self.shown is None else self.shown[at],
            found=self.found[there],
            recall=self.recall[there],
            precision=self.precision[there],
        )


def choose(
    queries: Queries,
    prediction: Predictions,
    settings: Settings,
    gamma: float | None = None,
) -> Chosen | None:
    """What a prediction shows; None where it has no K.

    Args:
        queries: of the sheet.
        prediction: of one model under one configuration.
        settings: of the job.
        gamma: one of the sweep instead of what was deployed.
    """
    k = _k_column(queries, prediction) if gamma is None else prediction.sweep[gamma]
    if k is None:
        return None
    rule = prediction.k_rule
    looked_at = k
    if rule.isdigit():
        rule = str(min(int(rule), FIXED_AT))
        looked_at = np.minimum(k, FIXED_AT)
    rows = np.flatnonzero((queries.y != UNKNOWN) & (k != UNKNOWN))
    pool, nominal = queries.pool[rows], k[rows]
    read = np.where(pool == UNKNOWN, nominal, np.minimum(nominal, pool))
    ranked = prediction.lists.get(prediction.final)
    shown, found = None, np.empty(0, dtype=np.int64)
    recall, precision = [np.empty(0)], [np.empty(0)]
    if ranked is not None:
        lengths = np.fromiter((len(ranked[i]) for i in rows.tolist()), np.int64)
        shown = np.minimum(nominal, lengths)
        if prediction.k_rule.isdigit():
            read = np.where(pool == UNKNOWN, shown, read)
    if ranked is not None and queries.gold is not None:
        found = ranked_rows(queries, prediction, ranked)
        found = found[k[found] >= (1 if settings.skip_empty else 0)]
        done = 0
        for part in compared(queries.gold, ranked, found):
            n = len(part.lengths)
            chosen = select(part, looked_at[found[done : done + n]])
            # a query with evidence whose gold is not named has found none of it
            recall.append(np.nan_to_num(chosen.recall))
            precision.append(chosen.precision)
            done += n
    return Chosen(
        rows=rows,
        y=queries.y[rows] == 1,
        nominal=nominal,
        k=read,
        shown=shown,
        found=found,
        recall=np.concatenate(recall),
        precision=np.concatenate(precision),
        rule=rule,
    )


def _k_column(queries: Queries, prediction: Predictions) -> Ints | None:
    if prediction.k is not None:
        return prediction.k
    if prediction.k_rule.isdigit():
        return np.full(len(queries), int(prediction.k_rule), dtype=np.int64)
    return None
