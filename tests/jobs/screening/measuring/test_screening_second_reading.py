"""Whole scorings against the plain reading of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.screening.inputs import ScreeningDataset
from jobs.screening.results import ScreeningModelResults, measure_decisions
from jobs.screening.settings import ScreeningSettings
from tests.jobs.screening import plain_scores as plain
from tests.jobs.screening.plain_scores import Line, Value
from tests.jobs.screening.told_decisions import sheet

B, SEED, LEVEL = 25, 7, 0.9

LINES = st.lists(
    st.builds(
        Line,
        review=st.sampled_from("abc"),
        paper=st.just(""),
        kind=st.sampled_from(["included", "included", "random", "near-miss"]),
        outcome=st.sampled_from(
            ["include", "exclude", "include", "exclude", "unclear", "failed", "missing"]
        ),
        p=st.sampled_from([None, 0.0, 0.25, 0.25, 0.5, 0.75, 1.0]),
        ended=st.sampled_from([0, 1, 1]),
    ),
    min_size=1,
    max_size=24,
)
READINGS = st.sampled_from(["outside", "include", "exclude"])
TAUS = st.sampled_from([None, None, 0.25, 0.5])


def numbered(lines: Iterable[Line]) -> list[Line]:
    return [replace(line, paper=str(7 * at % 25)) for at, line in enumerate(lines)]


def scored(lines: Sequence[Line], **values: Any) -> ScreeningModelResults:
    found = sheet(
        [(own.review, own.paper, own.kind, own.outcome, own.p) for own in lines]
    )
    own = replace(
        found.decisions[0],
        ended=np.array([line.ended for line in lines]),
        stages=("title", "abstract"),
    )
    drawn = {"boot_b": B, "interval": "percentile"}
    given = ScreeningSettings(boot_seed=SEED, level=LEVEL, **{**drawn, **values})
    results = measure_decisions(
        ScreeningDataset(settings=given), replace(found, decisions=(own,))
    )
    return results.columns["model 1"]


def near(value: Value) -> Any:
    return value if value is None else pytest.approx(float(value), rel=1e-9, abs=1e-9)


def ends(lines: Sequence[Line], statistic: Callable[[Sequence[str]], Value]) -> Any:
    reviews = list(plain.by_review(lines))
    level = Fraction(str(LEVEL))
    return tuple(map(near, plain.interval(statistic, reviews, B, SEED, level)))


@settings(max_examples=20, deadline=None)
@given(LINES, READINGS, TAUS)
def test_pooled_rates_and_their_intervals(
    drawn: list[Line], unclear: str, tau: float | None
) -> None:
    lines = numbered(drawn)
    found = scored(lines, unclear=unclear, threshold=tau, prevalence=(0.02, 0.3))
    for kind in ("all", "random"):
        own = [x for x in lines if x.is_positive or kind in {"all", x.kind}]
        if kind not in found.strata:
            continue
        by_path = found.strata[kind].by_path

        @cache
        def of(reviews: tuple[str, ...], own: Sequence[Line] = tuple(own)) -> Any:
            parts = plain.by_review(own)
            together = [x for review in reviews for x in parts.get(review, ())]
            return plain.pooled(together, unclear, tau)

        whole = of(tuple(plain.by_review(lines)))
        for word, value in whole.items():
            metric = by_path[f"micro.{word}"]
            assert metric.value == near(value), word
            assert (metric.lo, metric.hi) == ends(
                lines, lambda names, word=word, of=of: of(tuple(names))[word]
            ), word
        for share in ("0.02", "0.3"):
            metric = by_path[f"micro.ppv_at_{share}"]
            rates = whole["sensitivity"], whole["specificity"]
            assert metric.value == near(plain.foretold(*rates, Fraction(share)))


@settings(max_examples=20, deadline=None)
@given(LINES)
def test_what_reading_in_order_saves_and_means_over_reviews(drawn: list[Line]) -> None:
    lines = numbered(drawn)
    found = scored(lines).strata["all"]
    parts = plain.by_review(lines)
    tables = {
        review: {**plain.pooled(own), **plain.ranking(own)}
        for review, own in parts.items()
    }
    for word in tables[lines[0].review]:
        values = {review: table[word] for review, table in tables.items()}
        assert found.by_review[word] == [near(value) for value in values.values()]
        metric = found.by_path[f"macro.{word}"]
        assert metric.value == near(plain.mean([*values.values()]))
        assert metric.std == near(plain.spread([*values.values()]))
        there = [value for value in values.values() if value is not None]
        assert (metric.n, metric.n_defined) == (len(parts), len(there))
        assert (metric.lo, metric.hi) == ends(
            lines,
            lambda names, values=values: plain.mean([values[name] for name in names]),
        )


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_thresholds_are_chosen_and_judged(drawn: list[Line]) -> None:
    lines = numbered(drawn)
    own = scored(lines, boot_b=0)
    found = {path: each.value for path, each in own.by_path().items()}
    tau = plain.threshold(lines)
    assert found["threshold95.in_sample.threshold"] == tau
    calls = [
        (x.is_positive, "include" if x.p >= tau else "exclude")
        for x in lines
        if tau is not None and x.p is not None
    ]
    for choice, cells in (
        ("in_sample", plain.matrix(calls)),
        ("leave_one_out", plain.left_out(lines)),
    ):
        rates = plain.rates(*cells, len(lines))
        for word in ("sensitivity", "specificity"):
            assert found[f"threshold95.{choice}.{word}"] == near(rates[word])
    assert [row[3] for row in own.thresholds.table() if row[1] == "each"] == sorted(
        {x.p for x in lines if x.p is not None}, reverse=True
    )
