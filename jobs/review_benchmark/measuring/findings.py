"""What a reader of the numbers should know of: gaps, odd searches, odd matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from jobs.metrics import FEW_CLUSTERS
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.rebuilt import Sheet
from jobs.review_benchmark.settings import Settings
from runner.scorecard import Finding

_Told: TypeAlias = tuple[str, Literal["warn", "info"], str, Sequence[str]]
"""Code, severity, sentence, and the cases that there are."""


def findings(
    columns: Mapping[str, Column], sheet: Sheet, settings: Settings
) -> Iterator[Finding]:
    """The findings about a scoring and each of its agents.

    Args:
        columns: what was measured, by model.
        sheet: what it was measured of.
        settings: of the run.
    """
    reviews = len(sheet.reviews)
    if settings.boot_b and reviews < FEW_CLUSTERS:
        yield Finding(
            code="few_reviews",
            severity="info",
            where="intervals",
            message=f"There are fewer than {FEW_CLUSTERS} reviews, so that intervals "
            "by review are rough.",
            n=reviews,
        )
    for model, own in columns.items():
        for code, severity, message, cases in _told(own, sheet):
            if cases:
                yield Finding(
                    code=code,
                    severity=severity,
                    where=model,
                    message=message,
                    n=len(cases),
                    example=cases[0],
                )
        yield from _junk(model, own, autojunk=settings.autojunk)


def _told(own: Column, sheet: Sheet) -> Sequence[_Told]:
    left = [review.id for review in sheet.reviews if review.id not in own.rebuilt]
    searches = [
        (review, searched)
        for review, rebuilt in own.rebuilt.items()
        for searched in rebuilt.searches
    ]
    return (
        (
            "review_not_done",
            "warn",
            "Reviews have no result yet and are in no mean.",
            left,
        ),
        (
            "plan_fallback",
            "warn",
            "Search plans could not be read; the fixed plan was searched.",
            [review for review, searched in searches if searched.is_fallback],
        ),
        (
            "no_hits",
            "info",
            "Queries found no paper.",
            [
                f"{review}: {query.label or 'query'}"
                for review, searched in searches
                for query, hits in zip(searched.queries, searched.hits, strict=True)
                if not hits
            ],
        ),
        (
            "candidates_cut",
            "info",
            "Searches found more papers than max_candidates.",
            [
                f"{review}: {searched.cut:,} more"
                for review, searched in searches
                if searched.cut
            ],
        ),
        (
            "suspicious_match",
            "info",
            "Matches that somebody should look at.",
            [
                f"{review}: {each.message}"
                for review, every in own.suspicious.items()
                for each in every
            ],
        ),
    )


def _junk(model: str, own: Column, *, autojunk: bool) -> Iterator[Finding]:
    """Both counts of each review in which they differ."""
    for review, other in own.otherwise.items():
        counts = (own.benchmarks[review], other)
        on, off = counts if autojunk else reversed(counts)
        yield Finding(
            code="autojunk_matters",
            severity="warn",
            where=f"{review} of {model}",
            message="Long titles are matched otherwise without autojunk: "
            f"found {on.found} with it and {off.found} without, "
            f"included {on.found_and_included} and {off.found_and_included}.",
        )
