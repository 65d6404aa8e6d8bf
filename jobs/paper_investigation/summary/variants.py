"""The summary text of stand-alone variant extraction.

The form of profile `clinpgx-qa` is that of recorded summaries, byte for byte. The other
one adds what lists hold beyond the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobs.metrics import ratio
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.settings import Settings
from jobs.paper_investigation.summary.numbers import fixed
from jobs.paper_investigation.tallies.extraction import Extraction, Hits
from jobs.paper_investigation.tallies.tally import Tally
from runner.scorecard import Metric

DOUBLE = "=" * 70
SINGLE = "-" * 70

MICRO = "MICRO-AVG"

TITLE_CHARS = 80
LISTED = 5
"""Variants of a paper that an example shows."""


def variants_text(
    model: str,
    tally: Tally,
    metrics: Mapping[str, Metric],
    settings: Settings,
    results: str,
) -> str:
    """The text of `{slug}_variant_summary.txt`; see `investigation_text`."""
    is_recorded = settings.profile == "clinpgx-qa"
    value = metrics["avg_variant_recall"].value
    recall = fixed(value, "0.000" if is_recorded else "n/a")
    lines = [
        "",
        DOUBLE,
        f"Variant Extraction Results  |  model={model}  |  Recall={recall}",
        DOUBLE,
        "",
        f"  Articles scored: {tally.extraction.parsed}/{len(tally.papers)}",
        f"  Parse failures:  {tally.extraction.unparsed}/{len(tally.papers)}",
        "",
        "By variant type:",
        *(_recorded_table if is_recorded else _table)(tally.extraction),
        "",
        *(_recorded_macro if is_recorded else _macro)(metrics),
        "",
        *_examples("WORST", tally.worst),
        *_examples("BEST", tally.best),
        f"Eval results saved to {results}",
        "",
    ]
    return "\n".join(lines)


def _recorded_table(extraction: Extraction) -> Iterator[str]:
    """No false positives; an unparsed paper misses each truth entry, repeats too."""
    line = f"  {'-' * 15} {'-' * 6} {'-' * 6} {'-' * 10}"
    yield f"  {'Type':<15} {'TP':>6} {'FN':>6} {'Recall':>10}"
    yield line
    rows = [*sorted(extraction.classes.items()), (MICRO, extraction.total())]
    for name, hits in rows:
        if name == MICRO:
            yield line
        fn = hits.fn + hits.fn_unparsed_raw
        if hits.tp + fn or name == MICRO:
            recall = fixed(ratio(hits.tp, hits.tp + fn), "0.000")
            yield f"  {name:<15} {hits.tp:>6} {fn:>6} {recall:>9}"


def _recorded_macro(metrics: Mapping[str, Metric]) -> Iterator[str]:
    yield f"  Macro-avg Recall: {fixed(metrics['avg_variant_recall'].value, '0.000')}"


def _table(extraction: Extraction) -> Iterator[str]:
    line = (
        f"  {'-' * 15} {'-' * 6} {'-' * 6} {'-' * 6} {'-' * 10} {'-' * 10} {'-' * 10}"
    )
    yield (
        f"  {'Type':<15} {'TP':>6} {'FP':>6} {'FN':>6} "
        f"{'Recall':>10} {'Precision':>10} {'F1':>10}"
    )
    yield line
    for name, hits in extraction.classes.items():
        if hits != Hits():
            yield _row(name, hits)
    yield line
    yield _row(MICRO, extraction.total())
    yield "  Precision is a lower bound: the truth lists findings, not all typings."


def _row(name: str, hits: Hits) -> str:
    rates = "".join(f" {fixed(v):>10}" for v in (hits.recall, hits.precision, hits.f1))
    return f"  {name:<15} {hits.tp:>6} {hits.fp:>6} {hits.fn:>6}{rates}"


def _macro(metrics: Mapping[str, Metric]) -> Iterator[str]:
    precision = metrics["avg_precision"]
    yield f"  Macro-avg Recall:    {fixed(metrics['avg_variant_recall'].value)}"
    yield (
        f"  Macro-avg Precision: {fixed(precision.value)}"
        f"  ({precision.n_defined} articles with a list)"
    )
    yield f"  Macro-avg F1:        {fixed(metrics['avg_f1'].value)}"


def _examples(word: str, papers: Iterable[MarkedPaper]) -> Iterator[str]:
    yield SINGLE
    yield f"Example {word} RECALL articles"
    yield SINGLE
    yield ""
    for place, paper in enumerate(papers, start=1):
        record, predicted = paper.record, sorted(paper.predicted or ())
        missed = sorted(set(paper.truth) - set(paper.recalled))
        yield f"  [{place}] pmcid={record.pmcid}  Recall={fixed(paper.recall)}"
        yield f"  Title: {(record.title or '')[:TITLE_CHARS]}"
        yield f"  Ground truth ({len(record.truth)}): {list(record.truth[:LISTED])}"
        yield f"  Predicted ({len(predicted)}): {predicted[:LISTED]}"
        if missed:
            yield f"  Missed: {missed[:LISTED]}"
        yield ""
