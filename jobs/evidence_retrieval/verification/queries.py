"""Rows of per-query files as queries: text becomes numbers, a blank cell is nothing.

Two forms are known, and a row may have the columns of both: ranking lists (`gold_ids`
and `<name>_topk`) and predictions (a probability, thresholds, a state, a selected K).
Rows are expected to have passed the readers of the job, which refuse what cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Row: TypeAlias = Mapping[str, str]
"""The cells of a query by the name of their column."""

PROBABILITIES = ("p4_prob_calibrated", "p4_prob_raw")
"""The first of these columns that any row fills is the probability."""

GIVEN = ("evidence_recall_at_k", "evidence_precision_at_k", "mrr")
"""Figures of one query that a file may hold without what they were made of."""

_TOPK = "_topk"
_SEEN = "scored"
_TRUTH = {"0": False, "1": True, "": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a list holds the gold of its query."""

    ranks: tuple[int, ...]  #: from 1, rising
    gold: int  #: how many there are to find
    length: int  #: of the list

    def within(self, k: int) -> int:
        """How many stand among the first *k*."""
        return sum(rank <= k for rank in self.ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One post under one criterion; None where the row says nothing."""

    fold: str = ""
    truth: bool | None = None  #: has evidence
    p: float | None = None
    state: str = ""
    tau_neg: float | None = None
    tau_pos: float | None = None
    pool: int | None = None  #: candidates
    selected: int | None = None  #: K
    lists: Mapping[str, Found] = field(default_factory=dict)
    given: Mapping[str, float] = field(default_factory=dict)


def found(gold: Iterable[str], ranked: Sequence[str]) -> Found:
    """Compare a list with the gold of its query; doubles in the gold count once."""
    wanted = set(gold)
    ranks = tuple(rank for rank, item in enumerate(ranked, 1) if item in wanted)
    return Found(ranks=ranks, gold=len(wanted), length=len(ranked))


def read_queries(rows: Iterable[Row], probability: str | None = None) -> list[Query]:
    """The queries of *rows*, in file order.

    Args:
        rows: cells by column name, as `csv.DictReader` gives them.
        probability: the column of the probability; none: the first of
            `PROBABILITIES` that is filled.

    Raises:
        ValueError: a cell that should be a number is none.
    """
    table = list(rows)
    column = probability or next(
        (name for name in PROBABILITIES if any(row.get(name) for row in table)), ""
    )
    return [_query(row, column) for row in table]


def _query(row: Row, probability: str) -> Query:
    gold = _split(row.get("gold_sent_uids") or row.get("gold_ids") or "")
    return Query(
        fold=row.get("fold_id", ""),
        # a file of lists says it by its gold alone
        truth=_truth(row) if "has_evidence_gold" in row else bool(gold),
        p=_number(row, probability),
        state=row.get("state", ""),
        tau_neg=_number(row, "tau_neg"),
        tau_pos=_number(row, "tau_pos"),
        pool=_whole(row, "n_candidates"),
        selected=_whole(row, "selected_k"),
        lists={
            name.removesuffix(_TOPK): found(gold, _split(cell))
            for name, cell in row.items()
            # of a query that no model has seen, an empty list says nothing
            if name.endswith(_TOPK) and (cell or row.get("status", _SEEN) == _SEEN)
        },
        given={name: float(row[name]) for name in GIVEN if row.get(name)},
    )


def _split(cell: str) -> list[str]:
    return cell.split("|") if cell else []


def _truth(row: Row) -> bool | None:
    cell = row["has_evidence_gold"]
    if cell not in _TRUTH:
        raise ValueError(f"has_evidence_gold holds {cell!r}, not 0 or 1.")
    return _TRUTH[cell]


def _number(row: Row, name: str) -> float | None:
    cell = row.get(name)
    return float(cell) if cell else None


def _whole(row: Row, name: str) -> int | None:
    cell = row.get(name)
    return int(cell) if cell else None
