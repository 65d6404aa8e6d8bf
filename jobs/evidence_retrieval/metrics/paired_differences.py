"""Compares models, lists and configurations on the queries that both sides cover.

Items, intervals, tests, Holm's correction and verdicts are those of the kit, so that a
pair of models has the same p here and in `siftlog compare`. Metrics without a value per
query (`ece`, `sentences_extracted`) have a difference and no test. `auroc` and `auprc`
of configurations that cover different queries have no test either: each covers
different queries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import PostBootstrap
from jobs.evidence_retrieval.metrics.breakdowns import by_fold, with_folds
from jobs.evidence_retrieval.metrics.gate import CALIBRATION, ScoredQueries
from jobs.evidence_retrieval.metrics.judged_predictions import (
    POSITIVE,
    SCORED_QUERIES,
    JudgedPredictions,
)
from jobs.evidence_retrieval.metrics.retrieval import measures
from jobs.evidence_retrieval.metrics.states import state_shares
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.comparison.difference import ComparedMetric, Gap, PValues
from jobs.kit.comparison.models import compared_pairs
from jobs.kit.comparison.pairing import Overlap, label_agreement
from jobs.kit.measurements import MeasuredValue, Measurement
from jobs.kit.metrics.cluster_statistics import Ratio, ResampledStatistic
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.intervals import Interval
from jobs.kit.score import NO_LABEL, ItemFrame, ItemMetric
from jobs.kit.text_format import fixed
from runner.scorecard import Comparable, Metric

ACCURACY = "at_tau.accuracy"
CURVES: tuple[Literal["auroc"], Literal["auprc"]] = ("auroc", "auprc")

DECISIONS = ("none", "evidence")
"""By decision, False or True."""

GATE_FAMILY = "gate measures"
RANKING_FAMILY = "ranking measures"
"""Families that Holm's correction covers; the same in `compare`."""

OF_THE_GATE = (
    "auroc",
    "auprc",
    "ece",
    "brier",
    "screening_sensitivity",
    "alert_precision",
    ACCURACY,
)


def on_judged(block: JudgedPredictions, rows: Ints, column: Floats | Bools) -> Floats:
    """Return a column of some queries at each judged query; NaN at all others."""
    values = np.full(len(block.queries), np.nan)
    values[rows] = column
    return values[block.judged]


def judged_queries(block: JudgedPredictions) -> ItemFrame:
    """Return the judged queries with the gate's score, and its decision at tau.

    Only a probability is a decision. Queries that a metric leaves out are included,
    since their posts are drawn too.
    """
    queries, gated = block.queries, block.gated
    rows = np.flatnonzero(block.judged).tolist()
    score = np.full(len(rows), np.nan)
    label = np.full(len(rows), NO_LABEL)
    if gated is not None:
        score = on_judged(block, gated.rows, gated.p)
    if gated is not None and gated.is_probability:
        label = np.where(np.isnan(score), NO_LABEL, score >= block.settings.tau)
    posts = [queries.posts[i] for i in queries.post[rows].tolist()]
    return ItemFrame(
        size=len(rows),
        key=lambda at: queries.key(rows[at]),
        cluster_of=posts.__getitem__,
        cluster="post",
        truth=queries.y[block.judged],
        label=label,
        score=score,
        categories=DECISIONS,
    )


def ranking_names(settings: EvidenceSettings) -> tuple[str, ...]:
    """Return the compared ranking measures: at 10, or at the largest cut-off."""
    k = 10 if 10 in settings.k_values else max(settings.k_values)  # noqa: PLR2004
    return (f"recall@{k}", f"ndcg@{k}", "mrr", f"map@{k}", f"hit@{k}")


QueryValues: TypeAlias = tuple[Ints, Floats | Bools, Bools | None]
"""Queries, numerators of a mean or a ratio, and denominators, if any."""


def query_values(block: JudgedPredictions) -> Mapping[str, QueryValues]:
    """Return the values by query of metrics that are means or ratios."""
    values: dict[str, QueryValues] = {}
    gated, final, chosen, stated = block.gated, block.final, block.chosen, block.stated
    if gated is not None and gated.is_probability:
        values["brier"] = gated.rows, (gated.p - gated.y) ** 2, None
    if final is not None:
        for path in ranking_names(block.settings):
            values[path] = final.rows, final.values[path], None
    if chosen is not None:
        values["k.mean"] = chosen.rows, chosen.k.astype(np.float64), None
        values["k_nominal.mean"] = chosen.rows, chosen.nominal.astype(np.float64), None
        if chosen.k_listed is not None and len(chosen.evidence_rows):
            rows, at = chosen.evidence_rows, chosen.rule
            values[f"evidence_recall@{at}"] = rows, chosen.recall, None
            values[f"evidence_precision@{at}"] = rows, chosen.precision, None
    if stated is not None:
        for path, shares in state_shares(stated).items():
            values[path] = stated.rows, *shares
    return values


def _column(path: str, block: JudgedPredictions) -> Floats | Ratio:
    """Return the value of each judged query; NaN if the metric leaves it out."""
    rows, above, below = query_values(block)[path]
    column = on_judged(block, rows, above)
    return column if below is None else Ratio(column, on_judged(block, rows, below))


LOWER_IS_BETTER = frozenset({"ece", "brier", "k.mean", "k_nominal.mean"})


def item_metric(
    path: str,
    settings: EvidenceSettings,
    family: str | None = None,
    items: Callable[[JudgedPredictions], ItemFrame] = judged_queries,
) -> ItemMetric[JudgedPredictions]:
    """Return the comparison of a metric, query by query.

    Args:
        path: path of the metric.
        settings: settings of the job.
        family: family for Holm's correction; None: as in `compare`.
        items: builds the frame of the queries.
    """
    if family is None:
        family = RANKING_FAMILY if path in ranking_names(settings) else ""
        family = GATE_FAMILY if path in OF_THE_GATE else family
    for of in CURVES:
        if path == of:
            return ItemMetric(path, items, of, family=family)
    if path == ACCURACY:
        return ItemMetric(path, items, family=family)
    return ItemMetric(
        path,
        items,
        partial(_column, path),
        family=family,
        lower_is_better=path in LOWER_IS_BETTER,
    )


def _makers(
    block: JudgedPredictions, paths: Iterable[str], frame: ItemFrame
) -> Comparable:
    """Return functions that compute query values, for any parameters of metrics.

    Args:
        block: block of the model.
        paths: paths of the metrics.
        frame: frame of the block, shared by all metrics.
    """

    def items(_: JudgedPredictions) -> ItemFrame:
        return frame

    return {
        path: partial(
            item_metric(path, block.settings, items=items).values, block, path
        )
        for path in paths
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """One measure of the left side minus the right side's."""

    left: str
    right: str
    family: str  #: tests that are corrected together
    metric: ComparedMetric
    subset: str
    sizes: tuple[int, int]  #: number of queries of the metric on each side
    detail: str = ""

    @property
    def value(self) -> float | None:
        """Difference of the two reported values."""
        left, right = self.metric.gap.b, self.metric.gap.a
        return None if left is None or right is None else left - right

    @property
    def interval(self) -> Interval:
        """Paired interval of the difference."""
        return self.metric.gap.interval

    @property
    def dropped(self) -> tuple[int, int]:
        """Number of queries that only the left side has, and only the right side."""
        left, right = self.sizes
        return left - self.metric.overlap.n, right - self.metric.overlap.n

    @property
    def note(self) -> str:
        """Test that assumes independent queries, and further remarks."""
        test = self.metric.p_values.independent
        words = ""
        if test is not None:
            words = f"{test.name}, if queries were independent: p {test.p:.12g}"
        return "; ".join(filter(None, (words, self.detail)))


def _untested(
    path: str, left: MeasuredValue, right: MeasuredValue, draws: PostBootstrap
) -> ComparedMetric:
    """Return a metric without values per query, left minus right."""
    is_lower = path in LOWER_IS_BETTER
    a, b = left.statistic, right.statistic
    interval = Interval(lo=None, hi=None)
    if isinstance(a, ResampledStatistic) and isinstance(b, ResampledStatistic):
        interval = draws.by_post.interval_of(a.minus(b))
    return ComparedMetric(
        path=path,
        definition=path,
        cluster="post",
        lower_is_better=is_lower,
        overlap=Overlap(n=left.n, clusters=0, only_a=0, only_b=0, undefined=0),
        gap=Gap(a=right.value, b=left.value, value=None, interval=interval),
        outcomes=None,
        p_values=PValues(),
        agreement=None,
        verdict=draws.rule.verdict(interval, None, 0, lower_is_better=is_lower),
    )


def between_lists(block: JudgedPredictions) -> Iterator[PairedDifference]:
    """Yield comparisons of every later list of a model with every earlier one."""
    model, paths = block.prediction.model, ranking_names(block.settings)
    sizes, makers = {}, {}
    frame = judged_queries(block)
    for name, ranked in block.lists.items():
        side = f"{model}: {name}"
        prediction = replace(block.prediction, final=name)
        sizes[side] = len(ranked.rows)
        makers[side] = _makers(replace(block, prediction=prediction), paths, frame)
    pairs = [(later, earlier) for earlier, later in itertools.combinations(makers, 2)]
    for match in compared_pairs(makers, pairs, block.settings):
        left, right = match.b.model, match.a.model
        for metric in match.compared:
            yield PairedDifference(
                left=left,
                right=right,
                family=f"lists of {model}, {RANKING_FAMILY}",
                metric=metric,
                subset=POSITIVE,
                sizes=(sizes[left], sizes[right]),
            )


def between_models(
    blocks: Mapping[str, JudgedPredictions],
    settings: EvidenceSettings,
    draws: PostBootstrap,
) -> Iterator[PairedDifference]:
    """Yield comparisons of every two models, on the queries that both answered."""
    makers = {
        model: _makers(block, _compared_paths(block), judged_queries(block))
        for model, block in blocks.items()
    }
    pairs = itertools.combinations(blocks, 2)
    for match in compared_pairs(makers, pairs, settings):
        left, right = blocks[match.b.model], blocks[match.a.model]
        row = partial(PairedDifference, left=match.b.model, right=match.a.model)
        metrics = {metric.path: metric for metric in match.compared}
        if left.gated is not None and right.gated is not None:
            metrics |= _ece(left, right, draws)
            for path in OF_THE_GATE:
                if path in metrics:
                    yield row(
                        family=f"models, {GATE_FAMILY}",
                        metric=metrics[path],
                        subset=SCORED_QUERIES,
                        sizes=(len(left.gated.rows), len(right.gated.rows)),
                        detail=_decisions(left, right, metrics[path]),
                    )
        if left.final is not None and right.final is not None:
            for path in ranking_names(settings):
                yield row(
                    family=f"models, {RANKING_FAMILY}",
                    metric=metrics[path],
                    subset=POSITIVE,
                    sizes=(len(left.final.rows), len(right.final.rows)),
                )


def _compared_paths(block: JudgedPredictions) -> Iterator[str]:
    """Yield the compared metrics of a model: of its gate, and of its list."""
    if block.gated is not None:
        yield from CURVES
        yield from (path for path in query_values(block) if path in OF_THE_GATE)
        if block.gated.is_probability:
            yield ACCURACY
    if block.final is not None:
        yield from ranking_names(block.settings)


def _ece(
    left: JudgedPredictions, right: JudgedPredictions, draws: PostBootstrap
) -> Iterator[tuple[str, ComparedMetric]]:
    """Yield the calibration errors over queries with a probability on both sides."""
    one, other = left.gated, right.gated
    if not (one and other and one.is_probability and other.is_probability):
        return
    common = np.zeros(len(left.queries), dtype=np.bool_)
    common[np.intersect1d(one.rows, other.rows)] = True
    values = [
        CALIBRATION["ece"].values(
            ScoredQueries(
                gated=gated.within(common),
                settings=left.settings,
                clusters=draws.clusters,
            )
        )[""]
        for gated in (one, other)
    ]
    yield "ece", _untested("ece", values[0], values[1], draws)


def _decisions(
    left: JudgedPredictions, right: JudgedPredictions, metric: ComparedMetric
) -> str:
    """Describe decisions at tau that are right on one side only, and the agreement."""
    if metric.path != ACCURACY or metric.outcomes is None:
        return ""
    labels = (judged_queries(block).labels("decision") for block in (left, right))
    match = label_agreement(*labels)
    kappa = None if match is None else match.agreement.kappa
    won = metric.outcomes
    kappa_text = fixed(kappa, ".12g")
    return f"b={won.wins}, c={won.losses}; kappa of the decisions {kappa_text}"


STEMS = (
    "ndcg@10",
    "auroc",
    "evidence_recall",
    "evidence_precision",
    "k.mean",
    "k_nominal.mean",
    "sentences_extracted",
    "alert_precision",
)
"""Metrics without the cut-off of evidence measures, which depends on the choice of
K."""

WITHOUT = "undefined: the configuration has no such stage"


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationStep:
    """One measure of one configuration, and its change from the previous one."""

    model: str
    config: str
    metric: Metric
    gap: PairedDifference | None = (
        None  #: None: the first configuration, or nothing to compare
    )

    @property
    def is_measured(self) -> bool:
        """Whether the configuration has such a stage."""
        return self.metric.definition != WITHOUT


def steps(
    blocks: Sequence[JudgedPredictions], draws: PostBootstrap
) -> Iterator[AblationStep]:
    """Yield the rows of the table of one model, its configurations in order.

    There are none for a single configuration.
    """
    if len(blocks) == 1:
        return
    by_config = {block.prediction.config: block for block in blocks}
    by_stem = {name: _by_stem(block, draws) for name, block in by_config.items()}
    settings = blocks[0].settings
    matches = compared_pairs(
        {name: _step_makers(by_config[name], by_stem[name]) for name in by_config},
        [(config, before) for before, config in itertools.pairwise(by_config)],
        settings,
    )
    compared = {
        match.b.model: {metric.path: metric for metric in match.compared}
        for match in matches
    }
    before: Mapping[str, Measurement] = {}
    for name, block in by_config.items():
        measurements = by_stem[name]
        pooled = draws.metrics(measurements.values())
        metrics = with_folds(pooled, by_fold(block), settings.ddof)
        by_path = {metric.path: metric for metric in metrics}
        for stem in STEMS:
            gap = None
            if stem in measurements and stem in before:
                pair = measurements[stem], before[stem]
                metric = compared[name].get(stem)
                gap = _step(block, stem, pair, metric, draws)
            yield AblationStep(
                model=block.prediction.model,
                config=name,
                metric=by_path[measurements[stem].path]
                if stem in measurements
                # n/a, never 0
                else Metric(path=stem, value=None, n=0, definition=WITHOUT),
                gap=gap,
            )
        before = measurements


def _by_stem(
    block: JudgedPredictions, draws: PostBootstrap
) -> Mapping[str, Measurement]:
    by_path = {m.path: m for m in measures(block, draws.clusters)}
    stems = {path.partition("@")[0]: m for path, m in by_path.items()}
    by_name = {
        stem: by_path.get(stem) if "@" in stem or "." in stem else stems.get(stem)
        for stem in STEMS
    }
    return {stem: one for stem, one in by_name.items() if one is not None}


def _step_makers(
    block: JudgedPredictions, measurements: Mapping[str, Measurement]
) -> Comparable:
    """Return functions that compute query values by stem, each a family of tests."""
    with_values = {*CURVES, *query_values(block)}
    return {
        stem: partial(item_metric(one.path, block.settings, stem).values, block, stem)
        for stem, one in measurements.items()
        if one.path in with_values
    }


def _step(
    block: JudgedPredictions,
    stem: str,
    pair: tuple[Measurement, Measurement],
    metric: ComparedMetric | None,
    draws: PostBootstrap,
) -> PairedDifference:
    left, right = pair
    sizes = left.measured.n, right.measured.n
    # areas over different queries are not compared by query
    if metric is None or (stem in CURVES and sizes[0] != sizes[1]):
        metric = _untested(stem, left.measured, right.measured, draws)
    return PairedDifference(
        left=block.prediction.config,
        right="the one before",
        family=f"{block.prediction.model}: {stem} over the configurations",
        metric=metric,
        subset=left.subset,
        sizes=sizes,
        detail=""
        if sizes[0] == sizes[1]
        else f"the one before speaks of {sizes[1]} queries",
    )
