"""The budget alone: whatever is reserved and settled in which order, the cap holds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.money.budget import Budget, BudgetStatistics
from store.slices import SLICES, Slices

CAP = 10_000


class Calls:
    """Sends what has room, and ends it in any order."""

    def __init__(self, budget: Budget, *, excess: float = 1.0) -> None:
        self.budget = budget
        self.excess = excess  #: of the true cost over the worst case, at most
        self.billed = 0
        self.out: list[tuple[int, int]] = []

    def send(self, worst: int) -> None:
        if self.budget.has_room(worst):
            self.out.append((worst, self.budget.reserve(worst)))

    def end(self, data: st.DataObject) -> None:
        worst, reserved = self.out.pop(
            data.draw(st.integers(0, len(self.out) - 1), label="which")
        )
        cost = data.draw(st.integers(0, int(worst * self.excess)), label="cost")
        is_told = data.draw(st.booleans(), label="is told")
        self.billed += cost
        self.budget.settle(worst, cost if is_told else None, reserved_pico=reserved)


@given(
    worst_cases=st.lists(st.integers(0, CAP + 100), max_size=60),
    before=st.integers(0, CAP),
    data=st.data(),
)
def test_the_cap_holds_and_reservations_return_to_zero(
    worst_cases: list[int], before: int, data: st.DataObject
) -> None:
    budget = Budget(CAP, spent_pico=before)
    calls = Calls(budget)
    for worst in worst_cases:
        calls.send(worst)
        while calls.out and data.draw(st.booleans(), label="one ends"):
            calls.end(data)
        seen = budget.statistics()
        total = seen.spent_pico + seen.possible_pico + seen.reserved_pico
        assert before + calls.billed <= total <= CAP
    while calls.out:
        calls.end(data)
    assert budget.statistics().reserved_pico == 0


def test_a_cost_is_settled_and_an_unknown_one_keeps_its_worst_case() -> None:
    budget = Budget(100)
    for _ in range(3):
        assert budget.reserve(30) == 30
    assert not budget.has_room(30)
    budget.settle(30, 12, reserved_pico=30)
    budget.settle(30, None, reserved_pico=30)
    budget.settle(30, 0, reserved_pico=30)
    assert budget.statistics() == BudgetStatistics(
        cap_pico=100, spent_pico=12, possible_pico=30, reserved_pico=0
    )
    assert budget.has_room(58)
    assert not budget.has_room(59)


def test_what_is_free_has_room_even_where_the_cap_is_passed() -> None:
    budget = Budget(10, spent_pico=11)
    assert budget.has_room(0)
    assert not budget.has_room(1)


def test_without_a_cap_there_is_always_room_and_the_sums_are_kept() -> None:
    budget = Budget()
    assert budget.has_room(10**18)
    budget.settle(7, 5, reserved_pico=budget.reserve(7))
    assert budget.statistics().spent_pico == 5
    budget.add(1)
    assert budget.statistics().cap_pico is None


def test_a_raised_cap_makes_room() -> None:
    budget = Budget(10)
    assert not budget.has_room(15)
    budget.add(5)
    assert budget.has_room(15)


def test_worst_cases_that_prove_too_low_are_raised_from_then_on() -> None:
    """As with a tokenizer whose tokens are shorter than was thought."""
    budget = Budget(1000)
    reserved = [budget.reserve(100) for _ in range(3)]
    for held in reserved:
        # all were underrated by the same factor, which must not multiply itself
        budget.settle(100, 130, reserved_pico=held)
    assert budget.statistics().spent_pico == 390
    assert budget.reserve(100) == pytest.approx(130, abs=1)
    assert not budget.has_room(400)


@given(worst_cases=st.lists(st.integers(1, 500), min_size=1, max_size=60))
def test_once_known_a_provider_that_bills_half_as_much_again_keeps_the_cap(
    worst_cases: list[int],
) -> None:
    budget = Budget(CAP)
    billed = 0
    for worst in worst_cases:
        if budget.has_room(worst):
            reserved = budget.reserve(worst)
            billed += worst * 3 // 2
            budget.settle(worst, worst * 3 // 2, reserved_pico=reserved)
    # only the first call could not know
    assert billed <= CAP + 250


@given(cap=st.integers(0, 10**6), more=st.integers(0, 10**6), count=st.integers(1, 40))
def test_those_who_spend_apart_keep_the_cap_together(
    cap: int, more: int, count: int
) -> None:
    shares = [Fraction(len(Slices.of(i, count)), SLICES) for i in range(count)]
    budgets = [Budget(cap, share=share) for share in shares]
    for budget in budgets:
        budget.add(more)
    caps = [budget.statistics().cap_pico or 0 for budget in budgets]
    assert cap + more - 2 * count <= sum(caps) <= cap + more
