"""Everything that was measured of a sheet, before it becomes tables and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.identity import matching_options, truth_hash
from jobs.review_benchmark.measuring.column import Column, column
from jobs.review_benchmark.measuring.drawing import Draws
from jobs.review_benchmark.measuring.pairs import Pair, pairs
from jobs.review_benchmark.rebuilt import Sheet
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A sheet, measured."""

    dataset: Dataset
    sheet: Sheet
    columns: Mapping[str, Column]  #: by model, in the run's order
    pairs: tuple[Pair, ...]
    truth: Mapping[str, str]  #: hash of what is looked for, by review
    matching: str  #: how papers were matched, in one line
    database: str | None  #: hash of the papers; None of an import
    findings: tuple[Finding, ...]


def measured(dataset: Dataset, sheet: Sheet) -> Results:
    """Measure every agent, and their differences."""
    draws = Draws(settings=dataset.settings)
    reviews = {review.id: review for review in sheet.reviews}
    columns = {
        model: column(
            model,
            [own for own in sheet.rebuilt if own.model == model],
            reviews,
            dataset.settings,
            draws,
        )
        for model in sheet.models
    }
    database = dataset.database
    return Results(
        dataset=dataset,
        sheet=sheet,
        columns=columns,
        pairs=pairs(tuple(columns.values()), draws),
        truth={review.id: truth_hash(review) for review in sheet.reviews},
        matching=matching_options(dataset.settings),
        database=None if database is None or sheet.imported else database.content_hash,
        findings=tuple(_findings(dataset, sheet, columns)),
    )


def _findings(
    dataset: Dataset, sheet: Sheet, columns: Mapping[str, Column]
) -> Iterator[Finding]:
    yield from dataset.findings
    yield from sheet.findings
    for model, own in columns.items():
        yield from _not_done(model, own, sheet)
        yield from _searches(model, own)
        yield from _junk(model, own, autojunk=dataset.settings.autojunk)
        yield from _looked_at(model, own)


def _not_done(model: str, own: Column, sheet: Sheet) -> Iterator[Finding]:
    left = [review.id for review in sheet.reviews if review.id not in own.rebuilt]
    if left:
        yield Finding(
            code="review_not_done",
            severity="warn",
            where=model,
            message="Reviews have no result yet and are in no mean.",
            n=len(left),
            example=left[0],
        )


def _searches(model: str, own: Column) -> Iterator[Finding]:
    fallbacks = [
        review
        for review, rebuilt in own.rebuilt.items()
        if any(searched.is_fallback for searched in rebuilt.searches)
    ]
    if fallbacks:
        yield Finding(
            code="plan_fallback",
            severity="warn",
            where=model,
            message="Search plans could not be read; the fixed plan was searched.",
            n=len(fallbacks),
            example=fallbacks[0],
        )
    empty = [
        f"{review}: {query.label or 'query'}"
        for review, rebuilt in own.rebuilt.items()
        for searched in rebuilt.searches
        for query, hits in zip(searched.queries, searched.hits, strict=True)
        if not hits
    ]
    if empty:
        yield Finding(
            code="no_hits",
            severity="info",
            where=model,
            message="Queries found no paper.",
            n=len(empty),
            example=empty[0],
        )
    cut = {
        review: most
        for review, rebuilt in own.rebuilt.items()
        if (most := max((searched.cut for searched in rebuilt.searches), default=0))
    }
    if cut:
        review, most = next(iter(cut.items()))
        yield Finding(
            code="candidates_cut",
            severity="info",
            where=model,
            message="Papers were found and are beyond max_candidates.",
            n=sum(cut.values()),
            example=f"{review}: {most}",
        )


def _junk(model: str, own: Column, *, autojunk: bool) -> Iterator[Finding]:
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


def _looked_at(model: str, own: Column) -> Iterator[Finding]:
    odd = [
        f"{review}: {each.message}"
        for review, every in own.suspicious.items()
        for each in every
    ]
    if odd:
        yield Finding(
            code="suspicious_match",
            severity="info",
            where=model,
            message="Matches that somebody should look at.",
            n=len(odd),
            example=odd[0],
        )
