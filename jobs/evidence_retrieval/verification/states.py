"""The three states of a query, and what screening and alerting by them come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jobs.evidence_retrieval.verification.choices import Choices
from jobs.evidence_retrieval.verification.queries import Query

NEG, UNCERTAIN, POS = STATES = ("NEG", "UNCERTAIN", "POS")


def state_of(query: Query, choices: Choices) -> str:
    """The state by probability and thresholds, or the file's own; "" where neither is.

    POS from tau_pos on, NEG below tau_neg; at both, POS.
    """
    if choices.states == "column":
        return query.state
    p, low, high = query.p, query.tau_neg, query.tau_pos
    if p is None or low is None or high is None:
        return ""
    if p > high or (p == high and not choices.strict):
        return POS
    if p < low or (p == low and (choices.strict or choices.gate_edge == "le")):
        return NEG
    return UNCERTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Queries by truth and by what the gate does with them."""

    neg_true: int  #: skipped although they have evidence
    neg_false: int
    pos_true: int
    pos_false: int  #: alerts for nothing
    true: int
    false: int

    @property
    def n(self) -> int:
        """All queries with a state."""
        return self.true + self.false


def count(stated: Iterable[tuple[bool, str]]) -> Counts:
    """Count truths by state."""
    cells = Counter(stated)
    by_truth = {
        truth: sum(cells[truth, state] for state in STATES) for truth in (True, False)
    }
    return Counts(
        neg_true=cells[True, NEG],
        neg_false=cells[False, NEG],
        pos_true=cells[True, POS],
        pos_false=cells[False, POS],
        true=by_truth[True],
        false=by_truth[False],
    )


Rate: TypeAlias = Callable[[Counts, Choices], tuple[float, int]]
"""A rate as what stands above and below the line."""


def _missed(counts: Counts, choices: Choices) -> tuple[float, int]:
    below = counts.n if choices.fn_per_1000 == "all" else counts.true
    return 1000 * counts.neg_true, below


RATES: Mapping[str, Rate] = {
    "neg_rate": lambda c, _: (c.neg_true + c.neg_false, c.n),
    "uncertain_rate": lambda c, _: (
        c.n - c.neg_true - c.neg_false - c.pos_true - c.pos_false,
        c.n,
    ),
    "pos_rate": lambda c, _: (c.pos_true + c.pos_false, c.n),
    "screening_sensitivity": lambda c, _: (c.true - c.neg_true, c.true),
    "screening_specificity": lambda c, _: (c.neg_false, c.false),
    "screening_fpr": lambda c, _: (c.false - c.neg_false, c.false),
    "screening_npv": lambda c, _: (c.neg_false, c.neg_true + c.neg_false),
    "screening_fn_per_1000": _missed,
    "screening_fn_per_1000_positive": lambda c, _: (1000 * c.neg_true, c.true),
    "alert_precision": lambda c, _: (c.pos_true, c.pos_true + c.pos_false),
    "alert_recall": lambda c, _: (c.pos_true, c.true),
    "alert_fpr": lambda c, _: (c.pos_false, c.false),
    "alerts_per_1000": lambda c, _: (1000 * (c.pos_true + c.pos_false), c.n),
}


def rate(name: str, counts: Counts, choices: Choices) -> float | None:
    """One of `RATES`; the value of 0/0 is the choice's."""
    above, below = RATES[name](counts, choices)
    return above / below if below else choices.zero_division
