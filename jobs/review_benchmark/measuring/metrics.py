"""Over reviews: what one agent comes to, with intervals drawn by review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jobs.metrics import (
    NOT_NEGATIVE,
    Ratio,
    Resamples,
    aggregate,
    mean_of,
    ratio,
    wilson,
    with_interval,
)
from jobs.review_benchmark.matching.rules import METHODS
from jobs.review_benchmark.measuring.benchmark import NONE, Benchmark, served_alone
from jobs.review_benchmark.measuring.lost import LOST_AT, PaperMatch
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.settings import Settings
from runner.scorecard import Metric, Target

MATCHED = (*METHODS.values(), NONE)
"""How a truth paper was matched, or that it was not."""


def metrics(
    rebuilt: Mapping[str, Rebuilt],
    benchmarks: Mapping[str, Benchmark],
    matches: Mapping[str, Sequence[PaperMatch]],
    settings: Settings,
    draws: Resamples,
) -> Iterator[Metric]:
    """All metrics of an agent; mappings are by review, ascending."""
    every = list(benchmarks.values())
    yield from _passed(every, settings)
    yield from _macro(every, settings, draws)
    yield from _micro(every, draws)
    yield from _counts(every)
    yield from _lost(matches, sum(own.truth for own in every))
    yield from _replicates(rebuilt)
    for review, own in benchmarks.items():
        yield from _review(review, own)


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
    every: Sequence[Benchmark], settings: Settings, draws: Resamples
) -> Iterator[Metric]:
    columns: Mapping[str, Sequence[float | None]] = {
        "recall": [own.recall for own in every],
        "precision": [own.precision for own in every],
        "ceiling": [own.ceiling for own in every],
        "retrieval_recall": [own.retrieval_recall for own in every],
        "screening_recall": [own.screening_recall for own in every],
        "recall_distinct": [own.recall_distinct for own in every],
    }
    ends = draws.intervals([mean_of(values) for values in columns.values()])
    for (name, values), own in zip(columns.items(), ends, strict=True):
        told = aggregate(values)
        target = Target(sense=">=", bound=settings.target_recall)
        yield Metric(
            path=f"macro.{name}",
            value=told.mean,
            n=told.n,
            n_defined=told.n_defined,
            lo=own.lo,
            hi=own.hi,
            mean=told.mean,
            std=told.std,
            definition=with_interval(f"{name}@1(mean over reviews)", own),
            target=target if name == "recall" else None,
        )
        for word, value in (("median", told.median), ("min", told.min)):
            if name in {"recall", "precision"}:
                yield Metric(
                    path=f"{word}.{name}",
                    value=value,
                    n=told.n,
                    n_defined=told.n_defined,
                    definition=f"{name}@1({word} over reviews)",
                )


def _micro(every: Sequence[Benchmark], draws: Resamples) -> Iterator[Metric]:
    truth = [own.truth for own in every]
    included = [own.found_and_included for own in every]
    sums = {
        "recall": Ratio(included, truth),
        "precision": Ratio(
            [own.credited for own in every], [own.included_rows for own in every]
        ),
        "ceiling": Ratio([own.found for own in every], truth),
        "retrieval_recall": Ratio([own.retrieved for own in every], truth),
        "screening_recall": Ratio(included, [own.retrieved for own in every]),
        "nnr": Ratio(
            [own.included_rows for own in every],
            [own.right_rows for own in every],
            NOT_NEGATIVE,
        ),
    }
    ends = draws.intervals(list(sums.values()))
    for (name, pooled), own in zip(sums.items(), ends, strict=True):
        over = int(sum(pooled.denominators))
        yield Metric(
            path=f"micro.{name}",
            value=ratio(sum(pooled.numerators), over),
            n=over,
            lo=own.lo,
            hi=own.hi,
            definition=with_interval(f"{name}@1(pooled over reviews)", own),
        )


def _counts(every: Sequence[Benchmark]) -> Iterator[Metric]:
    methods: Counter[str] = Counter()
    for own in every:
        methods.update(own.methods)
    truth = sum(own.truth for own in every)
    numbers = {
        "reviews": len(every),
        "truth": truth,
        "included": sum(own.included_rows for own in every),
        "found": sum(own.found for own in every),
        "found_and_included": sum(own.found_and_included for own in every),
        "not_found": sum(own.not_found for own in every),
        "found_but_excluded": sum(own.found_but_excluded for own in every),
        **{f"method.{name}": methods[name] for name in MATCHED},
    }
    for name, value in numbers.items():
        yield Metric(
            path=f"count.{name}", value=value, n=truth, definition=f"count@1({name})"
        )


def _lost(matches: Mapping[str, Sequence[PaperMatch]], truth: int) -> Iterator[Metric]:
    lost = Counter(match.lost_at for own in matches.values() for match in own)
    for step in LOST_AT:
        yield Metric(
            path=f"lost.{step}",
            value=lost[step],
            n=truth,
            definition=f"count@1(truth papers lost: {step})",
        )


def _replicates(rebuilt: Mapping[str, Rebuilt]) -> Iterator[Metric]:
    """Each replicate alone, where there are several."""
    number = max(
        (len(each.votes) for own in rebuilt.values() for each in own.candidates),
        default=0,
    )
    for replicate in range(number) if number > 1 else ():
        recall = aggregate(
            served_alone(own, replicate) / len(own.hits) for own in rebuilt.values()
        )
        yield Metric(
            path=f"replicate.{replicate + 1}.recall",
            value=recall.mean,
            n=recall.n,
            definition="recall@1(mean over reviews; one replicate by itself)",
        )


def _review(review: str, own: Benchmark) -> Iterator[Metric]:
    rates: Sequence[tuple[str, float | None, int]] = (
        ("recall", own.recall, own.truth),
        ("precision", own.precision, own.included_rows),
        ("ceiling", own.ceiling, own.truth),
        ("retrieval_recall", own.retrieval_recall, own.truth),
        ("screening_recall", own.screening_recall, own.retrieved),
        ("recall_distinct", own.recall_distinct, own.truth),
        ("nnr", own.nnr, own.right_rows),
    )
    for name, value, n in rates:
        yield Metric(
            path=f"review.{review}.{name}",
            value=value,
            n=n,
            definition=f"{name}@1(one review)",
        )
