"""A run in a few lines: each review, then a table over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.review_benchmark.measuring.benchmark import Benchmark
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.settings import Settings


def run_text(columns: Sequence[Column], settings: Settings) -> str:
    """The summary of a run."""
    lines = []
    for column in columns:
        for review, found in column.benchmarks.items():
            lines += [*_review(column.model, review, found, settings), ""]
    return "\n".join([*lines, *_table(columns)])


def failure_reasons(found: Benchmark, settings: Settings) -> Iterator[str]:
    """Why a review failed, in words that other tools read too."""
    if settings.recall_line and not found.passes(settings.target_recall):
        yield (f"Recall {found.recall:.1%} below target {settings.target_recall:.0%}")
    if found.not_found:
        yield f"{found.not_found} ground truth paper(s) not found in database"
    if found.found_but_excluded:
        yield (
            f"{found.found_but_excluded} ground truth paper(s) found but not included"
        )


def _review(
    model: str, review: str, found: Benchmark, settings: Settings
) -> Iterator[str]:
    passed = found.passes(settings.target_recall)
    yield f"Benchmark Result: {'PASSED' if passed else 'FAILED'}   {model}"
    yield f"Cochrane ID: {review}"
    yield f"Ground Truth Papers: {found.truth}"
    yield f"Agent Included Papers: {found.included_rows}"
    yield f"Papers Found & Included: {found.found_and_included}"
    yield f"Papers Not Found: {found.not_found}"
    yield f"Papers Found but Excluded: {found.found_but_excluded}"
    yield f"Recall: {found.recall:.1%} (target: {settings.target_recall:.0%})"
    precision = found.precision
    yield f"Precision: {'n/a' if precision is None else f'{precision:.1%}'}"
    reasons = list(failure_reasons(found, settings))
    if reasons:
        yield "Failure Reasons:"
        yield from (f"  - {reason}" for reason in reasons)


def _table(columns: Sequence[Column]) -> Iterator[str]:
    width = max((len(column.model) for column in columns), default=5)
    yield f"{'model':{width}}  passed  recall [95%]          precision  ceiling"
    for column in columns:
        by_path = {each.path: each for each in column.metrics}
        recall = by_path["macro.recall"]
        ends = (
            ""
            if recall.lo is None or recall.hi is None
            else f"[{recall.lo:.3f}, {recall.hi:.3f}]"
        )
        yield (
            f"{column.model:{width}}  {by_path['passed'].value}/{recall.n}"
            f"     {_shown(recall.value)} {ends:16}  "
            f"{_shown(by_path['macro.precision'].value):9}  "
            f"{_shown(by_path['macro.ceiling'].value)}"
        )


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
