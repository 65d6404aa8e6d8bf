"""Measures the gate: separation, thresholds, calibration, risk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.metrics.bootstrap import NO_CLUSTERS, Clusters
from jobs.evidence_retrieval.metrics.judged_predictions import (
    SCORED_QUERIES,
    GateScores,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.measurements import MeasuredValue, Measurement, count
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics.areas import auprc_of, auroc_of, delong
from jobs.kit.metrics.calibration import (
    BrierParts,
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
    OperatingPoint,
    Vertex,
    at_threshold,
    auprc,
    auroc,
    tpr_at_fpr,
)
from jobs.kit.metrics.cluster_statistics import ResampledStatistic
from jobs.kit.metrics.columns import Bools, Floats
from jobs.kit.metrics.intervals import Interval, round12
from jobs.kit.metrics.selective import aurc, excess_aurc

INDEPENDENT = "assumes independent queries"


@dataclass(frozen=True, kw_only=True)
class ScoredQueries:
    """Scores of a block, and the data that their measures depend on."""

    gated: GateScores
    settings: EvidenceSettings
    clusters: Clusters = NO_CLUSTERS

    @property
    def y(self) -> Bools:
        """Whether there is evidence, by query."""
        return self.gated.y

    @property
    def p(self) -> Floats:
        """Scores, which are probabilities if calibration is measured."""
        return self.gated.p

    def value(
        self,
        value: float | None,
        redraw: Callable[[npt.NDArray[np.intp]], ResampledStatistic] | None = None,
    ) -> MeasuredValue:
        """Return a value over all scores; *redraw* builds its statistic."""
        rows = self.gated.rows
        statistic = None if redraw is None else self.clusters.curve(rows, redraw)
        return MeasuredValue(value=value, n=len(rows), statistic=statistic)

    def brier_part(self, part: Callable[[BrierParts], float]) -> MeasuredValue:
        """Return a part of the Brier score."""
        parts = self._brier_parts
        return self.value(None if parts is None else part(parts))

    @cached_property
    def _brier_parts(self) -> BrierParts | None:
        return brier_decomposition(self.y, self.p)

    @cached_property
    def risk(self) -> tuple[Floats, Bools]:
        """Confidence of each decision at tau, and whether it is wrong."""
        confidence = np.maximum(self.p, 1 - self.p)
        return confidence, at_threshold(self.p, self.settings.tau) != self.y


SEPARATION: Mapping[str, ValueMeasure[ScoredQueries]] = {
    "n": ValueMeasure(
        "Scored queries",
        "Number of judged queries with a score",
        definition="count@1(judged queries with a score)",
        of=lambda scored: count(len(scored.y)),
    ),
    "positives": ValueMeasure(
        "Queries with evidence",
        "Number of scored queries that have evidence",
        definition="count@1(of them with evidence)",
        of=lambda scored: count(int(scored.y.sum())),
    ),
    "negatives": ValueMeasure(
        "Queries without evidence",
        "Number of scored queries that have no evidence",
        definition="count@1(of them without evidence)",
        of=lambda scored: count(int((~scored.y).sum())),
    ),
    "auroc": ValueMeasure(
        "AUROC",
        "How often a query with evidence scores above one without; chance is 0.5",
        "higher",
        definition="auroc@1(trapezoid over all distinct scores; score={score})",
        of=lambda scored: scored.value(
            auroc(scored.y, scored.p),
            partial(auroc_of, scored.y, scored.p),
        ),
    ),
    "auprc": ValueMeasure(
        "AUPRC",
        "Share with evidence among the most probable queries, averaged over how many "
        "are taken; chance is the share with evidence",
        "higher",
        definition="auprc@1(average precision; chance is the prevalence; "
        "score={score})",
        of=lambda scored: scored.value(
            auprc(scored.y, scored.p),
            partial(auprc_of, scored.y, scored.p),
        ),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FprPoint:
    """The point of a curve for a target false positive rate."""

    target: float
    point: OperatingPoint | None
    n: int

    def value(
        self, of: Callable[[OperatingPoint], float | None]
    ) -> Mapping[str, MeasuredValue]:
        """Return a value of the point, under its target."""
        value = None if self.point is None else of(self.point)
        return {f"{self.target:g}": MeasuredValue(value=value, n=self.n)}


AT_FPR: Mapping[str, ValueMeasure[FprPoint]] = {
    "tpr_at_fpr@{fpr*}": ValueMeasure(
        "True positive rate at FPR {fpr}",
        "Share of evidence found where a share of {fpr} of the queries without "
        "evidence may be false alarms",
        "higher",
        definition="tpr_at_fpr@1(target={fpr}, vertex={vertex})",
        of=lambda at: at.value(lambda point: point.tpr),
    ),
    "attained_fpr@{fpr*}": ValueMeasure(
        "Attained FPR at target {fpr}",
        "Share of false alarms that the threshold for a target of {fpr} really has",
        definition="attained_fpr@1(target={fpr}, vertex={vertex})",
        of=lambda at: at.value(lambda point: point.fpr),
    ),
    "threshold_at_fpr@{fpr*}": ValueMeasure(
        "Threshold at FPR {fpr}",
        "Score from which at most a share of {fpr} are false alarms",
        definition="threshold_at_fpr@1(target={fpr}, vertex={vertex})",
        of=lambda at: at.value(lambda point: point.threshold),
    ),
}

_VERTEX: Mapping[str, Vertex] = {"last": "last", "nearest": "nearest"}


def separation(scored: ScoredQueries) -> Iterator[Measurement]:
    """Yield areas, and sensitivities at false positive rates."""
    gated, settings = scored.gated, scored.settings
    score = "probability" if gated.is_probability else "max_score"
    yield from measured(
        SEPARATION, scored, subset=SCORED_QUERIES, parameters={"score": score}
    )
    spread = delong(gated.y, gated.p, settings.level)
    if spread is not None:
        lo, hi = spread.interval.lo, spread.interval.hi
        yield Measurement(
            path="auroc~delong",
            definition=f"auroc@1(score={score}); delong@1(level={settings.level})",
            measured=replace(
                scored.value(spread.auroc),
                interval=Interval(
                    lo=None if lo is None else round12(lo),
                    hi=None if hi is None else round12(hi),
                ),
            ),
            subset=SCORED_QUERIES,
            note=INDEPENDENT + ("; degenerate: SE 0" if spread.is_degenerate else ""),
        )
    vertex = _VERTEX[settings.tpr_rule]
    for target in settings.fpr_targets:
        point = tpr_at_fpr(gated.y, gated.p, target, vertex=vertex)
        yield from measured(
            AT_FPR,
            FprPoint(target=target, point=point, n=len(gated.rows)),
            subset=SCORED_QUERIES,
            parameters={"vertex": vertex},
        )


def closed_edge(settings: EvidenceSettings) -> Closed:
    """Return the closed edge of a bin of probabilities."""
    return "left" if settings.ece_edges == "left_drop_one" else "right"


def _ece(scored: ScoredQueries) -> MeasuredValue:
    y, p, bins = scored.y, scored.p, scored.settings.ece_bins
    closed = closed_edge(scored.settings)
    is_left = closed == "left"
    return scored.value(
        ece(y, p, bins, closed=closed, drop_one=is_left),
        lambda clusters: ece_of(y, p, clusters, bins, closed=closed, drop_one=is_left),
    )


def _brier(scored: ScoredQueries) -> MeasuredValue:
    squares = scored.clusters.mean(scored.gated.rows, (scored.p - scored.y) ** 2)
    return replace(scored.value(brier(scored.y, scored.p)), statistic=squares)


CALIBRATION: Mapping[str, ValueMeasure[ScoredQueries]] = {
    "ece": ValueMeasure(
        "Expected calibration error",
        "Mean distance of stated probabilities from what happens",
        "lower",
        definition="ece@1({edges})",
        of=_ece,
    ),
    "mce": ValueMeasure(
        "Maximum calibration error",
        "Largest distance of stated probabilities from what happens, over bins",
        "lower",
        definition="mce@1({edges})",
        of=lambda scored: scored.value(
            mce(
                scored.y,
                scored.p,
                scored.settings.ece_bins,
                closed=closed_edge(scored.settings),
            )
        ),
    ),
    "ece_adaptive": ValueMeasure(
        "Expected calibration error, adaptive bins",
        "Mean distance of stated probabilities from what happens, in bins of equal "
        "size",
        "lower",
        definition="ece_adaptive@1(bins={bins}, equal counts, stable sort)",
        note="secondary: depends on the order of tied rows",
        of=lambda scored: scored.value(
            ece_adaptive(scored.y, scored.p, scored.settings.ece_bins)
        ),
    ),
    "brier": ValueMeasure(
        "Brier score",
        "Mean squared distance of probabilities from the truth",
        "lower",
        definition="brier@1",
        of=_brier,
    ),
    "brier_reliability": ValueMeasure(
        "Brier score, reliability",
        "Part of the Brier score that is due to wrong probabilities",
        "lower",
        definition="brier_decomposition@1(over distinct p)",
        of=lambda scored: scored.brier_part(lambda parts: parts.reliability),
    ),
    "brier_resolution": ValueMeasure(
        "Brier score, resolution",
        "Part of the Brier score that telling queries apart saves",
        "higher",
        definition="brier_decomposition@1(over distinct p)",
        of=lambda scored: scored.brier_part(lambda parts: parts.resolution),
    ),
    "brier_uncertainty": ValueMeasure(
        "Brier score, uncertainty",
        "Part of the Brier score that is due to the prevalence alone",
        definition="brier_decomposition@1(over distinct p)",
        of=lambda scored: scored.brier_part(lambda parts: parts.uncertainty),
    ),
    "brier_skill": ValueMeasure(
        "Brier skill score",
        "Share of the Brier score of the bare prevalence that the model saves",
        "higher",
        definition="brier_skill@1(over prevalence)",
        of=lambda scored: scored.value(brier_skill(scored.y, scored.p)),
    ),
    "log_loss": ValueMeasure(
        "Log loss",
        "How surprised the probabilities are by the truth",
        "lower",
        definition="log_loss@1(nats, eps=1e-15)",
        of=lambda scored: scored.value(log_loss(scored.y, scored.p).value),
    ),
    "aurc": ValueMeasure(
        "Area under the risk-coverage curve",
        "Errors that remain if only the surest queries are decided, averaged over how "
        "many",
        "lower",
        definition="aurc@1(confidence=max(p, 1-p), error at tau={tau})",
        of=lambda scored: scored.value(aurc(*scored.risk)),
    ),
    "excess_aurc": ValueMeasure(
        "Excess area under the risk-coverage curve",
        "How far the area lies above that of the best order of queries",
        "lower",
        definition="excess_aurc@1(confidence=max(p, 1-p), error at tau={tau})",
        of=lambda scored: scored.value(excess_aurc(*scored.risk)),
    ),
}


def calibration(scored: ScoredQueries) -> Iterator[Measurement]:
    """Yield measures of calibration, and of risk by confidence."""
    settings = scored.settings
    bins, closed = settings.ece_bins, closed_edge(settings)
    dropped = ", p = 1 dropped" if closed == "left" else ""
    for measurement in measured(
        CALIBRATION,
        scored,
        subset=SCORED_QUERIES,
        parameters={
            "bins": f"{bins}",
            "edges": f"bins={bins}, closed={closed}{dropped}",
            "tau": f"{settings.tau:g}",
        },
    ):
        if measurement.path == "log_loss":
            clipped = log_loss(scored.y, scored.p).clipped
            note = f"{clipped} values clipped" if clipped else ""
            yield replace(measurement, note=note)
        else:
            yield measurement
