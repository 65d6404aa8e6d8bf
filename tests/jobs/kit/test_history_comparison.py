"""tests.jobs.test_history_comparison"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.history import (
    HistoryRow,
    RowComparison,
    common_items,
    compare_rows,
    compare_with_best,
    part_changes,
    same_model_rows,
    with_previous,
)
from store.results import ItemScore, Milestone
from tests.jobs.remembered import milestone, parts, row

ALL = range(4)


def beside(now: Milestone, then: Milestone, *, across: bool = False) -> RowComparison:
    made = compare_rows(row(2, "a", now), row(1, "a", then), across=across)
    assert made is not None
    return made


def with_tries(value: float, *tries: float) -> Milestone:
    own = milestone({"a": {"CD1": ALL}})
    standing = ItemScore(got=value, of=4, passed=value == 4, tries=list(tries))
    return milestone(
        {"a": {"CD1": ALL}}, standings={"a": {**own.standings["a"], "CD1": standing}}
    )


def test_a_row_has_macro_and_micro_values_passes_and_verdicts() -> None:
    standings = {
        "CD1": ItemScore(got=1, of=4, passed=False, verdict=True),
        "CD2": ItemScore(got=2, of=2, passed=True, verdict=False),
        "CD3": ItemScore(got=0, of=2, passed=False),
    }
    own = row(1, "a", milestone({"a": {}}, standings={"a": standings}))
    assert own.macro() == pytest.approx(1.25 / 3)
    assert own.macro(("CD2",)) == 1.0
    assert own.micro == 3 / 8
    assert (own.passed, own.verdicts) == (1, (1, 2))


def test_only_reviews_that_both_runs_have_are_compared() -> None:
    now = milestone({"a": {"CD1": ALL, "CD2": []}})
    then = milestone({"a": {"CD1": ALL, "CD3": ALL}})
    made = beside(now, then)
    assert made.items == ("CD1",)
    assert made.delta == 0.0
    assert list(made.alerts(0.0)) == []


def test_another_truth_or_database_and_an_unfinished_run_are_not_comparable() -> None:
    got = {"a": {"CD1": ALL}}
    now = row(2, "a", milestone(got))
    for then in (
        milestone(got, same="other"),
        milestone(got, data="other"),
        milestone(got, partial=True),
    ):
        assert compare_rows(now, row(1, "a", then), across=False) is None
        assert compare_rows(row(3, "a", then), now, across=False) is None
    elsewhere = row(1, "a", milestone(got, data="other"))
    assert compare_rows(now, elsewhere, across=True) is not None
    other = row(1, "a", milestone(got, same="other"))
    assert compare_rows(now, other, across=True) is None


def test_a_fall_of_the_mean_is_an_alert_beyond_what_is_allowed_and_not_at_it() -> None:
    made = beside(
        milestone({"a": {"CD1": [0, 1], "CD2": [0]}}),
        milestone({"a": {"CD1": [0, 1, 2], "CD2": [0]}}),
    )
    assert made.delta == -0.125
    assert list(made.alerts(0.125)) == []
    (said,) = made.alerts(0.12)
    assert said == "macro recall of a fell by 0.1250 since r1, where 0.12 is the most."


def test_a_review_that_passed_and_fails_is_an_alert_of_its_own() -> None:
    made = beside(
        milestone({"a": {"CD1": [0, 1, 2], "CD2": [0, 1]}}),
        milestone({"a": {"CD1": ALL, "CD2": [0]}}),
    )
    assert made.delta == 0.0
    assert made.failed == ("CD1",)
    (said,) = made.alerts(1.0)
    assert said == "the review CD1 passed in r1 and fails with a in r2."


def test_a_fall_inside_the_range_of_replicates_is_no_alert() -> None:
    now, then = with_tries(3, 2, 4, 3), with_tries(4, 4, 4, 4)
    made = beside(now, then)
    assert made.spread == 0.5
    assert made.failed == ("CD1",)
    assert list(made.alerts(0.0)) == []
    assert len(list(beside(with_tries(1, 0, 2, 1), then).alerts(0.0))) == 2


def test_a_model_is_held_against_itself_and_a_new_one_against_the_run_before() -> None:
    got = {"CD1": ALL}
    rows = [
        row(1, "a", milestone({"a": got})),
        row(2, "b", milestone({"b": got})),
        row(3, "a", milestone({"a": got})),
        row(4, "a", milestone({"a": got, "c": got})),
        row(4, "c", milestone({"a": got, "c": got})),
    ]
    runs = [then and then.run for _, then in with_previous(rows, across=False)]
    assert runs == [None, "r1", "r1", "r3", None]


def test_the_best_run_is_that_of_the_highest_mean_over_the_common_reviews() -> None:
    then = [
        row(1, "a", milestone({"a": {"CD1": ALL}})),
        row(2, "a", milestone({"a": {"CD1": ALL, "CD2": ALL}})),
        row(3, "a", milestone({"a": {"CD1": ALL, "CD2": ALL}})),
        row(4, "a", milestone({"a": {"CD1": [0], "CD2": ALL}})),
        row(5, "a", milestone({"a": {"CD9": ALL}})),
    ]
    now = row(6, "a", milestone({"a": {"CD1": [0], "CD2": ALL}}))
    best = compare_with_best(now, then, across=False)
    assert best is not None
    assert (best.then.run, best.delta) == ("r3", -0.375)
    assert compare_with_best(now, then[-1:], across=False) is None


def test_studies_lost_and_gained_come_with_their_scores_and_the_step() -> None:
    now, then = {"a": {"CD1": [0, 1]}}, {"a": {"CD1": [1, 2]}}
    made = beside(milestone(now), milestone(then))
    gained, lost = part_changes(made, parts(now), parts(then))
    assert (gained.part, gained.is_lost, gained.after.score) == ("study 0", False, 5.0)
    assert (lost.part, lost.is_lost, lost.before.score) == ("study 2", True, 5.0)
    assert (lost.after.score, lost.after.lost_at) == (2.0, "below_threshold")


REVIEWS = st.dictionaries(
    st.sampled_from(["CD1", "CD2", "CD3"]), st.just(ALL), min_size=1
)
MILESTONES = st.builds(
    milestone,
    st.dictionaries(st.sampled_from("ab"), REVIEWS, min_size=1),
    data=st.sampled_from("de"),
    same=st.sampled_from("st"),
    partial=st.booleans(),
)


def slowly(
    now: HistoryRow, before: Sequence[HistoryRow], *, across: bool
) -> HistoryRow | None:
    fit = [own for own in before if common_items(now, own, across=across)]
    return next(reversed(same_model_rows(now, fit)), None)


@given(st.lists(MILESTONES, max_size=6), st.booleans())
def test_the_last_comparable_row_is_found_as_by_looking_through_all(
    milestones: list[Milestone], across: bool
) -> None:
    rows = [
        row(day, model, own)
        for day, own in enumerate(milestones)
        for model in own.standings
    ]
    for at, (now, then) in enumerate(with_previous(rows, across=across)):
        earlier = [own for own in rows[:at] if own.run != now.run]
        assert then == slowly(now, earlier, across=across)
