"""Over reviews: what one agent comes to, with intervals drawn by review."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.metrics import Ratio, Resamples, mean_of, ratio, wilson
from jobs.review_benchmark.measuring.benchmark import Benchmark, benchmarked
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.settings import Settings
from runner.scorecard import Metric, Target

METHODS = ("pmid", "doi", "title_fuzzy", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What one agent comes to."""

    model: str
    rebuilt: Mapping[str, Rebuilt]  #: by review, ascending
    benchmarks: Mapping[str, Benchmark]  #: by review, ascending
    metrics: tuple[Metric, ...]


def column(model: str, rebuilt: Sequence[Rebuilt], settings: Settings) -> Column:
    """Measure an agent on its reviews, ascending by id."""
    benchmarks = {
        own.review: benchmarked(own.hits, own.documents, own.included)
        for own in rebuilt
    }
    return Column(
        model=model,
        rebuilt={own.review: own for own in rebuilt},
        benchmarks=benchmarks,
        metrics=tuple(_metrics(benchmarks, settings)),
    )


def _metrics(found: Mapping[str, Benchmark], settings: Settings) -> Iterator[Metric]:
    draws = Resamples(
        tuple(found),
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="review",
    )
    every = list(found.values())
    yield from _passed(every, settings)
    means: Mapping[str, Sequence[float | None]] = {
        "recall": [own.recall for own in every],
        "precision": [own.precision for own in every],
        "ceiling": [own.ceiling for own in every],
    }
    for name, values in means.items():
        yield _macro(name, values, draws, settings)
    sums = {
        "recall": Ratio(
            [own.found_and_included for own in every], [own.truth for own in every]
        ),
        "precision": Ratio(
            [own.right_rows for own in every], [own.included_rows for own in every]
        ),
        "ceiling": Ratio([own.found for own in every], [own.truth for own in every]),
    }
    for (name, pooled), ends in zip(
        sums.items(), draws.intervals(list(sums.values())), strict=True
    ):
        over = float(sum(pooled.denominators))
        yield Metric(
            path=f"micro.{name}",
            value=ratio(float(sum(pooled.numerators)), over),
            n=int(over),
            lo=ends.lo,
            hi=ends.hi,
            definition=f"{name}@1(pooled over reviews; {draws.definition})",
        )
    yield from _counts(every)
    for review, own in found.items():
        for name, value in (("recall", own.recall), ("precision", own.precision)):
            yield Metric(
                path=f"review.{review}.{name}",
                value=value,
                n=own.truth if name == "recall" else own.included_rows,
                definition=f"{name}@1(one review)",
            )


def _passed(every: Sequence[Benchmark], settings: Settings) -> Iterator[Metric]:
    passed = sum(own.passes(settings.target_recall) for own in every)
    ends = wilson(passed, len(every), settings.level)
    yield Metric(
        path="passed",
        value=passed,
        n=len(every),
        definition=f"passed@1(reviews with recall >= {settings.target_recall:g})",
    )
    yield Metric(
        path="passed_rate",
        value=ratio(passed, len(every)),
        n=len(every),
        lo=ends.lo,
        hi=ends.hi,
        definition=f"passed_rate@1(passed / reviews; Wilson, level={settings.level})",
    )


def _macro(
    name: str,
    values: Sequence[float | None],
    draws: Resamples,
    settings: Settings,
) -> Metric:
    defined = [value for value in values if value is not None]
    (ends,) = draws.intervals([mean_of(values)])
    is_recall = name == "recall"
    return Metric(
        path=f"macro.{name}",
        value=statistics.fmean(defined) if defined else None,
        n=len(values),
        n_defined=len(defined),
        lo=ends.lo,
        hi=ends.hi,
        std=statistics.stdev(defined) if len(defined) > 1 else None,
        definition=f"{name}@1(mean over reviews; {draws.definition})",
        meaning="share of a review's included studies that were found and included"
        if is_recall
        else "",
        target=Target(sense=">=", bound=settings.target_recall) if is_recall else None,
    )


def _counts(every: Sequence[Benchmark]) -> Iterator[Metric]:
    methods: Counter[str] = Counter()
    for own in every:
        methods.update(own.methods)
    numbers = {
        "reviews": len(every),
        "truth": sum(own.truth for own in every),
        "included": sum(own.included_rows for own in every),
        "found": sum(own.found for own in every),
        "found_and_included": sum(own.found_and_included for own in every),
        "not_found": sum(own.not_found for own in every),
        "found_but_excluded": sum(own.found_but_excluded for own in every),
        **{f"method.{name}": methods[name] for name in METHODS},
    }
    truth = numbers["truth"]
    for name, value in numbers.items():
        yield Metric(
            path=f"count.{name}", value=value, n=truth, definition=f"count@1({name})"
        )
