"""Declares definitions of figures, and reads the rows they are computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations, product
from typing import Any, Literal, TypeAlias

from jobs.evidence_retrieval.settings import EvidenceSettings

Queries: TypeAlias = Literal["positives", "all"]
Cut: TypeAlias = Literal["selected", "whole list"] | int
EdgeRule: TypeAlias = Literal[
    "right", "left", "right_drop_zero", "left_drop_one", "right_midpoint"
]
Variants: TypeAlias = Mapping[str, tuple[Any, ...]]
"""For a figure: the definitions that affect it, each with the values to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinitions:
    """A set of definitions for all figures; the defaults are siftlog's."""

    queries: Queries | Literal["named"] = "named"
    """Denominator of a mean over rankings; `named`: as its block states."""
    k: Cut | Literal["named"] = "named"
    """The cut-off; `named`: as the figure's name states."""
    ap_denominator: Literal["gold", "min", "found"] = "gold"
    precision_over: Literal["k", "k_eff"] | None = None
    """`k_eff`: K cut at the list's end; None: that if K is selected by query."""
    skip_empty: bool = False  #: leave queries with K = 0 out of evidence figures
    tpr_rule: Literal["last", "interpolate", "drop_collinear", "nearest"] = "last"
    ece_edges: EdgeRule = "right"
    ece_bins: int = 10
    gate_edge: Literal["lt", "le"] = "lt"  #: NEG below tau_neg, or also at it
    strict: bool = False  #: a probability counts only above a threshold, not at it
    states: Literal["recomputed", "column"] = "recomputed"
    fn_per_1000: Queries = "all"  #: missed cases per thousand of these queries
    zero_division: float | None = None  #: a rate of 0/0; None: undefined
    of_nothing: float | None = None
    """Value of a mean over no query, or an area of one class; None: undefined."""
    ddof: Literal[0, 1] = 1  #: of standard deviations over folds
    over: Literal["folds", "pooled"] = "folds"  #: a mean of folds, or of all rows
    sums: Literal["exact", "file order"] = "exact"
    """Rounded once, or after each row, as in a plain loop."""

    def alternatives(
        self, variants: Variants
    ) -> Iterator[tuple[MetricDefinitions, str]]:
        """Yield other definitions, with the names of their changes.

        The fewest changes come first, in the order of *variants*; at most three
        together, since more would match any number.
        """
        others = {
            name: [value for value in values if value != getattr(self, name)]
            for name, values in variants.items()
        }
        for n_changes in range(1, _MOST_CHANGES + 1):
            for names in combinations(others, n_changes):
                for values in product(*(others[name] for name in names)):
                    changes = dict(zip(names, values, strict=True))
                    changes_text = ", ".join(f"{k}={v}" for k, v in changes.items())
                    yield replace(self, **changes), changes_text


_MOST_CHANGES = 3

SIFTLOG = MetricDefinitions()


def definitions_of(settings: EvidenceSettings) -> MetricDefinitions:
    """Return the definitions of a job's settings: its profile and overrides."""
    shared = {
        field.name: getattr(settings, field.name)
        for field in fields(MetricDefinitions)
        if field.name in EvidenceSettings.model_fields
    }
    # that profile's tables were computed by a loop that adds plain doubles
    is_plain = settings.profile == "published-lists"
    return MetricDefinitions(**shared, sums="file order" if is_plain else "exact")


Row: TypeAlias = Mapping[str, str]
"""The cells of a query by the name of their column."""

PROBABILITIES = ("p4_prob_calibrated", "p4_prob_raw")
"""Probability columns; the first one with any value is used."""

STATED_COLUMNS = ("evidence_recall_at_k", "evidence_precision_at_k", "mrr")
"""Figures of one query that a file may state without their sources."""

_TOPK = "_topk"
_SEEN = "scored"
_TRUTH = {"0": False, "1": True, "": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One post under one criterion; None for missing values."""

    fold: str = ""
    truth: bool | None = None  #: has evidence
    p: float | None = None
    state: str = ""
    tau_neg: float | None = None
    tau_pos: float | None = None
    pool: int | None = None  #: candidates
    selected: int | None = None  #: K
    gold: tuple[str, ...] = ()
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ranked ids by the name of the list, best first."""
    stated_values: Mapping[str, float] = field(default_factory=dict)


def read_queries(rows: Iterable[Row]) -> list[QueryRow]:
    """Return the queries of *rows*, in file order.

    Args:
        rows: cells by column name, as returned by `csv.DictReader`.

    Raises:
        ValueError: a cell that should be a number is not one.
    """
    table = list(rows)
    column = next(
        (name for name in PROBABILITIES if any(row.get(name) for row in table)), ""
    )
    return [_query(row, column) for row in table]


def _query(row: Row, probability: str) -> QueryRow:
    gold = _split(row.get("gold_sent_uids") or row.get("gold_ids") or "")
    return QueryRow(
        fold=row.get("fold_id", ""),
        # in a file of lists, only the gold column states it
        truth=_truth(row) if "has_evidence_gold" in row else bool(gold),
        p=_number(row, probability),
        state=row.get("state", ""),
        tau_neg=_number(row, "tau_neg"),
        tau_pos=_number(row, "tau_pos"),
        pool=_whole(row, "n_candidates"),
        selected=_whole(row, "selected_k"),
        gold=tuple(gold),
        lists={
            name.removesuffix(_TOPK): _split(cell)
            for name, cell in row.items()
            # an empty list of a query without any model's reply is no information
            if name.endswith(_TOPK) and (cell or row.get("status", _SEEN) == _SEEN)
        },
        stated_values={
            name: float(row[name]) for name in STATED_COLUMNS if row.get(name)
        },
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
