"""Fits gates by nested folds: no post is decided by a gate fitted to it.

A gate is a probability, its calibration and two thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.pipeline import Calibration, Config
from jobs.evidence_retrieval.predictions.classifier import (
    CannotFitError,
    Split,
    choose_c,
    fit_calibrator,
    fit_classifier,
    out_of_fold,
    refuse_one_class,
    split,
)
from jobs.evidence_retrieval.predictions.fitted_gate import (
    FeatureRows,
    FittedGate,
    GateThresholds,
    calibrated,
    logistic,
    raw_probability,
)
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import assign, gate_metrics, threshold_grid, wilson
from jobs.kit.metrics.columns import Bools, Floats, Ints, quotient
from jobs.kit.metrics.selective import Edge


def thresholds(y: Bools, p: Floats, settings: EvidenceSettings) -> GateThresholds:
    """Set tau_neg as high as sensitivity allows, tau_pos as low as precision allows.

    Candidates are 0 and the distinct p; a row is positive at p >= t.
    """
    if not y.any():
        return GateThresholds(tau_neg=0.0, tau_pos=math.inf, has_positive=False)
    candidates = np.unique(np.append(p, 0.0))
    counts = threshold_grid(y, p, candidates)
    # quotient: 0/0 is NaN, which reaches no target
    reach = quotient if settings.target_bound == "point" else _lower_end
    sensitivity = reach(counts.tp, counts.tp + counts.fn)
    # at 0 every row is positive, so there is always a candidate unless the bound
    # forbids it
    enough = candidates[sensitivity >= settings.target_sensitivity]
    tau_neg = float(enough.max()) if len(enough) else 0.0
    alerts = counts.tp + counts.fp
    good = (
        (candidates >= tau_neg)
        & (alerts >= settings.min_alerts)
        & (reach(counts.tp, alerts) >= settings.target_alert_precision)
    )
    tau_pos = float(candidates[good].min()) if good.any() else math.inf
    return GateThresholds(tau_neg=tau_neg, tau_pos=tau_pos, has_positive=True)


def reached(
    y: Bools, p: Floats, chosen: GateThresholds, edge: Edge
) -> Mapping[str, float | None]:
    """Return the metrics of the thresholds on the posts that they were set by."""
    states = assign(p, chosen.tau_neg, chosen.tau_pos, edge=edge)
    state_metrics = gate_metrics(y, states)
    alerts = state_metrics.alert_precision
    negatives = state_metrics.screening_specificity.n
    specificity = state_metrics.screening_specificity.value
    return {
        "screening_sensitivity": state_metrics.screening_sensitivity.value,
        "screening_fpr": None if specificity is None else 1 - specificity,
        "screening_npv": state_metrics.screening_npv.value,
        "alert_precision": alerts.value,
        "alert_recall": state_metrics.alert_recall.value,
        "alert_fpr": (alerts.n - alerts.k) / negatives if negatives else None,
        **{
            f"{name.lower()}_rate": share.value
            for name, share in state_metrics.rates.items()
        },
    }


def _lower_end(k: Floats, n: Floats) -> Floats:
    ends = [wilson(int(a), int(b)).lo for a, b in zip(k, n, strict=True)]
    return np.array([math.nan if end is None else end for end in ends])


GateKind: TypeAlias = Literal["passthrough", "classifier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """Specification of a gate; equal specs on equal rows give equal gates."""

    kind: GateKind
    calibration: Calibration
    settings: EvidenceSettings


def spec_of(config: Config, settings: EvidenceSettings) -> GateSpec | None:
    """Return the gate specification of a configuration, or None."""
    if config.gate == "none":
        return None
    return GateSpec(kind=config.gate, calibration=config.calibration, settings=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRows:
    """Rows with their gold labels."""

    rows: FeatureRows
    y: Bools


def fit(
    spec: GateSpec, learn: LabelledRows, tune: LabelledRows | None = None
) -> FittedGate:
    """Fit classifier and calibrator to *learn*, thresholds to *tune*.

    A gate for new data is fitted on all judged rows, and no reported metric may use it.
    There are no rows left to tune on: its thresholds use out-of-fold probabilities.

    Raises:
        CannotFitError: a class is missing, or no calibrator exists.
    """
    refuse_one_class(learn.y)
    classifier, unseen = None, learn.rows.stated
    if spec.kind == "classifier":
        values, posts = learn.rows.values, learn.rows.posts
        c = choose_c(values, learn.y, posts, spec.settings.c_grid)
        classifier = fit_classifier(values, learn.y, c)
        # by classifiers that were not fitted to the row
        unseen = logistic(out_of_fold(values, learn.y, posts, c))
    raw, y = unseen, learn.y
    if tune is not None:
        raw, y = raw_probability(classifier, tune.rows), tune.y
    if spec.settings.calibrate_on == "tune":
        calibrator = fit_calibrator(spec.calibration, raw, y)
    else:
        calibrator = fit_calibrator(spec.calibration, unseen, learn.y)
    return FittedGate(
        names=learn.rows.names,
        classifier=classifier,
        calibrator=calibrator,
        thresholds=thresholds(y, calibrated(calibrator, raw), spec.settings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldAssignment:
    """The assignment of posts to folds."""

    names: tuple[str, ...]  #: in display order
    of: Mapping[str, str]  #: fold by post
    seed: int
    tune_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldResult:
    """The gate of one fold, with the data that it was tuned on."""

    split: Split
    gate: FittedGate | None = None  #: None: there was nothing to fit to
    reason: str = ""  #: for a missing gate, else ""
    on_tune: Mapping[str, float | None] = field(default_factory=dict)
    tune_p: Floats = field(default_factory=lambda: np.empty(0))
    """Calibrated probabilities of the tuning rows."""
    tune_y: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """Probabilities of all rows by their fold's gate; NaN for posts without a fold."""

    raw: Floats  #: before calibration
    probability: Floats  #: the model's own if the fold has no gate
    folds: tuple[FoldResult, ...]


def splits(folds: FoldAssignment, posts: Sequence[str], y: Ints) -> Iterator[Split]:
    """Yield the split of each fold; only posts with gold are used for fitting.

    Args:
        folds: folds of the posts.
        posts: post of each row.
        y: 1, 0 or UNKNOWN per row.
    """
    judged = sorted(
        {post for post, label in zip(posts, y.tolist(), strict=True) if label >= 0}
    )
    for name in folds.names:
        yield split(
            name,
            folds.of,
            judged,
            seed=folds.seed,
            tune_fraction=folds.tune_fraction,
        )


def nested(spec: GateSpec, rows: FeatureRows, y: Ints, folds: FoldAssignment) -> Nested:
    """Decide every row by the gate of its fold.

    Args:
        spec: what to fit.
        rows: queries in canonical order.
        y: 1, 0 or UNKNOWN per row.
        folds: folds of the posts; one without a fold is neither fitted to nor decided.
    """
    raw, probability = np.full((2, len(rows)), np.nan)
    results = []
    for fold_split in splits(folds, rows.posts, y):
        result = fit_fold(spec, rows, y, fold_split)
        test = rows_of(rows, fold_split.test)
        raw[test], probability[test] = apply_gate(result.gate, rows.select(test))
        results.append(result)
    return Nested(raw=raw, probability=probability, folds=tuple(results))


def apply_gate(gate: FittedGate | None, rows: FeatureRows) -> tuple[Floats, Floats]:
    """Return raw and calibrated probabilities of *rows*; as stated without a gate."""
    if gate is None:
        return rows.stated, rows.stated
    return gate.raw(rows), gate.probability(rows)


def fit_fold(
    spec: GateSpec, rows: FeatureRows, y: Ints, fold_split: Split
) -> FoldResult:
    """Fit the gate of one fold; reads the gold of its fit and tuning posts only."""
    learn = _labelled(rows, y, fold_split.fit)
    tune = _labelled(rows, y, fold_split.tune)
    try:
        gate = fit(spec, learn, tune)
    except CannotFitError as error:
        return FoldResult(split=fold_split, reason=str(error))
    p = gate.probability(tune.rows)
    return FoldResult(
        split=fold_split,
        gate=gate,
        on_tune=reached(tune.y, p, gate.thresholds, spec.settings.gate_edge),
        tune_p=p,
        tune_y=tune.y,
    )


def rows_of(rows: FeatureRows, posts: Sequence[str]) -> Bools:
    """Return the mask of the rows of some posts."""
    post_ids = frozenset(posts)
    return np.array([post in post_ids for post in rows.posts], dtype=np.bool_)


def _labelled(rows: FeatureRows, y: Ints, posts: Sequence[str]) -> LabelledRows:
    chosen = rows_of(rows, posts) & (y != UNKNOWN)
    return LabelledRows(rows=rows.select(chosen), y=y[chosen] == 1)
