"""Computes all metrics of a run, before they become tables and files.

Differences between models in sensitivity, specificity and accuracy, with their tests
and verdicts, are those of `jobs.kit.comparison`. McNemar's test of correctness ignores
that the records of a review are dependent; it is reported in addition and affects no
verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jobs.kit.baselines import TrivialBaseline
from jobs.kit.comparison.difference import ComparedMetric
from jobs.kit.comparison.models import ModelPair, SignTest, model_pairs
from jobs.kit.measurements import Measurement, count, counts, share, with_intervals
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics import (
    FEW_CLUSTERS,
    Agreement,
    Resamples,
    agreement_of,
    fleiss_kappa,
    ratio,
)
from jobs.kit.metrics.columns import Ints
from jobs.kit.truth import no_truth
from jobs.screening.decisions import (
    READABLE,
    UNDECIDED,
    Decisions,
    DecisionView,
    ScreeningFrame,
    ScreeningPredictions,
    strata,
    text_rank,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.ranking import ThresholdSweep, sweep_thresholds
from jobs.screening.reason_codes import OTHER
from jobs.screening.settings import ScreeningSettings
from jobs.screening.strata import (
    Stratum,
    implied_contamination,
    kind_gaps,
    measure_stratum,
)
from runner.scorecard import LIMITS, Comparable, Finding, Metric

SENSITIVITY = "all.micro.sensitivity"
SPECIFICITY = "all.micro.specificity"
ACCURACY = "all.micro.accuracy"
PAIRED = (SENSITIVITY, SPECIFICITY, ACCURACY)
"""Metrics that a summary compares; each is a separate family of tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningPair:
    """Comparison of two models; differences are left minus right."""

    compared: ModelPair
    decided: int  #: records that both decided
    agreement: Agreement  #: of the decisions, on the records that both decided
    dropped: int  #: records that one of them, or both, did not decide

    @property
    def tested(self) -> SignTest:
        """McNemar's test of correctness, on the records that both decided."""
        return self.compared.sign_test

    def metric(self, path: str) -> ComparedMetric | None:
        """Return one of `PAIRED`; None if either model lacks the metric."""
        return self.compared.metrics.get(path)


def pairs(
    views: Mapping[str, DecisionView],
    comparables: Mapping[str, Comparable],
    settings: ScreeningSettings,
) -> tuple[ScreeningPair, ...]:
    """Return every pair of models, in their order."""
    return tuple(
        _pair(pair, views[pair.left], views[pair.right])
        for pair in model_pairs(comparables, PAIRED, settings, ACCURACY)
    )


def _pair(pair: ModelPair, a: DecisionView, b: DecisionView) -> ScreeningPair:
    both = (a.call != UNDECIDED) & (b.call != UNDECIDED)
    table = np.bincount(2 * a.call[both] + b.call[both], minlength=4).reshape(2, 2)
    return ScreeningPair(
        compared=pair,
        decided=int(both.sum()),
        agreement=agreement_of(table.astype(np.float64)),
        dropped=int((~both).sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonAgreement:
    """Coded reasons of the review against those of the model, for true exclusions."""

    cells: Mapping[tuple[str, str], int]  #: by (review's, model's), sorted
    other: int  #: records whose reason is coded `other`, which is no information
    uncoded: int  #: records without a known reason

    @property
    def n(self) -> int:
        """Number of records compared."""
        return sum(self.cells.values())

    @property
    def agreed(self) -> int:
        """Records with the same reason."""
        return sum(n for (review, model), n in self.cells.items() if review == model)

    @property
    def right_exclusions(self) -> int:
        """Number of correct exclusions, compared or not."""
        return self.n + self.other + self.uncoded


REASONS: Mapping[str, ValueMeasure[ReasonAgreement]] = {
    "reasons.agreement": ValueMeasure(
        "Reason agreement",
        "Of the right exclusions with a coded reason, the share for which the model "
        "gives the review's reason",
        "higher",
        of=lambda coded: share(coded.agreed, coded.n),
        definition="reason agreement@1(same reason_code; own reason other or not "
        "known left out)",
    ),
    "reasons.other": ValueMeasure(
        "Exclusion reasons coded other",
        "Right exclusions whose reason in the review has the code other",
        of=lambda coded: count(coded.other, coded.right_exclusions),
        definition="count@1(own reason is coded other)",
    ),
    "reasons.uncoded": ValueMeasure(
        "Exclusions without a reason",
        "Right exclusions for which no reason of the review is known",
        of=lambda coded: count(coded.uncoded, coded.right_exclusions),
        definition="count@1(no reason is known)",
    ),
}


def reason_agreement(view: DecisionView) -> ReasonAgreement | None:
    """Return the reasons of a view; None if no true exclusion of the set has a code."""
    records, model_codes = view.records, view.decisions.reason_code
    if "true-excluded" not in records.kinds or not any(records.reason_code):
        return None
    kind = records.kinds.index("true-excluded")
    rows = ((records.kind == kind) & (view.call == 0)).nonzero()[0]
    cells: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    for at in rows.tolist():
        review_code = records.reason_code[at]
        if review_code in {OTHER, ""}:
            left_out[review_code] += 1
        else:
            cells[review_code, (model_codes[at] if model_codes else "") or OTHER] += 1
    return ReasonAgreement(
        cells=dict(sorted(cells.items())), other=left_out[OTHER], uncoded=left_out[""]
    )


_PAIR = 2

REPLICATES: Mapping[str, ValueMeasure[Ints]] = {
    "replicates.flip_rate": ValueMeasure(
        "Flip rate",
        "Share of records whose replicates do not all give one decision",
        "lower",
        of=lambda votes: share(
            int(((votes > 0).sum(axis=0) > 1).sum()), votes.shape[1]
        ),
        definition="flip rate@1(records whose replicates do not all say the same)",
    ),
    "replicates.fleiss_kappa": ValueMeasure(
        "Fleiss' kappa over replicates",
        "Agreement of a model's replicates with one another beyond chance",
        "higher",
        of=lambda votes: count(fleiss_kappa(votes.T), votes.shape[1]),
        definition="fleiss kappa@1(include, exclude, unclear)",
    ),
}
"""Measures of the number of replicates with each readable outcome."""


def self_agreement(replicates: Sequence[Decisions]) -> Iterator[Measurement]:
    """Yield flip rate and Fleiss' kappa of records with several readable replies."""
    if len(replicates) < _PAIR:
        return
    outcomes = np.stack([decisions.outcome for decisions in replicates])
    votes = np.stack([(outcomes == outcome).sum(axis=0) for outcome in READABLE])
    votes = votes[:, votes.sum(axis=0) >= _PAIR]
    yield from measured(REPLICATES, votes, subset="two readable replicates or more")


REPLIES: Mapping[str, ValueMeasure[Decisions]] = {
    "reply.{rule*}": ValueMeasure(
        "Replies noted as {rule}",
        "Replies in which the reader noted {rule}",
        of=lambda decisions: counts(
            dict(sorted(decisions.counts.items())), decisions.replies
        ),
        definition="count@1({rule})",
    ),
    "skip.{reason*}": ValueMeasure(
        "Skipped records, {reason}",
        "Records that were not screened, for the reason {reason}",
        of=lambda decisions: counts(
            dict(sorted(decisions.skip.items())), len(decisions.outcome)
        ),
        definition="count@1({reason})",
    ),
    "parse_failure_rate": ValueMeasure(
        "Unreadable replies",
        "Share of replies without a readable decision, over all stages and replicates",
        "lower",
        of=lambda decisions: share(
            sum(n for word, n in decisions.counts.items() if word.startswith("parse.")),
            decisions.replies,
        ),
        definition="parse failure rate@1(replies without a readable decision / "
        "replies, all stages and replicates)",
    ),
}
"""Counts of issues in replies, and of skip reasons."""


def caveats(
    dataset: ScreeningDataset, predictions: ScreeningPredictions
) -> Iterator[Finding]:
    """Yield caveats on the metrics, as findings."""
    unlabelled = int((~predictions.records.is_labelled).sum())
    has_truth = predictions.has_truth
    if not has_truth:
        has_records = dataset.validation_set is not None
        option = "--labels FILE" if has_records else "--validation-set DIR"
        yield no_truth(option, "labels")
    elif unlabelled:
        yield Finding(
            code="unlabelled_records",
            severity="info",
            where=LIMITS,
            message="Records have no label: screened and listed, left out of all "
            "metrics.",
            n=unlabelled,
        )
    predictions = predictions.measured
    kinds = predictions.records.kinds
    if "near-miss" in kinds:
        yield Finding(
            code="near_misses_unjudged",
            severity="info",
            where=LIMITS,
            message="Near misses are unjudged, not known to be ineligible: a model "
            f"that includes one may be right{_bounds(dataset)}.",
            n=int((predictions.records.kind == kinds.index("near-miss")).sum()),
        )
    has_set = dataset.validation_set is not None and not dataset.library
    if has_set and has_truth:
        yield Finding(
            code="drawn_ratio",
            severity="info",
            where=LIMITS,
            message="Negatives were sampled at an artificial ratio, on which "
            "precision, F1, NNR and WSS depend. For precision at other "
            "ratios, set prevalence.",
        )
    m = len(predictions.records.reviews)
    if m < FEW_CLUSTERS and has_truth:
        yield Finding(
            code="few_reviews",
            severity="info",
            where=LIMITS,
            message=f"There are fewer than {FEW_CLUSTERS} reviews, so that intervals "
            "by review are rough.",
            n=m,
        )
    for decisions in predictions.decisions:
        imputed = int(np.isnan(decisions.p).sum())
        if imputed:
            yield Finding(
                code="imputed",
                severity="info",
                where=decisions.model,
                message="Records without a p_include are ranked by their decision, "
                "or in the middle without one.",
                n=imputed,
            )


def _bounds(dataset: ScreeningDataset) -> str:
    """Describe the bounds on the share of eligible candidates, if known."""
    validation_set = dataset.validation_set
    shares = {} if validation_set is None else validation_set.contamination
    lower, upper = shares.get("lower"), shares.get("upper")
    if lower is None or upper is None:
        return (
            "; the number of eligible records is unknown, because no "
            "exclusions were given"
        )
    return (
        f". Of the candidates between {lower:.1%} (pending, or copies of an included "
        f"paper) and {upper:.1%} (all that are not known to be excluded) may be "
        "eligible"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningModelResults:
    """Results of one model, replicate or ensemble."""

    view: DecisionView
    strata: Mapping[str, Stratum]
    thresholds: ThresholdSweep
    reasons: ReasonAgreement | None
    further: tuple[Metric, ...]  #: metrics of no stratum

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics, each with a unique path; those of single kinds last."""
        whole, *kinds = self.strata.values()
        return (
            *whole.metrics,
            *self.further,
            *(metric for stratum in kinds for metric in stratum.metrics),
        )

    def by_path(self) -> Mapping[str, Metric]:
        """Return all metrics by path."""
        return {metric.path: metric for metric in self.metrics}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningResults:
    """Results of a scoring."""

    dataset: ScreeningDataset
    predictions: ScreeningPredictions  #: of all records
    frame: ScreeningFrame  #: input of the metrics
    columns: Mapping[str, ScreeningModelResults]  #: by model, then by ensemble
    replicates: tuple[ScreeningModelResults, ...]  #: single ones, if there are several
    findings: tuple[Finding, ...]
    pairs: tuple[ScreeningPair, ...] = ()  #: only a scorecard compares models

    @property
    def has_truth(self) -> bool:
        """Whether any record has a known label."""
        return self.frame.has_truth


def measure_decisions(
    dataset: ScreeningDataset, predictions: ScreeningPredictions
) -> ScreeningResults:
    """Measure every model and ensemble on the records that have a label."""
    frame = ScreeningFrame.of(dataset.settings, predictions)
    columns, replicates = measure_frame(frame)
    return ScreeningResults(
        dataset=dataset,
        predictions=predictions,
        frame=frame,
        columns=columns,
        replicates=replicates,
        findings=tuple(caveats(dataset, predictions)),
    )


def measure_frame(
    frame: ScreeningFrame,
) -> tuple[Mapping[str, ScreeningModelResults], tuple[ScreeningModelResults, ...]]:
    """Measure every model and ensemble, and single replicates, from arrays only."""
    records, settings = frame.records, frame.settings
    draws = Resamples(
        records.reviews,
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="review",
        form=settings.interval,
    )
    rank = text_rank(records)
    of = partial(_measure_model, frame=frame, draws=draws)
    views = {
        decisions.model: DecisionView(records, decisions, settings, rank)
        for decisions in frame.decisions
    }
    singles = [
        DecisionView(records, decisions, settings, rank)
        for decisions in frame.replicates
    ]
    return (
        {name: of(view) for name, view in views.items()},
        tuple(of(view) for view in singles),
    )


def _measure_model(
    view: DecisionView, frame: ScreeningFrame, draws: Resamples
) -> ScreeningModelResults:
    measured_strata = {
        name: measure_stratum(view, name, rows, draws)
        for name, rows in strata(frame.records).items()
    }
    decisions = view.decisions
    chosen, coded = sweep_thresholds(view), reason_agreement(view)
    replicates = (
        [
            replicate
            for replicate in frame.replicates
            if replicate.model == decisions.model
        ]
        if decisions.replicate is None
        else []
    )
    further = (
        *kind_gaps(measured_strata),
        *implied_contamination(measured_strata),
        *chosen.measurements(),
        *(
            ()
            if coded is None
            else measured(
                REASONS, coded, subset="true exclusions that the model excluded"
            )
        ),
        *self_agreement(replicates),
        *measured(REPLIES, decisions, subset="all"),
    )
    return ScreeningModelResults(
        view=view,
        strata=measured_strata,
        thresholds=chosen,
        reasons=coded,
        further=tuple(with_intervals(further, draws)),
    )


CHANCE = "chance, with the model's share of inclusions"


def trivial_baselines(column: ScreeningModelResults) -> Iterator[TrivialBaseline]:
    """Yield baselines over the decided records, and of a random order."""
    cells = column.strata["all"].counts.decided
    tp, fp, tn, fn = cells.pooled()
    n, positives = tp + fp + tn + fn, tp + fn
    included = ratio(tp + fp, n)
    prevalence = ratio(positives, n)
    if included is None or prevalence is None:
        return
    majority = max(prevalence, 1 - prevalence)
    always = "exclude" if prevalence <= 1 - prevalence else "include"
    whole = "decided records"
    for word, key, name, value, formula in (
        ("sensitivity", "random", CHANCE, included, f"included / {whole}"),
        ("specificity", "random", CHANCE, 1 - included, f"excluded / {whole}"),
        ("precision", "random", "chance", prevalence, f"included papers / {whole}"),
        (
            "accuracy",
            "majority",
            f"always {always}",
            majority,
            f"records of the larger class / {whole}",
        ),
        (
            "f1",
            "include_all",
            "always include",
            2 * prevalence / (1 + prevalence),
            "2 q / (1 + q), q = the share of included papers",
        ),
    ):
        yield TrivialBaseline(
            of=f"all.micro.{word}",
            key=key,
            name=name,
            value=value,
            n=n,
            formula=formula,
        )
    reviews = int((cells.n > 0).sum())
    for word, value, formula in (
        ("auroc", 0.5, "any order"),
        ("wss95", 0.0, "recall rises with the records read"),
    ):
        yield TrivialBaseline(
            of=f"all.macro.{word}",
            key="random",
            name="a random order",
            value=value,
            n=reviews,
            formula=formula,
        )
