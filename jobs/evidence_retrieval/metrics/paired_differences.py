"""Compares models, lists and configurations on the queries that both sides cover."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import (
    PostBootstrap,
    Quotient,
    RetrievalMeasure,
    Sampled,
)
from jobs.evidence_retrieval.metrics.breakdowns import by_fold, with_folds
from jobs.evidence_retrieval.metrics.judged_predictions import (
    GateScores,
    JudgedPredictions,
)
from jobs.evidence_retrieval.metrics.retrieval import measures, ranking
from jobs.evidence_retrieval.queries import Queries
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.comparison.difference import SideVerdict, p_values
from jobs.kit.comparison.pairing import PairedItems, pair_items
from jobs.kit.metrics.agreement import agreement
from jobs.kit.metrics.classification import at_threshold
from jobs.kit.metrics.columns import Column, Floats, Ints, mean
from jobs.kit.metrics.intervals import Interval, round12
from jobs.kit.metrics.significance import holm
from jobs.kit.score import NO_LABEL, ItemFrame, ItemMetric
from jobs.kit.text_format import fixed
from runner.scorecard import ItemValues, Metric

OF_THE_GATE = (
    "auroc",
    "auprc",
    "ece",
    "brier",
    "screening_sensitivity",
    "alert_precision",
)
ACCURACY = "at_tau.accuracy"
CURVES: tuple[Literal["auroc"], Literal["auprc"]] = ("auroc", "auprc")

DECISIONS = ("none", "evidence")
"""By the decision, False or True."""

LOWER_IS_BETTER = frozenset({"ece", "brier", "k.mean", "k_nominal.mean"})

GATE_FAMILY = "gate measures"
RANKING_FAMILY = "ranking measures"
"""What Holm corrects together; `compare` does so too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """One measure of the left side minus the right side's."""

    family: str  #: the tests that are corrected together
    left: str
    right: str
    metric: str
    left_value: float | None
    right_value: float | None
    n: int  #: queries of both
    subset: str
    left_only: int = 0  #: queries that only the left side has
    right_only: int = 0
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    test: str = ""
    note: str = ""
    verdict: SideVerdict = "undecided"  #: on the left side
    clusters: int = 0  #: posts that the compared queries are part of
    pair: tuple[Sampled, Sampled] | None = field(default=None, repr=False)
    paired: PairedItems | None = field(default=None, repr=False)
    """Right and left query by query; None: there is no test."""

    @property
    def value(self) -> float | None:
        """The difference."""
        if self.left_value is None or self.right_value is None:
            return None
        return self.left_value - self.right_value

    @property
    def is_equal(self) -> bool:
        """Whether nothing changed."""
        return self.value == 0


def tested_differences(
    gaps: Sequence[PairedDifference], draws: PostBootstrap
) -> tuple[PairedDifference, ...]:
    """The gaps with intervals, tests, Holm's correction in each family and verdicts."""
    intervals = iter(draws.differences([gap.pair for gap in gaps if gap.pair]))
    tested = [
        _tested(replace(gap, interval=next(intervals)) if gap.pair else gap, draws)
        for gap in gaps
    ]
    for family in dict.fromkeys(gap.family for gap in tested):
        family_indices = [i for i, gap in enumerate(tested) if gap.family == family]
        for i, p in zip(
            family_indices, holm([tested[i].p for i in family_indices]), strict=True
        ):
            p_holm = None if p is None else round12(p)
            word = draws.rule.verdict(
                tested[i].interval,
                p_holm,
                tested[i].clusters,
                lower_is_better=tested[i].metric in LOWER_IS_BETTER,
            )
            tested[i] = replace(tested[i], p_holm=p_holm, verdict=word)
    return tuple(tested)


def _tested(gap: PairedDifference, draws: PostBootstrap) -> PairedDifference:
    if gap.paired is None:
        return gap
    clusters = gap.paired.overlap.clusters
    tests = p_values(gap.paired, draws.seed, draws.by_post)
    gap = replace(gap, clusters=clusters, paired=None)
    if tests.independent is not None:
        independent_note = f"{tests.independent.name}, if queries were independent: p "
        independent_note += f"{tests.independent.p:.12g}"
        gap = replace(gap, note="; ".join(filter(None, (independent_note, gap.note))))
    if tests.primary is None:
        return gap
    return replace(gap, p=tests.primary.p, test=tests.primary.name)


def paired_difference(
    sides: tuple[str, str],
    left: RetrievalMeasure,
    right: RetrievalMeasure,
    queries: Queries,
    family: str,
) -> PairedDifference:
    """A difference of two measures, over the rows that both have.

    Means over queries are compared query by query; other measures must speak of the
    same rows already.
    """
    one, other = left.sampled, right.sampled
    base = PairedDifference(
        family=family,
        left=sides[0],
        right=sides[1],
        metric=left.path,
        left_value=left.value,
        right_value=right.value,
        n=left.n,
        subset=left.subset,
    )
    if not isinstance(one, Quotient) or not isinstance(other, Quotient):
        return replace(base, pair=None if not (one and other) else (one, other))
    if one.below is not None or other.below is not None:
        return replace(base, pair=(one, other), paired=_paired(queries, one, other))
    rows, at, of = np.intersect1d(one.rows, other.rows, return_indices=True)
    a, b = one.above[at].astype(np.float64), other.above[of].astype(np.float64)
    is_whole = len(rows) == len(one.rows) == len(other.rows)
    return replace(
        base,
        n=len(rows),
        left_value=left.value if is_whole else mean(a.tolist()),
        right_value=right.value if is_whole else mean(b.tolist()),
        left_only=len(one.rows) - len(rows),
        right_only=len(other.rows) - len(rows),
        pair=(
            Quotient(rows=rows, above=a, range=one.range),
            Quotient(rows=rows, above=b, range=other.range),
        ),
        paired=_paired(queries, one, other),
    )


def _paired(queries: Queries, left: Quotient, right: Quotient) -> PairedItems:
    """Two sums over queries, by query."""
    # a comparison is B minus A
    return pair_items(_items(queries, right), _items(queries, left))


def _items(queries: Queries, side: Quotient) -> ItemValues:
    below = None if side.below is None else np.asarray(side.below, dtype=np.float64)
    return ItemValues(
        kind="mean" if below is None else "ratio",
        items=[f"{row:09}" for row in side.rows.tolist()],
        clusters=_posts(queries, side.rows),
        cluster="post",
        first=np.asarray(side.above, dtype=np.float64).tolist(),
        second=None if below is None else below.tolist(),
        definition="",
    )


def on_judged(block: JudgedPredictions, rows: Ints, column: Column) -> Floats:
    """A column of some queries at each judged query; NaN at all others."""
    values = np.full(len(block.queries), np.nan)
    values[rows] = column
    return values[block.judged]


def judged_queries(block: JudgedPredictions) -> ItemFrame:
    """The judged queries with the gate's score, and its decision at tau.

    Only a probability is a decision.
    """
    queries, gated = block.queries, block.gated
    rows = np.flatnonzero(block.judged).tolist()
    score = np.full(len(rows), np.nan)
    label = np.full(len(rows), NO_LABEL)
    if gated is not None:
        score = on_judged(block, gated.rows, gated.p)
    if gated is not None and gated.is_probability:
        label = np.where(np.isnan(score), NO_LABEL, score >= block.settings.tau)
    posts = _posts(queries, np.flatnonzero(block.judged))
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


def _in_sheet_order(block: JudgedPredictions) -> ItemFrame:
    """The judged queries with keys that sort as the rows of the sheet do."""
    rows = np.flatnonzero(block.judged).tolist()
    return replace(judged_queries(block), key=lambda at: f"{rows[at]:09}")


def _scores(block: JudgedPredictions, curve: Literal["auroc", "auprc"]) -> ItemValues:
    """Truth and score of every judged query."""
    return ItemMetric(curve, _in_sheet_order, curve).values(block, "")


def _posts(queries: Queries, rows: Ints) -> list[str]:
    return [queries.posts[i] for i in queries.post[rows].tolist()]


def ranking_names(settings: EvidenceSettings) -> tuple[str, ...]:
    """The ranking measures that are compared: at 10, or at the largest cut-off."""
    k = 10 if 10 in settings.k_values else max(settings.k_values)  # noqa: PLR2004
    return (f"recall@{k}", f"ndcg@{k}", "mrr", f"map@{k}", f"hit@{k}")


def between_lists(block: JudgedPredictions) -> Iterator[PairedDifference]:
    """Every later list of a model against every earlier one."""
    by_list = {
        name: {m.path: m for m in ranking(ranked)}
        for name, ranked in block.lists.items()
    }
    model = block.prediction.model
    for earlier, later in itertools.combinations(by_list, 2):
        for path in ranking_names(block.settings):
            yield paired_difference(
                (f"{model}: {later}", f"{model}: {earlier}"),
                by_list[later][path],
                by_list[earlier][path],
                block.queries,
                f"lists of {model}, ranking measures",
            )


def between_models(
    blocks: Mapping[str, JudgedPredictions],
) -> Iterator[PairedDifference]:
    """Every two models, on the queries that both have answered."""
    for left, right in itertools.combinations(blocks, 2):
        sides, pair = (left, right), (blocks[left], blocks[right])
        yield from _gate_gaps(sides, *pair)
        lists = pair[0].final, pair[1].final
        if lists[0] is not None and lists[1] is not None:
            by_side = [
                {m.path: m for m in ranking(ranked)} for ranked in lists if ranked
            ]
            for path in ranking_names(pair[0].settings):
                yield paired_difference(
                    sides,
                    by_side[0][path],
                    by_side[1][path],
                    pair[0].queries,
                    f"models, {RANKING_FAMILY}",
                )


def _gate_gaps(
    sides: tuple[str, str], left: JudgedPredictions, right: JudgedPredictions
) -> Iterator[PairedDifference]:
    if left.gated is None or right.gated is None:
        return
    common = np.zeros(len(left.queries), dtype=np.bool_)
    common[np.intersect1d(left.gated.rows, right.gated.rows)] = True
    n = int(common.sum())
    dropped = partial(
        replace,
        left_only=len(left.gated.rows) - n,
        right_only=len(right.gated.rows) - n,
    )
    one, other = left.within(common), right.within(common)
    by_side = [{m.path: m for m in measures(block)} for block in (one, other)]
    for path in OF_THE_GATE:
        if path in by_side[0] and path in by_side[1]:
            both = by_side[0][path], by_side[1][path]
            difference = paired_difference(
                sides, *both, left.queries, f"models, {GATE_FAMILY}"
            )
            yield with_areas(dropped(difference), one, other)
    a, b = one.gated, other.gated
    if a and b and a.is_probability and b.is_probability:
        yield dropped(_accuracy(sides, a, b, left.queries, left.settings))


def with_areas(
    difference: PairedDifference, left: JudgedPredictions, right: JudgedPredictions
) -> PairedDifference:
    """A difference of areas with what its test takes; other differences as they are."""
    if left.gated is None or right.gated is None:
        return difference
    if not np.array_equal(left.gated.rows, right.gated.rows):
        return difference
    for curve in CURVES:
        if curve == difference.metric:
            paired = pair_items(_scores(right, curve), _scores(left, curve))
            return replace(difference, paired=paired)
    return difference


def _accuracy(
    sides: tuple[str, str],
    left: GateScores,
    right: GateScores,
    queries: Queries,
    settings: EvidenceSettings,
) -> PairedDifference:
    """How often the decisions at tau are right, and how often they agree.

    Args:
        sides: names of both.
        left: decisions of one model.
        right: of another, on the same rows.
        queries: of the sheet.
        settings: of the job.
    """
    decisions = [at_threshold(side.p, settings.tau) for side in (left, right)]
    good = [h == left.y for h in decisions]
    b, c = int((good[0] & ~good[1]).sum()), int((good[1] & ~good[0]).sum())
    kappa = agreement(decisions[0].tolist(), decisions[1].tolist(), (False, True)).kappa
    kappa_text = fixed(kappa, ".12g")
    n = len(left.rows)
    both = (
        Quotient(rows=left.rows, above=good[0]),
        Quotient(rows=right.rows, above=good[1]),
    )
    return PairedDifference(
        family=f"models, {GATE_FAMILY}",
        left=sides[0],
        right=sides[1],
        metric=ACCURACY,
        left_value=int(good[0].sum()) / n if n else None,
        right_value=int(good[1].sum()) / n if n else None,
        n=n,
        subset="scored",
        pair=both,
        paired=_paired(queries, *both),
        note=f"b={b}, c={c}; kappa of the decisions {kappa_text}",
    )


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
"""Without the cut-off of evidence measures, which says how K came about."""

WITHOUT = "undefined: the configuration has no such stage"


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationStep:
    """One measure of one configuration, and its difference to the one before."""

    model: str
    config: str
    metric: Metric
    gap: PairedDifference | None = (
        None  #: None: the first configuration, or nothing to compare
    )

    @property
    def is_measured(self) -> bool:
        """Whether the configuration has such a stage at all."""
        return self.metric.definition != WITHOUT


def steps(
    blocks: Sequence[JudgedPredictions], draws: PostBootstrap
) -> tuple[AblationStep, ...]:
    """The rows of the table of one model, its configurations in order."""
    rows: list[tuple[JudgedPredictions, str, Metric]] = []
    gaps: dict[int, PairedDifference] = {}
    before: Mapping[str, RetrievalMeasure] = {}
    for earlier, block in zip([None, *blocks], blocks, strict=False):
        by_stem = _by_stem(block)
        metrics = draws.metrics([m for m in by_stem.values() if m is not None])
        metrics = with_folds(metrics, by_fold(block), block.settings.ddof)
        by_path = {metric.path: metric for metric in metrics}
        for stem, measure in by_stem.items():
            row = _undefined(stem) if measure is None else by_path[measure.path]
            previous = before.get(stem)
            if earlier and measure is not None and previous is not None:
                difference = _gap(block, measure, previous, stem)
                gaps[len(rows)] = with_areas(difference, block, earlier)
            rows.append((block, stem, row))
        before = {stem: m for stem, m in by_stem.items() if m is not None}
    tested = dict(
        zip(gaps, tested_differences(list(gaps.values()), draws), strict=True)
    )
    return tuple(
        AblationStep(
            model=block.prediction.model,
            config=block.prediction.config,
            metric=row,
            gap=tested.get(i),
        )
        for i, (block, _, row) in enumerate(rows)
    )


def _by_stem(block: JudgedPredictions) -> dict[str, RetrievalMeasure | None]:
    by_path = {m.path: m for m in measures(block)}
    stems = {path.partition("@")[0]: m for path, m in by_path.items()}
    return {
        stem: by_path.get(stem) if "@" in stem or "." in stem else stems.get(stem)
        for stem in STEMS
    }


def _undefined(stem: str) -> Metric:
    """What a configuration has not: shown as n/a, never as 0."""
    return Metric(path=stem, value=None, n=0, definition=WITHOUT)


def _gap(
    block: JudgedPredictions,
    measure: RetrievalMeasure,
    previous: RetrievalMeasure,
    stem: str,
) -> PairedDifference:
    difference = paired_difference(
        (block.prediction.config, "the one before"),
        measure,
        previous,
        block.queries,
        f"{block.prediction.model}: {stem} over the configurations",
    )
    if measure.n == previous.n:
        return difference
    return replace(difference, note=f"the one before speaks of {previous.n} queries")
