"""A run in a terminal: each review, then a table over all of them.

The lines of a review and their order are fixed: other programs read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.comparison.models import test_words
from jobs.inputs.sampling import sample_sentences
from jobs.review_benchmark.matching.rules import METHODS
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.lost import LOST_AT, PaperMatch
from jobs.review_benchmark.measuring.pairs import Pair
from jobs.review_benchmark.measuring.results import Results
from jobs.review_benchmark.summary.reasons import failure_reasons, percent
from jobs.review_benchmark.summary.verdicts import verdict_text
from jobs.review_benchmark.verdicts.measured import Verdicts
from jobs.text import display_width, one_line, padded, plural, shortened
from runner.scorecard import Finding, Metric
from store.printable import printable

LINE_CHARS = 240
TITLE_CHARS = 60
MOST_LOST = 10
"""Lost papers of a review that are listed; lost_papers.csv has all."""

MOST_PAIRS = 10
"""Pairs of models that are told; comparison.csv has all."""

MOST_REVIEWS = 60
"""Results that a terminal is told of; summary.txt has all."""

NAME = 32
"""Cells of a model's name in a line of numbers; elsewhere it stands whole."""

UNDEFINED = "n/a"


def run_text(
    results: Results,
    concluded: Sequence[Verdicts],
    findings: Sequence[Finding],
    most: int | None = None,
) -> str:
    """The summary of one scoring.

    Args:
        results: what was measured.
        concluded: how conclusions compare, by model.
        findings: of the scoring.
        most: so many reviews are told at most; None: all.
    """
    every = [
        (column, review)
        for column in results.columns.values()
        for review in column.benchmarks
    ]
    lines: list[str] = []
    for column, review in every[:most]:
        lines += [*_review(results, column, review), ""]
    left = len(every) - len(every[:most])
    if left:
        lines += [f"{plural(left, 'more result')} in summary.txt", ""]
    lines += sample_sentences(findings)
    lines += _table(results)
    lines += _lost(results)
    lines += _pairs(results.pairs)
    lines += verdict_text(concluded)
    lines += [_finding(own) for own in findings if own.severity != "info"]
    return "\n".join([*(printable(line, line=LINE_CHARS) for line in lines), ""])


def _review(results: Results, column: Column, review: str) -> Iterator[str]:
    settings = results.dataset.settings
    found = column.benchmarks[review]
    passed = found.passes(settings.target_recall)
    if len(results.columns) > 1:
        yield f"Model: {one_line(column.model)}"
    yield f"Benchmark Result: {'PASSED' if passed else 'FAILED'}"
    yield f"Cochrane ID: {one_line(review)}"
    yield f"Ground Truth Papers: {found.truth}"
    yield f"Agent Included Papers: {found.included_rows}"
    yield f"Papers Found & Included: {found.found_and_included}"
    yield f"Papers Not Found: {found.not_found}"
    yield f"Papers Found but Excluded: {found.found_but_excluded}"
    yield f"Recall: {found.recall:.1%} (target: {percent(settings.target_recall)})"
    yield f"Precision: {_percent(found.precision)}"
    reasons = list(failure_reasons(found, settings))
    if reasons:
        yield "Failure Reasons:"
        yield from (f"  - {reason}" for reason in reasons)
    lost = column.lost(review)
    if lost:
        yield "Lost Papers:"
        for own in lost[:MOST_LOST]:
            yield f"  - {_title(own)}  {own.lost_at}"
            yield f"    {one_line(own.resolution)}"
        if lost[MOST_LOST:]:
            yield f"  and {len(lost) - MOST_LOST} more in lost_papers.csv"


def _title(own: PaperMatch) -> str:
    title = one_line(own.paper.title or own.paper.name)
    return title if len(title) <= TITLE_CHARS else title[:TITLE_CHARS] + "..."


def _table(results: Results) -> Iterator[str]:
    """One row a model, over its reviews."""
    level = f"[{100 * results.dataset.settings.level:g}%]"
    rows = [
        [
            "model",
            "passed",
            f"recall {level}",
            "micro",
            "precision",
            "ceiling",
            "retrieval",
            "screening",
        ]
    ]
    for model, column in results.columns.items():
        known = column.by_path()
        rows.append(
            [
                _name(model),
                f"{known['passed'].value}/{known['passed'].n}",
                _with_ends(known["macro.recall"]),
                _short(known["micro.recall"].value),
                _short(known["macro.precision"].value),
                _short(known["macro.ceiling"].value),
                _short(known["macro.retrieval_recall"].value),
                _short(known["macro.screening_recall"].value),
            ]
        )
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(padded, row, widths)).rstrip()


def _lost(results: Results) -> Iterator[str]:
    """How each model's studies were matched, how many it lost, and where."""
    for model, column in results.columns.items():
        known = column.by_path()
        counts = {step: known[f"lost.{step}"].value or 0 for step in LOST_AT}
        total = int(sum(counts.values()))
        studies = plural(int(known["count.truth"].value or 0), "study", "studies")
        name = f"{one_line(model)}: " if len(results.columns) > 1 else ""
        methods = ", ".join(
            f"{key} {known[f'count.method.{method}'].value}"
            for key, method in METHODS.items()
        )
        where = ", ".join(f"{step} {n}" for step, n in counts.items() if n)
        lost = f"lost {total}: {where}" if total else "lost none"
        yield f"{name}{studies}, matched by {methods}; {lost}"


def _pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    for own in pairs[:MOST_PAIRS]:
        found = own.metrics["macro.recall"]
        value, ends = found.gap.value, found.gap.interval
        recall = UNDEFINED if value is None else f"{value:+.3f}"
        shown = (
            ""
            if ends.lo is None or ends.hi is None
            else f" [{ends.lo:+.3f}, {ends.hi:+.3f}]"
        )
        yield (
            f"{_name(own.left)} minus {_name(own.right)}  recall {recall}{shown}  "
            f"only one included {own.left_alone} and {own.right_alone} of {own.n}  "
            f"{plural(own.reviews, 'review')} ({own.dropped} dropped)  "
            f"{test_words(found)}"
        )
    if pairs[MOST_PAIRS:]:
        left = plural(len(pairs) - MOST_PAIRS, "more pair")
        yield f"{left} of models in comparison.csv"


def _name(model: str) -> str:
    """A model where numbers must find room beside it."""
    return shortened(one_line(model), NAME)


def _finding(finding: Finding) -> str:
    example = f", such as {finding.example}" if finding.example else ""
    found = f" ({finding.n:,}{example})" if finding.n > 1 or example else ""
    return f"{finding.where}: {finding.message}{found}"


def _with_ends(metric: Metric) -> str:
    if metric.lo is None or metric.hi is None:
        return _short(metric.value)
    return f"{_short(metric.value)} [{metric.lo:.3f}, {metric.hi:.3f}]"


def _short(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.1%}"
