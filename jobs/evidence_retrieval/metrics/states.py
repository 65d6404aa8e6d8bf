"""Measures the three decision rules about a query, and the three states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import NO_CLUSTERS, Clusters
from jobs.evidence_retrieval.metrics.gate import INDEPENDENT
from jobs.evidence_retrieval.metrics.judged_predictions import (
    SCORED_QUERIES,
    GateScores,
    GateStates,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.measurements import (
    MeasuredValue,
    Measurement,
    count,
    counts,
    wilson_share,
)
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics.classification import at_threshold, confusion, rates
from jobs.kit.metrics.cluster_statistics import PER_THOUSAND
from jobs.kit.metrics.columns import Bools, Ints, ratio
from jobs.kit.metrics.selective import NEG, POS, STATES
from runner.scorecard import Direction


def empty_rate(settings: EvidenceSettings) -> str:
    """Describe the value of 0/0, for definitions."""
    value = settings.zero_division
    return f"0/0 is {'undefined' if value is None else value}"


@dataclass(frozen=True, kw_only=True)
class DecidedQueries:
    """Queries with the decisions of one rule."""

    way: str
    condition: str  #: text for definitions
    y: Bools
    h: Bools
    rows: Ints
    settings: EvidenceSettings
    clusters: Clusters

    @cached_property
    def values(self) -> Mapping[str, float | None]:
        """Confusion counts, and the rates derived from them."""
        cells = confusion(self.y, self.h)
        counts = {"tp": cells.tp, "fp": cells.fp, "tn": cells.tn, "fn": cells.fn}
        whole = {name: int(number) for name, number in counts.items()}
        return {**whole, **rates(cells)}

    @property
    def shares(self) -> Mapping[str, tuple[Bools, Bools]]:
        """Numerator and denominator rows of each rate that is a share of rows."""
        y, h = self.y, self.h
        return {
            "sensitivity": (y & h, y),
            "specificity": (~y & ~h, ~y),
            "precision": (y & h, h),
            "npv": (~y & ~h, ~h),
        }


def _rate(name: str, decided: DecidedQueries) -> MeasuredValue:
    value = decided.values[name]
    statistic = None
    if name in decided.shares:
        statistic = decided.clusters.ratio(decided.rows, *decided.shares[name])
    return MeasuredValue(
        value=decided.settings.zero_division if value is None else value,
        n=len(decided.y),
        statistic=statistic,
    )


_COUNTS: Mapping[str, tuple[str, str, Direction]] = {
    "tp": ("True positives", "Queries with evidence that are called so", "higher"),
    "fp": ("False positives", "Queries without evidence that are called so", "lower"),
    "tn": ("True negatives", "Queries without evidence, not called so", "higher"),
    "fn": ("False negatives", "Queries with evidence that are not called so", "lower"),
}
"""Name, meaning and direction of each confusion count."""

_RATES: Mapping[str, tuple[str, str, Direction]] = {
    "sensitivity": (
        "Sensitivity",
        "Share of queries with evidence called so",
        "higher",
    ),
    "specificity": (
        "Specificity",
        "Share of queries without evidence not called so",
        "higher",
    ),
    "fpr": (
        "False positive rate",
        "Share of queries without evidence that are called so",
        "lower",
    ),
    "precision": (
        "Precision",
        "Share with evidence of the queries called so",
        "higher",
    ),
    "npv": (
        "Negative predictive value",
        "Share of the queries not called so that have no evidence",
        "higher",
    ),
    "f1": ("F1", "Harmonic mean of precision and sensitivity", "higher"),
    "mcc": (
        "Matthews correlation",
        "Correlation of decisions with the gold; chance is 0",
        "higher",
    ),
    "balanced_accuracy": (
        "Balanced accuracy",
        "Mean of sensitivity and specificity; chance is 0.5",
        "higher",
    ),
    "kappa": ("Cohen's kappa", "Agreement with the gold beyond chance", "higher"),
}
"""Name, meaning and direction of each rate."""

REPORTED_RATES = tuple(_RATES)

DECIDED: Mapping[str, ValueMeasure[DecidedQueries]] = {
    "n": ValueMeasure(
        "Queries decided",
        "Judged queries with a score",
        definition="count@1({over})",
        of=lambda decided: count(len(decided.y)),
    ),
    **{
        key: ValueMeasure(*words, definition="count@1({over})", of=partial(_rate, key))
        for key, words in _COUNTS.items()
    },
    **{
        key: ValueMeasure(
            *words, definition="{key}@1({over}; {empty})", of=partial(_rate, key)
        )
        for key, words in _RATES.items()
    },
}
"""Measures of one decision rule; `WAYS` has their prefixes."""

WAYS: Mapping[str, tuple[str, str]] = {
    "at_tau": ("at tau", "called so from the probability tau"),
    "at_screening": ("not skipped", "called so unless skipped (NEG)"),
    "at_alert": ("alerts", "called so where an alert is raised (POS)"),
}
"""Decision rules about a query: name, meaning."""


def decided_queries(
    gated: GateScores | None,
    stated: GateStates | None,
    settings: EvidenceSettings,
    clusters: Clusters = NO_CLUSTERS,
) -> Iterator[DecidedQueries]:
    """Yield the decisions at tau, at the screening and at the alert point."""
    decided = partial(DecidedQueries, settings=settings, clusters=clusters)
    if gated is not None and gated.is_probability:
        yield decided(
            way="at_tau",
            condition=f"p >= {settings.tau:g}",
            y=gated.y,
            h=at_threshold(gated.p, settings.tau),
            rows=gated.rows,
        )
    if stated is not None:
        for way, condition, h in (
            ("at_screening", "state is not NEG", stated.state != NEG),
            ("at_alert", "state is POS", stated.state == POS),
        ):
            yield decided(
                way=way,
                condition=f"{condition}; states {stated.method}",
                y=stated.y,
                h=h,
                rows=stated.rows,
            )


def points(decided: DecidedQueries) -> Iterator[Measurement]:
    """Yield counts and rates of one decision rule, with Wilson's intervals too."""
    path, condition = f"{decided.way}.", decided.condition
    for one in measured(
        DECIDED,
        decided,
        path=path,
        over=condition,
        subset=SCORED_QUERIES,
        parameters={"empty": empty_rate(decided.settings)},
    ):
        yield one
        name = one.path.removeprefix(path)
        if name in decided.shares:
            bare = replace(one, definition=f"{name}@1({condition})")
            share = _wilson(bare, decided.shares[name], decided.settings.level)
            n = share.measured.n_defined or 0
            yield replace(share, measured=replace(share.measured, n=n, n_defined=None))


def _wilson(
    measurement: Measurement, parts: tuple[Bools, Bools], level: float
) -> Measurement:
    """Return a share of queries with the interval for independent queries."""
    k, n = (int(part.sum()) for part in parts)
    share = wilson_share(k, n, level, is_rounded=True)
    return replace(
        measurement,
        path=f"{measurement.path}~wilson",
        definition=f"{measurement.definition}; wilson@1(level={level})",
        measured=replace(share, n=len(parts[0]), n_defined=n),
        note=INDEPENDENT,
    )


def state_shares(stated: GateStates) -> Mapping[str, tuple[Bools, Bools]]:
    """Return numerator and denominator rows of each share, by path."""
    y, is_neg, is_pos = stated.y, stated.state == NEG, stated.state == POS
    every: Bools = np.ones(len(y), dtype=np.bool_)
    return {
        **{
            f"{name.lower()}_rate": (stated.state == i, every)
            for i, name in enumerate(STATES)
        },
        "screening_sensitivity": (y & ~is_neg, y),
        "screening_specificity": (~y & is_neg, ~y),
        "screening_npv": (~y & is_neg, is_neg),
        "alert_precision": (y & is_pos, is_pos),
        "alert_recall": (y & is_pos, y),
        "screening_fn_per_1000": (y & is_neg, every),
        "screening_fn_per_1000_positive": (y & is_neg, y),
        "alerts_per_1000": (is_pos, every),
    }


@dataclass(frozen=True, kw_only=True)
class StatedQueries:
    """Queries with a state, and the data that their measures depend on."""

    stated: GateStates
    settings: EvidenceSettings
    clusters: Clusters

    @cached_property
    def shares(self) -> Mapping[str, tuple[Bools, Bools]]:
        """Numerator and denominator rows of each share."""
        return state_shares(self.stated)

    def counts(self) -> Mapping[str, MeasuredValue]:
        """Return the number of queries by state."""
        state = self.stated.state
        numbers = np.bincount(state, minlength=len(STATES)).tolist()
        return counts(dict(zip(STATES, numbers, strict=True)), len(state))


def _share(path: str, queries: StatedQueries) -> MeasuredValue:
    above, below = queries.shares[path]
    k, n = int(above.sum()), int(below.sum())
    rows, clusters = queries.stated.rows, queries.clusters
    if path in _DENOMINATORS:
        value = ratio(1000 * k, n)
        drawn = clusters.ratio(rows, np.multiply(1000.0, above), below, PER_THOUSAND)
    else:
        value = queries.settings.zero_division if n == 0 else k / n
        drawn = clusters.ratio(rows, above, below)
    return MeasuredValue(value=value, n=len(above), n_defined=n, statistic=drawn)


STATE_COUNTS: Mapping[str, ValueMeasure[StatedQueries]] = {
    "states.n": ValueMeasure(
        "Queries with a state",
        "Number of queries with a state",
        definition="count@1(queries with a state)",
        of=lambda queries: count(len(queries.stated.y)),
    ),
    "states.{state}": ValueMeasure(
        "Queries in state {state}",
        "Number of queries in the state {state}",
        definition="count@1({over})",
        of=StatedQueries.counts,
    ),
}

_SHARES: Mapping[str, tuple[str, str, Direction]] = {
    "neg_rate": (
        "Skipped queries",
        "Share of queries that are skipped (NEG)",
        "neither",
    ),
    "uncertain_rate": (
        "Uncertain queries",
        "Share of queries that are read with care (UNCERTAIN)",
        "neither",
    ),
    "pos_rate": (
        "Alert rate",
        "Share of queries that raise an alert (POS)",
        "neither",
    ),
    "screening_sensitivity": (
        "Screening sensitivity",
        "Share of queries with evidence that are not skipped",
        "higher",
    ),
    "screening_specificity": (
        "Screening specificity",
        "Share of queries without evidence that are skipped",
        "higher",
    ),
    "screening_npv": (
        "Screening negative predictive value",
        "Share of skipped queries that indeed have no evidence",
        "higher",
    ),
    "alert_precision": ("Alert precision", "Share of alerts that are right", "higher"),
    "alert_recall": (
        "Alert recall",
        "Share of queries with evidence that raise an alert",
        "higher",
    ),
    "screening_fn_per_1000": (
        "Missed queries per 1,000",
        "Queries with evidence that are skipped, in 1,000 queries",
        "lower",
    ),
    "screening_fn_per_1000_positive": (
        "Missed queries per 1,000 with evidence",
        "Queries with evidence that are skipped, in 1,000 queries with evidence",
        "lower",
    ),
    "alerts_per_1000": ("Alerts per 1,000", "Alerts in 1,000 queries", "neither"),
}

_DENOMINATORS: Mapping[str, str] = {
    "screening_fn_per_1000": "queries",
    "screening_fn_per_1000_positive": "queries with evidence",
    "alerts_per_1000": "queries",
}
"""Denominators of the rates per thousand."""

STATE_SHARES: Mapping[str, ValueMeasure[StatedQueries]] = {
    key: ValueMeasure(
        *words,
        definition=f"{{key}}@1(per 1000 {_DENOMINATORS[key]}; {{over}})"
        if key in _DENOMINATORS
        else "{key}@1({over})",
        of=partial(_share, key),
    )
    for key, words in _SHARES.items()
}
"""Shares of queries, and rates per thousand of them."""


def states(
    stated: GateStates, settings: EvidenceSettings, clusters: Clusters = NO_CLUSTERS
) -> Iterator[Measurement]:
    """Yield the number of queries in each state, and rates of screening and alerts."""
    queries = StatedQueries(stated=stated, settings=settings, clusters=clusters)
    over = f"states {stated.method}; {empty_rate(settings)}"
    yield from measured(STATE_COUNTS, queries, over=over, subset=SCORED_QUERIES)
    for one in measured(STATE_SHARES, queries, over=over, subset=SCORED_QUERIES):
        yield one
        if one.path not in _DENOMINATORS:
            yield _wilson(one, queries.shares[one.path], settings.level)
