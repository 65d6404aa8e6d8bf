"""What a reader gets: the ranking, the sentences shown, the three states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block, Stated
from jobs.evidence_retrieval.measuring.chosen import Chosen
from jobs.evidence_retrieval.measuring.gate import INDEPENDENT
from jobs.evidence_retrieval.measuring.measure import (
    POSITIVE,
    Measure,
    Quotient,
    count,
    empty_rate,
)
from jobs.evidence_retrieval.measuring.ranked import Ranked
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools, Floats, Ints, aggregate, mean, quantiles, ratio
from jobs.metrics.intervals import wilson
from jobs.metrics.resampling import NOT_NEGATIVE, PER_THOUSAND
from jobs.metrics.selective import NEG, POS, STATES, UNCERTAIN, gate_metrics

AS_GIVEN = "as given in the file; not recomputable"

GIVEN: Mapping[str, str] = {
    "evidence_recall_at_k": "evidence_recall@K",
    "evidence_precision_at_k": "evidence_precision@K",
    "mrr": "mrr",
}
"""Columns of per-query files, and the measures that they state."""

SPREADS = ("std", "median", "p25", "p75")


def ranking(ranked: Ranked) -> Iterator[Measure]:
    """Means of a list's measures over queries with evidence."""
    n = len(ranked.rows)
    for name, column in ranked.values.items():
        yield Measure(
            path=name,
            value=mean(column.tolist()),
            n=n,
            n_defined=n,
            subset=POSITIVE,
            definition=_ranking_definition(name, ranked),
            sampled=Quotient(rows=ranked.rows, above=column),
        )
    yield Measure(
        path="gold_absent",
        value=int(ranked.absent.sum()),
        n=n,
        subset=POSITIVE,
        definition="count@1(gold sentences that are not in the list)",
    )


def _ranking_definition(name: str, ranked: Ranked) -> str:
    return f"{name.partition('@')[0]}@1({name}; {ranked.rules.definition})"


def spreads(ranked: Ranked) -> Iterator[Measure]:
    """How those measures lie around their means, query by query."""
    for name, column in ranked.values.items():
        found = aggregate(column.tolist())
        for figure in SPREADS:
            yield Measure(
                path=f"{name}~{figure}",
                value=getattr(found, figure),
                n=found.n,
                n_defined=found.n_defined,
                subset=POSITIVE,
                definition=f"{_ranking_definition(name, ranked)}; {figure} over queries"
                + (", ddof=1" if figure == "std" else ""),
            )


def over_all_queries(ranked: Ranked, queries: int) -> Iterator[Measure]:
    """The same means with queries without evidence counted as 0."""
    for name, column in ranked.values.items():
        yield Measure(
            path=name,
            value=mean([*column.tolist(), *[0.0] * (queries - len(column))]),
            n=queries,
            subset="all_queries",
            definition=_ranking_definition(name, ranked)
            + "; denominator includes queries without evidence",
        )


def as_given(block: Block) -> Iterator[Measure]:
    """Means of numbers that a file states and nothing here can check."""
    for column, (rows, values) in block.given.items():
        name = GIVEN.get(column)
        is_known = block.final is not None and (
            name == "mrr" or block.chosen is not None
        )
        if name is None or is_known:
            continue
        found = aggregate(values.tolist())
        for path, value in (
            (name, found.mean),
            *((f"{name}~{figure}", getattr(found, figure)) for figure in SPREADS),
        ):
            yield Measure(
                path=path,
                value=value,
                n=int(np.count_nonzero(block.judged & (block.queries.y == 1))),
                n_defined=found.n_defined,
                subset=POSITIVE,
                definition=f"{name.partition('@')[0]}@1({AS_GIVEN})",
                sampled=Quotient(rows=rows, above=values) if path == name else None,
                note="not recomputable",
            )


def candidates(block: Block) -> Iterator[Measure]:
    """How many sentences there are to choose from, on average."""
    pool = block.queries.pool
    own = pool[block.judged & (pool != UNKNOWN)]
    if len(own):
        yield Measure(
            path="n_candidates.mean",
            value=ratio(int(own.sum()), len(own)),
            n=len(own),
            subset="judged",
            definition="n_candidates@1(sentences of the post, mean over queries)",
        )


def selection(chosen: Chosen, stated: Stated | None, n: int) -> Iterator[Measure]:
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
    own = state[chosen.rows]
    groups: dict[str, Bools] = {"": np.ones(len(chosen.rows), dtype=np.bool_)}
    if stated is not None:
        groups |= {f"{STATES[each]}.": own == each for each in (NEG, UNCERTAIN, POS)}
    groups |= {"has_evidence.": chosen.y, "no_evidence.": ~chosen.y}
    for name, group in groups.items():
        subset = name.rstrip(".") or "with K"
        rows = None if name else chosen.rows
        k, nominal = chosen.k[group], chosen.nominal[group]
        how = "sentences shown: K, at most the post's sentences"
        yield from _k_figures(f"k.{name}", k, subset, how, rows, version=2)
        how = "selected K, however many sentences there are"
        yield from _k_figures(f"k_nominal.{name}", nominal, subset, how, rows)
        if chosen.shown is not None:
            how = "selected K, cut at the list's end"
            shown = chosen.shown[group]
            yield from _k_figures(f"k_shown.{name}", shown, subset, how)
    if chosen.shown is not None:
        yield Measure(
            path="sentences_extracted",
            value=int(chosen.shown.sum()),
            n=len(chosen.rows),
            definition="count@1(shown sentences)",
            subset="with K",
        )
    for name, column, how in (
        ("evidence_recall", chosen.recall, "K = 0 counts 0"),
        ("evidence_precision", chosen.precision, "over sentences shown; none: 0"),
    ):
        if chosen.shown is not None and len(chosen.found):
            yield Measure(
                path=f"{name}{at}",
                value=mean(column.tolist()),
                n=len(column),
                n_defined=len(column),
                subset=POSITIVE,
                definition=f"{name}@1(K={_rule(chosen)}; {how})",
                sampled=Quotient(rows=chosen.found, above=column),
            )


def _rule(chosen: Chosen) -> str:
    return "selected by query" if chosen.rule == "K" else chosen.rule


def _k_figures(
    prefix: str,
    k: Ints,
    subset: str,
    how: str,
    rows: Ints | None = None,
    *,
    version: int = 1,
) -> Iterator[Measure]:
    # whole numbers: their sum is exact in any order
    median, p90 = quantiles(k, (0.5, 0.9))
    for name, value in (
        ("mean", ratio(int(k.sum()), len(k))),
        ("median", median),
        ("p90", p90),
        ("min", int(k.min()) if len(k) else None),
        ("max", int(k.max()) if len(k) else None),
    ):
        yield Measure(
            path=f"{prefix}{name}",
            value=value,
            n=len(k),
            subset=subset,
            definition=f"k@{version}({how}; {name})",
            sampled=Quotient(rows=rows, above=k.astype(np.float64), range=NOT_NEGATIVE)
            if name == "mean" and rows is not None
            else None,
        )


def states(stated: Stated, settings: Settings) -> Iterator[Measure]:
    """How many queries are in each state, and what screening and alerts are worth."""
    found = gate_metrics(stated.y, stated.state)
    y, rows, n = stated.y, stated.rows, found.n
    how = f"states {stated.how}; {empty_rate(settings)}"
    yield count("states.n", n, "queries with a state")
    for name, number in found.counts.items():
        yield Measure(
            path=f"states.{name}", value=number, n=n, definition=f"count@1({how})"
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
            found.rates[path.removesuffix("_rate").upper()]
            if path.endswith("_rate")
            else getattr(found, path)
        )
        value = settings.zero_division if share.value is None else share.value
        yield Measure(
            path=path,
            value=value,
            n=n,
            n_defined=share.n,
            definition=f"{path}@1({how})",
            sampled=Quotient(rows=rows, above=above, below=below),
        )
        yield Measure(
            path=f"{path}~wilson",
            value=share.value,
            n=n,
            n_defined=share.n,
            definition=f"{path}@1({how}); wilson@1(level={settings.level})",
            interval=wilson(share.k, share.n, settings.level),
            note=INDEPENDENT,
        )
    yield from _per_thousand(stated, how)


def _per_thousand(stated: Stated, how: str) -> Iterator[Measure]:
    found = gate_metrics(stated.y, stated.state)
    lost = stated.y & (stated.state == NEG)
    alerts = stated.state == POS
    every: Bools = np.ones(len(stated.y), dtype=np.bool_)
    for path, value, above, below, what in (
        ("screening_fn_per_1000", found.screening_fn_per_1000, lost, every, "queries"),
        (
            "screening_fn_per_1000_positive",
            found.screening_fn_per_1000_positive,
            lost,
            stated.y,
            "queries with evidence",
        ),
        ("alerts_per_1000", found.alerts_per_1000, alerts, every, "queries"),
    ):
        thousand: Floats = 1000.0 * above
        yield Measure(
            path=path,
            value=value,
            n=found.n,
            n_defined=int(below.sum()),
            definition=f"{path}@1(per 1000 {what}; {how})",
            sampled=Quotient(
                rows=stated.rows, above=thousand, below=below, range=PER_THOUSAND
            ),
        )
