"""Why a review failed, in words that other programs read too."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.review_benchmark.measuring.benchmark import Benchmark
from jobs.review_benchmark.settings import Settings


def percent(target: float) -> str:
    """A target with as many digits as it has: 99.5% is not 100%."""
    return f"{100 * target:g}%"


def failure_reasons(found: Benchmark, settings: Settings) -> Iterator[str]:
    """The reasons, in a fixed order; none where nothing was lost."""
    target = settings.target_recall
    if settings.recall_line and not found.passes(target):
        yield f"Recall {found.recall:.1%} below target {percent(target)}"
    if found.not_found:
        yield f"{found.not_found} ground truth paper(s) not found in database"
    if found.found_but_excluded:
        yield (
            f"{found.found_but_excluded} ground truth paper(s) found but not included"
        )
