"""Formats the summary of a scoring: studies lost, and the reading saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.kit.comparison.models import p_value_words
from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.text_format import ends, fixed, plural, with_ends
from jobs.screening.decisions import OUTCOMES, READABLE
from jobs.screening.results import (
    SENSITIVITY,
    SPECIFICITY,
    ScreeningPair,
    ScreeningResults,
)
from jobs.screening.worklist import model_outcomes
from runner.scorecard import Finding, Metric
from store.document import Block, TableBlock, wide_table
from store.printable import one_line, shortened

NAME_CELLS = 30
"""Columns of a model's name."""

READABLE_WORDS = tuple(OUTCOMES[outcome] for outcome in READABLE)


def run_text(results: ScreeningResults, findings: Sequence[Finding]) -> str:
    """Return the summary of one scoring."""
    blocks: list[Block] = [
        _head(results),
        *sample_sentences(findings),
        *(_measured(results) if results.has_truth else _unlabelled(results)),
        *finding_lines(findings),
    ]
    return summary_text(blocks)


def _head(results: ScreeningResults) -> str:
    records = results.predictions.records
    kind_counts = ", ".join(
        f"{int((records.kind == index).sum()):,} {kind}"
        for index, kind in enumerate(records.kinds)
    )
    return (
        f"screening  {plural(len(records.reviews), 'review')}  "
        f"{plural(len(records), 'record')}: {kind_counts}"
    )


def _measured(results: ScreeningResults) -> Iterator[Block]:
    """Yield the metrics against labels."""
    yield from _candidates(results)
    yield _table(results)
    yield from _missed(results)
    yield from _pairs(results.pairs)
    yield from _implied(results)


def _unlabelled(results: ScreeningResults) -> Iterator[Block]:
    """Yield the decisions of the models, without labels."""
    titles = ("model", "n", *READABLE_WORDS, "none", "p_include: p10", "median", "p90")
    rows = []
    for column in results.columns.values():
        row = model_outcomes(column.view)
        counts = [row.outcomes[word] for word in READABLE_WORDS]
        n = sum(row.outcomes.values())
        numbers = (n, *counts, n - sum(counts))
        p10, _, median, _, p90 = row.p
        rows.append(
            (
                _name(row.model),
                *(f"{number:,}" for number in numbers),
                *(fixed(share, "z.2f") for share in (p10, median, p90)),
            )
        )
    yield wide_table(titles, rows)
    for pair in results.pairs:
        yield (
            f"{_name(pair.compared.left)} and {_name(pair.compared.right)}  "
            f"{plural(pair.decided, 'record')} decided by both  "
            f"agreement {fixed(pair.agreement.percent, 'z.2f')}  "
            f"kappa {fixed(pair.agreement.kappa, 'z.2f')}"
        )
    yield "reading order: ranking.csv   for reference managers: screened.ris"


def _candidates(results: ScreeningResults) -> Iterator[str]:
    """Yield the share of reviews with candidates, if the set has near misses."""
    validation_set = results.dataset.validation_set
    near_misses = {} if validation_set is None else validation_set.near_misses
    analysed, share = (
        near_misses.get("reviews_analysed"),
        near_misses.get("share_with_candidates"),
    )
    if analysed and share is not None:
        yield (
            f"{plural(int(analysed), 'review')} analysed, "
            f"{near_misses['reviews_with_candidates']:,} with near-miss candidates "
            f"({share:.1%})   candidates: mean {near_misses['mean']:.1f} "
            f"median {near_misses['median']:g} min {near_misses['min']:,} max "
            f"{near_misses['max']:,}"
        )


def _table(results: ScreeningResults) -> TableBlock:
    level = f"[{100 * results.dataset.settings.level:g}%]"
    measures = (f"sens {level}", "as incl.", f"spec {level}", "as incl.")
    titles = ("model", "kind", "n", "cover", *measures, "wss95", "auroc")
    rows: list[tuple[str, ...]] = []
    for model, column in results.columns.items():
        # with one kind of negatives the second stratum equals the first
        names = list(column.strata)
        visible_names = (
            names if len(names) > len(("all", "kind")) else names[1:] or names
        )
        for name in visible_names:
            by_path = column.strata[name].by_path
            rows.append(
                (
                    _name(model) if name == visible_names[0] else "",
                    name,
                    f"{by_path['micro.n'].value:,}",
                    fixed(by_path["micro.coverage"].value, "z.2f"),
                    with_ends(by_path["micro.sensitivity"], "z.2f"),
                    fixed(by_path["micro.as_include.sensitivity"].value, "z.2f"),
                    with_ends(by_path["micro.specificity"], "z.2f"),
                    fixed(by_path["micro.as_include.specificity"].value, "z.2f"),
                    _mean(by_path["macro.wss95"]),
                    _mean(by_path["macro.auroc"]),
                )
            )
    return wide_table(titles, rows)


def _missed(results: ScreeningResults) -> Iterator[str]:
    for model, column in results.columns.items():
        decided = column.strata["all"].counts.decided
        lost, identified = int(decided.fn.sum()), int(decided.tp.sum())
        name = f"{_name(model)}: " if len(results.columns) > 1 else ""
        if lost:
            papers = plural(lost, "included paper")
            yield f"{name}missed {papers}, listed in false_negatives.csv"
        elif identified:
            yield f"{name}missed no included paper ({identified:,} decided)"
        else:
            yield f"{name}decided on no included paper, so that none can be missed"
    if "near-miss" in results.frame.records.kinds:
        yield "near misses are unjudged: see the report, Limits"


def _pairs(pairs: Sequence[ScreeningPair]) -> Iterator[str]:
    for pair in pairs:
        yield (
            f"{_name(pair.compared.left)} minus {_name(pair.compared.right)}  "
            f"{plural(pair.tested.n, 'record')} ({pair.dropped:,} dropped)  "
            f"kappa {fixed(pair.agreement.kappa, 'z.2f')}"
        )
        for word, path in (("sens", SENSITIVITY), ("spec", SPECIFICITY)):
            tested = pair.metric(path)
            if tested is not None:
                gap = tested.gap
                interval_text = ends(gap.interval.lo, gap.interval.hi, "+.2f")
                value = f"{fixed(gap.value, '+z.3f')} {interval_text}".rstrip()
                yield f"  {word} {value}  {p_value_words(tested)}"


def _implied(results: ScreeningResults) -> Iterator[str]:
    for model, column in results.columns.items():
        metric = column.by_path().get("contamination.implied")
        if metric is not None:
            share = metric.note if metric.value is None else fixed(metric.value, "z.2f")
            yield (
                f"{_name(model)}: share of near misses implied to be eligible: {share}"
            )


def _name(model: str) -> str:
    """Shorten a model's name, which may be the path of a file."""
    return shortened(one_line(model), NAME_CELLS)


def _mean(metric: Metric) -> str:
    """Format a mean over reviews, with the number of those that have a value."""
    mean_text = fixed(metric.value, "z.2f")
    if metric.n_defined == metric.n:
        return mean_text
    return f"{mean_text} ({metric.n_defined:,} of {metric.n:,})"
