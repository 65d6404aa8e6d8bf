"""Measures the ranking, the sentences shown and the three states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import (
    POSITIVE,
    PostBootstrap,
    Quotient,
    RetrievalMeasure,
    count,
    empty_rate,
)
from jobs.evidence_retrieval.metrics.gate import (
    INDEPENDENT,
    calibration,
    points,
    separation,
)
from jobs.evidence_retrieval.metrics.judged_predictions import (
    STATED,
    GateScores,
    GateStates,
    JudgedPredictions,
    MeasuredLists,
    SelectedSentences,
    choose,
    recomputed,
)
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.cluster_statistics import NOT_NEGATIVE, PER_THOUSAND
from jobs.kit.metrics.columns import (
    Bools,
    Floats,
    Ints,
    aggregate,
    mean,
    quantiles,
    ratio,
)
from jobs.kit.metrics.intervals import wilson
from jobs.kit.metrics.selective import NEG, POS, STATES, UNCERTAIN, gate_metrics
from runner.scorecard import Metric

AS_STATED = "as given in the file; not recomputable"

STATED_PATHS: Mapping[str, str] = {
    "evidence_recall_at_k": "evidence_recall@K",
    "evidence_precision_at_k": "evidence_precision@K",
    "mrr": "mrr",
}
"""Columns of per-query files, and the measures that they state."""

SPREADS = ("std", "median", "p25", "p75")


def ranking(ranked: MeasuredLists) -> Iterator[RetrievalMeasure]:
    """Means of a list's measures over queries with evidence."""
    n = len(ranked.rows)
    for name, column in ranked.values.items():
        yield RetrievalMeasure(
            path=name,
            value=mean(column.tolist()),
            n=n,
            n_defined=n,
            subset=POSITIVE,
            definition=_ranking_definition(name, ranked),
            sampled=Quotient(rows=ranked.rows, above=column),
        )
    yield RetrievalMeasure(
        path="gold_absent",
        value=int(ranked.absent.sum()),
        n=n,
        subset=POSITIVE,
        definition="count@1(gold sentences that are not in the list)",
    )


def _ranking_definition(name: str, ranked: MeasuredLists) -> str:
    return f"{name.partition('@')[0]}@1({name}; {ranked.rules.definition})"


def spreads(ranked: MeasuredLists) -> Iterator[RetrievalMeasure]:
    """How those measures lie around their means, query by query."""
    for name, column in ranked.values.items():
        statistics = aggregate(column.tolist())
        for figure in SPREADS:
            yield RetrievalMeasure(
                path=f"{name}~{figure}",
                value=getattr(statistics, figure),
                n=statistics.n,
                n_defined=statistics.n_defined,
                subset=POSITIVE,
                definition=f"{_ranking_definition(name, ranked)}; {figure} over queries"
                + (", ddof=1" if figure == "std" else ""),
            )


def over_all_queries(ranked: MeasuredLists, queries: int) -> Iterator[RetrievalMeasure]:
    """The same means with queries without evidence counted as 0."""
    for name, column in ranked.values.items():
        yield RetrievalMeasure(
            path=name,
            value=mean([*column.tolist(), *[0.0] * (queries - len(column))]),
            n=queries,
            subset="all_queries",
            definition=_ranking_definition(name, ranked)
            + "; denominator includes queries without evidence",
        )


def stated_means(block: JudgedPredictions) -> Iterator[RetrievalMeasure]:
    """Means of numbers that a file states and nothing here can check."""
    for column, (rows, values) in block.stated_values.items():
        name = STATED_PATHS.get(column)
        is_computed = block.final is not None and (
            name == "mrr" or block.chosen is not None
        )
        if name is None or is_computed:
            continue
        statistics = aggregate(values.tolist())
        for path, value in (
            (name, statistics.mean),
            *((f"{name}~{figure}", getattr(statistics, figure)) for figure in SPREADS),
        ):
            yield RetrievalMeasure(
                path=path,
                value=value,
                n=int(np.count_nonzero(block.judged & (block.queries.y == 1))),
                n_defined=statistics.n_defined,
                subset=POSITIVE,
                definition=f"{name.partition('@')[0]}@1({AS_STATED})",
                sampled=Quotient(rows=rows, above=values) if path == name else None,
                note="not recomputable",
            )


def candidates(block: JudgedPredictions) -> Iterator[RetrievalMeasure]:
    """How many sentences there are to choose from, on average."""
    pool = block.queries.pool
    sizes = pool[block.judged & (pool != UNKNOWN)]
    if len(sizes):
        yield RetrievalMeasure(
            path="n_candidates.mean",
            value=ratio(int(sizes.sum()), len(sizes)),
            n=len(sizes),
            subset="judged",
            definition="n_candidates@1(sentences of the post, mean over queries)",
        )


def selection(
    chosen: SelectedSentences, stated: GateStates | None, n: int
) -> Iterator[RetrievalMeasure]:
    """K, what of it the lists can fill, and what it finds.

    Args:
        chosen: judged queries with a K.
        stated: their states, where there are any.
        n: queries of the whole sheet.
    """
    at = f"@{chosen.rule}"
    state = np.full(n, UNKNOWN, dtype=np.int8)
    if stated is not None:
        state[stated.rows] = stated.state
    row_states = state[chosen.rows]
    groups: dict[str, Bools] = {"": np.ones(len(chosen.rows), dtype=np.bool_)}
    if stated is not None:
        groups |= {
            f"{STATES[code]}.": row_states == code for code in (NEG, UNCERTAIN, POS)
        }
    groups |= {"has_evidence.": chosen.y, "no_evidence.": ~chosen.y}
    for name, group in groups.items():
        subset = name.rstrip(".") or "with K"
        rows = None if name else chosen.rows
        k, nominal = chosen.k[group], chosen.nominal[group]
        subject = "sentences shown: K, at most the post's sentences"
        yield from _k_figures(f"k.{name}", k, subset, subject, rows, version=2)
        subject = "selected K, however many sentences there are"
        yield from _k_figures(f"k_nominal.{name}", nominal, subset, subject, rows)
        if chosen.k_listed is not None:
            subject = "selected K, cut at the list's end"
            k_listed = chosen.k_listed[group]
            yield from _k_figures(f"k_shown.{name}", k_listed, subset, subject)
    if chosen.k_listed is not None:
        yield RetrievalMeasure(
            path="sentences_extracted",
            value=int(chosen.k_listed.sum()),
            n=len(chosen.rows),
            definition="count@1(shown sentences)",
            subset="with K",
        )
    for name, column, subject in (
        ("evidence_recall", chosen.recall, "K = 0 counts 0"),
        ("evidence_precision", chosen.precision, "over sentences shown; none: 0"),
    ):
        if chosen.k_listed is not None and len(chosen.evidence_rows):
            yield RetrievalMeasure(
                path=f"{name}{at}",
                value=mean(column.tolist()),
                n=len(column),
                n_defined=len(column),
                subset=POSITIVE,
                definition=f"{name}@1(K={_rule(chosen)}; {subject})",
                sampled=Quotient(rows=chosen.evidence_rows, above=column),
            )


def _rule(chosen: SelectedSentences) -> str:
    return "selected by query" if chosen.rule == "K" else chosen.rule


def _k_figures(
    prefix: str,
    k: Ints,
    subset: str,
    subject: str,
    rows: Ints | None = None,
    *,
    version: int = 1,
) -> Iterator[RetrievalMeasure]:
    # whole numbers: their sum is exact in any order
    median, p90 = quantiles(k, (0.5, 0.9))
    for name, value in (
        ("mean", ratio(int(k.sum()), len(k))),
        ("median", median),
        ("p90", p90),
        ("min", int(k.min()) if len(k) else None),
        ("max", int(k.max()) if len(k) else None),
    ):
        yield RetrievalMeasure(
            path=f"{prefix}{name}",
            value=value,
            n=len(k),
            subset=subset,
            definition=f"k@{version}({subject}; {name})",
            sampled=Quotient(rows=rows, above=k.astype(np.float64), range=NOT_NEGATIVE)
            if name == "mean" and rows is not None
            else None,
        )


def states(
    stated: GateStates, settings: EvidenceSettings
) -> Iterator[RetrievalMeasure]:
    """How many queries are in each state, and what screening and alerts are worth."""
    state_metrics = gate_metrics(stated.y, stated.state)
    y, rows, n = stated.y, stated.rows, state_metrics.n
    definition = f"states {stated.method}; {empty_rate(settings)}"
    yield count("states.n", n, "queries with a state")
    for name, number in state_metrics.counts.items():
        yield RetrievalMeasure(
            path=f"states.{name}",
            value=number,
            n=n,
            definition=f"count@1({definition})",
        )
    is_neg, is_pos = stated.state == NEG, stated.state == POS
    parts: dict[str, tuple[Bools, Bools]] = {
        **{
            f"{name.lower()}_rate": (stated.state == i, np.ones(n, dtype=np.bool_))
            for i, name in enumerate(STATES)
        },
        "screening_sensitivity": (y & ~is_neg, y),
        "screening_specificity": (~y & is_neg, ~y),
        "screening_npv": (~y & is_neg, is_neg),
        "alert_precision": (y & is_pos, is_pos),
        "alert_recall": (y & is_pos, y),
    }
    for path, (above, below) in parts.items():
        share = (
            state_metrics.rates[path.removesuffix("_rate").upper()]
            if path.endswith("_rate")
            else getattr(state_metrics, path)
        )
        value = settings.zero_division if share.value is None else share.value
        yield RetrievalMeasure(
            path=path,
            value=value,
            n=n,
            n_defined=share.n,
            definition=f"{path}@1({definition})",
            sampled=Quotient(rows=rows, above=above, below=below),
        )
        yield RetrievalMeasure(
            path=f"{path}~wilson",
            value=share.value,
            n=n,
            n_defined=share.n,
            definition=f"{path}@1({definition}); wilson@1(level={settings.level})",
            interval=wilson(share.k, share.n, settings.level),
            note=INDEPENDENT,
        )
    yield from _per_thousand(stated, definition)


def _per_thousand(stated: GateStates, definition: str) -> Iterator[RetrievalMeasure]:
    state_metrics = gate_metrics(stated.y, stated.state)
    lost = stated.y & (stated.state == NEG)
    alerts = stated.state == POS
    every: Bools = np.ones(len(stated.y), dtype=np.bool_)
    for path, value, above, below, denominator in (
        (
            "screening_fn_per_1000",
            state_metrics.screening_fn_per_1000,
            lost,
            every,
            "queries",
        ),
        (
            "screening_fn_per_1000_positive",
            state_metrics.screening_fn_per_1000_positive,
            lost,
            stated.y,
            "queries with evidence",
        ),
        ("alerts_per_1000", state_metrics.alerts_per_1000, alerts, every, "queries"),
    ):
        thousand: Floats = 1000.0 * above
        yield RetrievalMeasure(
            path=path,
            value=value,
            n=state_metrics.n,
            n_defined=int(below.sum()),
            definition=f"{path}@1(per 1000 {denominator}; {definition})",
            sampled=Quotient(
                rows=stated.rows, above=thousand, below=below, range=PER_THOUSAND
            ),
        )


def measures(block: JudgedPredictions) -> Iterator[RetrievalMeasure]:
    """Every number of a block: of the whole, of a fold, or of a criterion."""
    settings, gated, stated = block.settings, block.gated, block.stated
    if gated is not None:
        yield from separation(gated, settings)
    yield from points(gated, stated, settings)
    if gated is not None and gated.is_probability:
        yield from calibration(gated, settings)
    if block.final is not None:
        yield from ranking(block.final)
    yield from stated_means(block)
    yield from candidates(block)
    if block.chosen is not None:
        yield from selection(block.chosen, stated, len(block.queries))
    if stated is not None:
        yield from states(stated, settings)


def not_available(block: JudgedPredictions) -> tuple[str, ...]:
    """The parts that the input has nothing for, each with what is missing."""
    has_probability = block.gated is not None and block.gated.is_probability
    checks = (
        (has_probability, "gate, calibration and risk", "no probabilities"),
        (block.stated is not None, "states", "no thresholds and no states"),
        (block.final is not None, "ranking", _no_ranking_reason(block)),
        (block.chosen is not None, "dynamic K", "no K"),
        (bool(block.prediction.sweep), "gamma sweep", "no K under other gammas"),
        (bool((block.queries.fold != UNKNOWN).any()), "folds", "no folds"),
        (has_probability or block.stated is not None, "posts", "no decisions"),
    )
    return tuple(
        f"{part}: {reason}" for is_available, part, reason in checks if not is_available
    )


def _no_ranking_reason(block: JudgedPredictions) -> str:
    if block.queries.gold is None:
        return "no gold sentences"
    return "no rankings"


def fold_masks(
    block: JudgedPredictions,
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Which queries belong to each fold that has any, in display order."""
    queries = block.queries
    masks = {name: queries.fold == i for i, name in enumerate(queries.folds)}
    return {name: mask for name, mask in masks.items() if mask.any()}


UNSCORED_PATHS = ("auroc", "auprc", "screening_sensitivity")
FILLED = ((1.0, "unscored_as_1"), (0.0, "unscored_as_0"))


def unscored(block: JudgedPredictions) -> Iterator[RetrievalMeasure]:
    """The shown measures under both readings; none where every query was answered."""
    gated, column = block.gated, block.prediction.prob
    if gated is None or column is None:
        return
    rest = np.flatnonzero(block.judged & np.isnan(column))
    if not len(rest):
        return
    for p, name in FILLED:
        filled = GateScores(
            rows=np.concatenate([gated.rows, rest]),
            y=np.concatenate([gated.y, block.queries.y[rest] == 1]),
            p=np.concatenate([gated.p, np.full(len(rest), p)]),
            is_probability=True,
        )
        for measure in _measures(block, filled):
            if measure.path in UNSCORED_PATHS:
                path, note = f"{measure.path}~{name}", "secondary"
                yield replace(measure, path=path, sampled=None, note=note)


def _measures(
    block: JudgedPredictions, filled: GateScores
) -> Iterator[RetrievalMeasure]:
    yield from separation(filled, block.settings)
    low, high = block.prediction.tau_neg, block.prediction.tau_pos
    if block.stated is None or block.stated.method == STATED:
        return
    if low is not None and high is not None:
        stated = recomputed(filled, low, high, block.settings)
        yield from states(stated, block.settings)


SWEEP_PATHS = (
    "k.mean",
    "k.has_evidence.mean",
    "evidence_recall@K",
    "evidence_precision@K",
    "sentences_extracted",
)


def sweep(
    block: JudgedPredictions, draws: PostBootstrap
) -> Iterator[tuple[float, Metric]]:
    """The figures under each gamma that there are Ks for, with intervals."""
    for gamma in block.prediction.sweep:
        chosen = choose(block.queries, block.prediction, block.settings, gamma)
        if chosen is None:
            continue
        swept_measures = [
            measure
            for measure in selection(chosen, None, len(block.queries))
            if measure.path in SWEEP_PATHS
        ]
        for metric in draws.metrics(swept_measures):
            yield gamma, metric
