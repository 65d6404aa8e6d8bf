"""Degenerate reviews, ties, readings of what is undecided, and order of stages.

Whole scorings against the plain reading of their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.comparison.difference import OPPOSITE
from jobs.screening.decisions import ScreeningPredictions
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.rates import RATIO_CAVEAT
from jobs.screening.results import (
    ScreeningModelResults,
    ScreeningPair,
    measure_decisions,
    pairs,
)
from jobs.screening.score import compared
from jobs.screening.settings import ScreeningSettings
from runner.scorecard import Metric
from tests.jobs.screening import plain_scores as plain
from tests.jobs.screening.plain_scores import Line, Value
from tests.jobs.screening.told_decisions import Said, sheet

RANKING = ("wss95", "tnr95", "recall_at_10pct", "atd", "loss", "ndcg", "auroc", "ap")


def column(found: ScreeningPredictions, **values: Any) -> ScreeningModelResults:
    results = measure_decisions(
        ScreeningDataset(settings=ScreeningSettings(**{"boot_b": 20, **values})), found
    )
    return results.columns["model 1"]


def value(own: ScreeningModelResults, path: str) -> float | None:
    return own.by_path()[path].value


def rows(review: str, *said: tuple[str, str, float | None]) -> list[Said]:
    return [
        (review, str(at), kind, outcome, p)
        for at, (kind, outcome, p) in enumerate(said)
    ]


IN, OUT = "included", "random"


def test_a_review_of_one_class_has_no_ranking_and_means_say_so() -> None:
    both = rows("a", (IN, "include", 0.9), (OUT, "exclude", 0.1))
    one = rows("b", (IN, "include", 0.9), (IN, "exclude", 0.2))
    own = column(sheet([*both, *one]))
    for word in RANKING:
        assert own.strata["all"].by_review[word][1] is None
        metric = own.by_path()[f"all.macro.{word}"]
        assert (metric.n, metric.n_defined) == (2, 1)
    assert value(own, "all.macro.auroc") == 1.0
    assert own.strata["all"].by_review["specificity"] == [1.0, None]


def test_all_scores_tied_are_read_by_id_as_text() -> None:
    said = [
        ("a", paper, IN if paper == "2" else OUT, "unclear", 0.5)
        for paper in ("9", "2", "10")
    ]
    own = column(sheet(said))
    assert value(own, "all.macro.auroc") == 0.5
    # "10", "2", "9": text, not numbers
    assert value(own, "all.macro.last_relevant_rank") == 2


def test_a_tenth_of_less_than_ten_records_is_none() -> None:
    said = rows("a", (IN, "include", 0.9), *[(OUT, "exclude", 0.1)] * 8)
    assert value(column(sheet(said)), "all.macro.recall_at_10pct") == 0.0
    assert (
        value(column(sheet(said), recall_share="ceil"), "all.macro.recall_at_10pct")
        == 1.0
    )


def test_who_ended_early_ranks_below_every_survivor() -> None:
    said = rows(
        "a", (IN, "exclude", 0.09), (OUT, "exclude", 0.0), (OUT, "exclude", 0.01)
    )
    found = sheet(said)
    own = replace(
        found.decisions[0], ended=np.array([0, 1, 1]), stages=("title", "abstract")
    )
    assert value(column(found), "all.macro.last_relevant_rank") == 1
    staged = column(replace(found, decisions=(own,)))
    assert value(staged, "all.macro.last_relevant_rank") == 3
    assert value(staged, "all.macro.auroc") == 0.0


def test_what_is_undecided_is_outside_or_read_one_way() -> None:
    said = rows(
        "a",
        (IN, "include", 0.9),
        (IN, "unclear", None),
        (IN, "failed", None),
        (OUT, "exclude", 0.1),
        (OUT, "unparsed", None),
    )
    found = sheet(said)
    sensitivity = "all.micro.sensitivity"
    own = column(found)
    assert (value(own, sensitivity), value(own, "all.micro.coverage")) == (1.0, 0.4)
    assert value(own, "all.micro.as_exclude.sensitivity") == pytest.approx(1 / 3)
    assert value(own, "all.micro.as_include.specificity") == 0.5
    assert value(own, "all.micro.imputed") == 3
    excluded = column(found, unclear="exclude")
    assert value(excluded, sensitivity) == pytest.approx(1 / 3)
    assert value(excluded, "all.micro.coverage") == 1.0


def test_a_threshold_decides_where_there_is_a_probability() -> None:
    said = rows("a", (IN, "exclude", 0.3), (IN, "exclude", None), (OUT, "include", 0.1))
    own = column(sheet(said), threshold=0.3)
    cells = [value(own, f"all.micro.{word}") for word in ("tp", "fn", "fp", "tn")]
    assert cells == [1, 1, 0, 1]


def test_nothing_decided_divides_by_nothing() -> None:
    said = rows("a", (IN, "missing", None), (OUT, "missing", None))
    own = column(sheet(said))
    assert value(own, "all.micro.coverage") == 0.0
    for word in ("sensitivity", "specificity", "precision", "nnr", "kappa", "ac1"):
        assert value(own, f"all.micro.{word}") is None


def test_the_chosen_threshold_is_judged_on_reviews_it_has_not_seen() -> None:
    high = rows("a", (IN, "include", 0.9), (IN, "include", 0.8), (OUT, "exclude", 0.1))
    low = rows("b", (IN, "include", 0.4), (OUT, "exclude", 0.3))
    own = column(sheet([*high, *low]))
    assert value(own, "threshold95.in_sample.threshold") == 0.4
    assert value(own, "threshold95.in_sample.sensitivity") == 1.0
    # b is judged at 0.8, a at 0.4
    assert value(own, "threshold95.leave_one_out.sensitivity") == pytest.approx(2 / 3)
    assert value(own, "threshold95.leave_one_out.specificity") == 1.0


def test_only_reviews_with_both_kinds_compare_them() -> None:
    said = [
        *rows(
            "a",
            (IN, "include", 0.9),
            ("near-miss", "include", 0.6),
            (OUT, "exclude", 0.1),
        ),
        *rows("b", (IN, "include", 0.9), (OUT, "include", 0.7)),
    ]
    gap = column(sheet(said)).by_path()["kinds.near-miss-random.specificity"]
    assert (gap.value, gap.n) == (-1.0, 1)


def test_what_goes_by_the_ratio_of_negatives_says_so() -> None:
    said = rows("a", (IN, "include", 0.9), (OUT, "exclude", 0.1))
    known = column(sheet(said), wss_level=(0.8,)).by_path()
    for path in ("all.micro.precision", "all.macro.f1", "all.macro.wss80"):
        assert RATIO_CAVEAT in (known[path].note or "")
    assert RATIO_CAVEAT not in (known["all.macro.tnr95"].note or "")


def test_reasons_that_nobody_knows_are_not_the_reason_other() -> None:
    said = rows("a", (IN, "include", 0.9), *[("true-excluded", "exclude", 0.1)] * 3)
    found = sheet(said)
    assert column(found).reasons is None
    coded = replace(found.records, reason_code=("", "population", "other", ""))
    told = replace(found.decisions[0], reason_code=["population"] * 4)
    own = column(replace(found, records=coded, decisions=(told,)))
    paths = [f"reasons.{word}" for word in ("agreement", "other", "uncoded")]
    assert [value(own, path) for path in paths] == [1.0, 1, 1]


few = settings(max_examples=25)
"""Each example is scored twice."""

SAID = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from([IN, OUT, "near-miss"]),
        st.sampled_from(["include", "exclude", "unclear", "failed"]),
        st.sampled_from([None, 0.0, 0.3, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=12,
)


@few
@given(SAID, st.randoms(use_true_random=False))
def test_the_order_of_records_changes_no_number(
    said: list[tuple[str, str, str, float | None]], random: Any
) -> None:
    plain = [(review, str(at), *own) for at, (review, *own) in enumerate(said)]
    mixed = plain[:]
    random.shuffle(mixed)
    assert by_path(plain) == by_path(mixed)


def by_path(said: list[Any]) -> dict[str, Metric]:
    return dict(column(sheet(said), boot_b=5).by_path())


def paired(first: list[Said], second: list[Said]) -> ScreeningPair:
    found = sheet(first, second)
    given_to = ScreeningSettings(boot_b=20, interval="percentile")
    columns = measure_decisions(ScreeningDataset(settings=given_to), found).columns
    (own,) = pairs(
        {model: own.view for model, own in columns.items()},
        {model: compared(own) for model, own in columns.items()},
        given_to,
    )
    return own


@given(SAID, SAID)
def test_both_orders_of_two_models_give_mirrored_results(
    said: list[tuple[str, str, str, float | None]],
    others: list[tuple[str, str, str, float | None]],
) -> None:
    first: list[Said] = [
        (review, str(at), *own) for at, (review, *own) in enumerate(said)
    ]
    second: list[Said] = [
        (*row[:3], *others[at % len(others)][2:]) for at, row in enumerate(first)
    ]
    both = paired(first, second), paired(second, first)
    left, right = (pair.tested for pair in both)
    assert (left.n, left.left_alone, left.p) == (right.n, right.right_alone, right.p)
    alone = left.left_alone, left.right_alone
    worse = sum(comb(sum(alone), k) for k in range(min(alone) + 1))
    likely = min(1.0, 2 * worse / 2 ** sum(alone))
    assert left.p == (pytest.approx(likely, rel=1e-9) if left.n else None)
    assert left.p_holm == left.p
    for path, one in both[0].compared.metrics.items():
        other = both[1].compared.metrics[path]
        a, b = one.gap.value, other.gap.value
        assert a == (None if b is None else -b)
        lo, hi = one.gap.interval.lo, other.gap.interval.hi
        assert lo == (None if hi is None else pytest.approx(-hi))
        assert one.p_values == other.p_values
        assert OPPOSITE[one.verdict] == other.verdict
    assert both[0].agreement.kappa == both[1].agreement.kappa


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
    assert [
        judged.threshold
        for judged in own.thresholds.judged()
        if judged.choice == "each"
    ] == sorted({x.p for x in lines if x.p is not None}, reverse=True)
