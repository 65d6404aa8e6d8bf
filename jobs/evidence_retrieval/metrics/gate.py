"""Measures the gate: separation, thresholds, calibration, risk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import (
    Clusters,
    CurveStatistic,
    Quotient,
    RetrievalMeasure,
    count,
    empty_rate,
)
from jobs.evidence_retrieval.metrics.judged_predictions import GateScores, GateStates
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.areas import auprc_of, auroc_of, delong
from jobs.kit.metrics.calibration import (
    Closed,
    brier,
    brier_decomposition,
    brier_skill,
    ece,
    ece_adaptive,
    ece_of,
    log_loss,
    mce,
)
from jobs.kit.metrics.classification import (
    Vertex,
    at_threshold,
    auprc,
    auroc,
    confusion,
    rates,
    tpr_at_fpr,
)
from jobs.kit.metrics.cluster_statistics import ResampledStatistic
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.intervals import wilson
from jobs.kit.metrics.selective import NEG, POS, aurc, excess_aurc

Area: TypeAlias = Callable[[Bools, Floats, Clusters], ResampledStatistic]

INDEPENDENT = "assumes independent queries"

REPORTED_RATES = (
    "sensitivity",
    "specificity",
    "fpr",
    "precision",
    "npv",
    "f1",
    "mcc",
    "balanced_accuracy",
    "kappa",
)


def separation(
    gated: GateScores, settings: EvidenceSettings
) -> Iterator[RetrievalMeasure]:
    """Areas, and sensitivities at false positive rates."""
    y, p, n = gated.y, gated.p, len(gated.rows)
    score_name = "probability" if gated.is_probability else "max_score"
    yield count("n", n, "judged queries with a score")
    yield count("positives", int(y.sum()), "of them with evidence")
    yield count("negatives", n - int(y.sum()), "of them without evidence")
    for name, area, redraw, method in (
        ("auroc", auroc, auroc_of, "trapezoid over all distinct scores"),
        ("auprc", auprc, auprc_of, "average precision; chance is the prevalence"),
    ):
        yield RetrievalMeasure(
            path=name,
            value=area(y, p),
            n=n,
            definition=f"{name}@1({method}; score={score_name})",
            sampled=CurveStatistic(partial(_redrawn, redraw, gated)) if n else None,
        )
    spread = delong(y, p, settings.level)
    if spread is not None:
        degenerate = "; degenerate: SE 0" if spread.is_degenerate else ""
        yield RetrievalMeasure(
            path="auroc~delong",
            value=spread.auroc,
            n=n,
            definition=f"auroc@1(score={score_name}); delong@1(level={settings.level})",
            interval=spread.interval,
            note=INDEPENDENT + degenerate,
        )
    yield from _at_targets(gated, settings)


def _redrawn(make: Area, gated: GateScores, cluster: Clusters) -> ResampledStatistic:
    return make(gated.y, gated.p, cluster[gated.rows])


def _at_targets(
    gated: GateScores, settings: EvidenceSettings
) -> Iterator[RetrievalMeasure]:
    n, vertex = len(gated.rows), _VERTEX[settings.tpr_rule]
    for target in settings.fpr_targets:
        point = tpr_at_fpr(gated.y, gated.p, target, vertex=vertex)
        for name, value in (
            ("tpr_at_fpr", None if point is None else point.tpr),
            ("attained_fpr", None if point is None else point.fpr),
            ("threshold_at_fpr", None if point is None else point.threshold),
        ):
            yield RetrievalMeasure(
                path=f"{name}@{target:g}",
                value=value,
                n=n,
                definition=f"{name}@1(target={target:g}, vertex={vertex})",
            )


_VERTEX: Mapping[str, Vertex] = {"last": "last", "nearest": "nearest"}


def operating(
    prefix: str,
    y: Bools,
    h: Bools,
    rows: Ints,
    *,
    condition: str,
    settings: EvidenceSettings,
) -> Iterator[RetrievalMeasure]:
    """Counts and rates of one way to decide, which *condition* names."""
    cells, n = confusion(y, h), len(y)
    shared = f"{condition}; {empty_rate(settings)}"
    counts = {
        "tp": int(cells.tp),
        "fp": int(cells.fp),
        "tn": int(cells.tn),
        "fn": int(cells.fn),
    }
    for name, number in (("n", n), *counts.items()):
        yield RetrievalMeasure(
            path=f"{prefix}.{name}",
            value=number,
            n=n,
            definition=f"count@1({condition})",
        )
    rate_values = rates(cells)
    parts = _parts(y, h)
    for name in REPORTED_RATES:
        value = rate_values[name]
        above, below = parts.get(name, (None, None))
        yield RetrievalMeasure(
            path=f"{prefix}.{name}",
            value=settings.zero_division if value is None else value,
            n=n,
            definition=f"{name}@1({shared})",
            sampled=None
            if above is None or below is None
            else Quotient(rows=rows, above=above, below=below),
        )
        if above is not None and below is not None:
            yield RetrievalMeasure(
                path=f"{prefix}.{name}~wilson",
                value=value,
                n=int(below.sum()),
                definition=f"{name}@1({condition}); wilson@1(level={settings.level})",
                interval=wilson(int(above.sum()), int(below.sum()), settings.level),
                note=INDEPENDENT,
            )


def _parts(y: Bools, h: Bools) -> dict[str, tuple[Bools, Bools]]:
    """Rows above and below the line of each rate that is a share of rows."""
    return {
        "sensitivity": (y & h, y),
        "specificity": (~y & ~h, ~y),
        "precision": (y & h, h),
        "npv": (~y & ~h, ~h),
    }


def points(
    gated: GateScores | None, stated: GateStates | None, settings: EvidenceSettings
) -> Iterator[RetrievalMeasure]:
    """The three ways to decide: at tau, at the screening and at the alert point."""
    if gated is not None and gated.is_probability:
        h = at_threshold(gated.p, settings.tau)
        condition = f"p >= {settings.tau:g}"
        yield from operating(
            "at_tau", gated.y, h, gated.rows, condition=condition, settings=settings
        )
    if stated is not None:
        for prefix, h, condition in (
            ("at_screening", stated.state != NEG, "state is not NEG"),
            ("at_alert", stated.state == POS, "state is POS"),
        ):
            definition = f"{condition}; states {stated.method}"
            yield from operating(
                prefix,
                stated.y,
                h,
                stated.rows,
                condition=definition,
                settings=settings,
            )


def closed_edge(settings: EvidenceSettings) -> Closed:
    """Which edge a bin of probabilities owns."""
    return "left" if settings.ece_edges == "left_drop_one" else "right"


def calibration(
    gated: GateScores, settings: EvidenceSettings
) -> Iterator[RetrievalMeasure]:
    """Whether probabilities mean what they say, and what confidence is worth."""
    y, p, n = gated.y, gated.p, len(gated.rows)
    bins, closed = settings.ece_bins, closed_edge(settings)
    is_left = closed == "left"
    edges = f"bins={bins}, closed={closed}{', p = 1 dropped' if is_left else ''}"

    def measure(path: str, value: float | None, definition: str) -> RetrievalMeasure:
        return RetrievalMeasure(path=path, value=value, n=n, definition=definition)

    yield RetrievalMeasure(
        path="ece",
        value=ece(y, p, bins, closed=closed, drop_one=is_left),
        n=n,
        definition=f"ece@1({edges})",
        sampled=CurveStatistic(partial(_redrawn_ece, gated, settings)) if n else None,
    )
    yield measure("mce", mce(y, p, bins, closed=closed), f"mce@1({edges})")
    yield RetrievalMeasure(
        path="ece_adaptive",
        value=ece_adaptive(y, p, bins),
        n=n,
        definition=f"ece_adaptive@1(bins={bins}, equal counts, stable sort)",
        note="secondary: depends on the order of tied rows",
    )
    yield RetrievalMeasure(
        path="brier",
        value=brier(y, p),
        n=n,
        definition="brier@1",
        sampled=Quotient(rows=gated.rows, above=(p - y) ** 2),
    )
    parts = brier_decomposition(y, p)
    for name in ("reliability", "resolution", "uncertainty"):
        value = None if parts is None else getattr(parts, name)
        definition = "brier_decomposition@1(over distinct p)"
        yield measure(f"brier_{name}", value, definition)
    yield measure("brier_skill", brier_skill(y, p), "brier_skill@1(over prevalence)")
    loss = log_loss(y, p)
    yield RetrievalMeasure(
        path="log_loss",
        value=loss.value,
        n=n,
        definition="log_loss@1(nats, eps=1e-15)",
        note=f"{loss.clipped} values clipped" if loss.clipped else None,
    )
    confidence = np.maximum(p, 1 - p)
    wrong = at_threshold(p, settings.tau) != y
    parameters = f"confidence=max(p, 1-p), error at tau={settings.tau:g}"
    yield measure("aurc", aurc(confidence, wrong), f"aurc@1({parameters})")
    excess = excess_aurc(confidence, wrong)
    yield measure("excess_aurc", excess, f"excess_aurc@1({parameters})")


def _redrawn_ece(
    gated: GateScores, settings: EvidenceSettings, cluster: Clusters
) -> ResampledStatistic:
    closed = closed_edge(settings)
    return ece_of(
        gated.y,
        gated.p,
        cluster[gated.rows],
        settings.ece_bins,
        closed=closed,
        drop_one=closed == "left",
    )
