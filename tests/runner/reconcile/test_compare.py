"""Calls against lines and sums: what is settled, what is named, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from runner.errors import DatasetError
from runner.messages import Usage
from runner.reconcile.attempts import CallOutcome, SentCall
from runner.reconcile.causes import BillCause
from runner.reconcile.report import Reconciliation
from runner.reconcile.usage_file import US, UsageLine
from tests.runner.reconcile.calls import (
    CACHED,
    IN,
    OUT,
    START,
    WRITTEN,
    call_of,
    compared,
    cost_of,
    line_of,
)


def _lost(n: int, outcome: CallOutcome = CallOutcome.UNKNOWN) -> SentCall:
    return call_of(
        n,
        outcome=outcome,
        usage=None,
        request_id=None,
        ended_us=None,
        cost_pico=None if outcome is not CallOutcome.FAILED else 0,
        possible_pico=10**11 if outcome is not CallOutcome.FAILED else 0,
    )


def _named(report: Reconciliation) -> list[tuple[str, int, int | None]]:
    return [
        (d.cause.value, d.amount_pico, d.call.task if d.call else None)
        for d in report.differences
    ]


def test_a_right_bill_leaves_nothing() -> None:
    report = compared([call_of(n) for n in range(9)], [line_of(n) for n in range(9)])
    assert not report.differs
    assert report.residual_pico == 0
    assert report.billed_pico == report.logged_pico > 0


def test_lines_without_a_known_id_are_matched_by_time_and_tokens() -> None:
    calls = [call_of(n, request_id=None) for n in range(9)]
    lines = [line_of(n, ids=()) for n in reversed(range(9))]
    assert not compared(calls, lines).differs


def test_the_id_in_the_body_of_a_reply_counts() -> None:
    calls = [call_of(1), call_of(2)]
    # times and tokens say nothing here
    bare = {"tokens_in": None, "tokens_out": None, "start_us": None}
    lines = [line_of(n, ids=(f"gen-{n}",), **bare) for n in (1, 2)]
    assert len(compared(calls, lines).differences) == 4
    report = compared(calls, lines, bodies={1: "gen-1", 2: "gen-2"})
    assert not report.differs


@pytest.mark.parametrize(
    "outcome", [CallOutcome.UNKNOWN, CallOutcome.LOST, CallOutcome.NO_USAGE]
)
def test_a_call_of_unknown_cost_is_settled(outcome: CallOutcome) -> None:
    lines = [line_of(1), line_of(2, ids=("provider-2",))]
    report = compared([call_of(1), _lost(2, outcome)], lines)
    (settlement,) = report.settlements
    assert settlement.billed_pico == line_of(2).billed_pico
    assert settlement.row == 2
    assert not report.differs
    assert report.billed_pico == report.logged_pico + report.settled_pico


def test_a_call_of_unknown_cost_without_a_line_was_not_billed() -> None:
    report = compared([call_of(1), _lost(2)], [line_of(1)])
    assert [(s.billed_pico, s.row) for s in report.settlements] == [(0, None)]
    assert not report.differs


def test_a_settled_call_is_misbilled_like_another_one() -> None:
    usage = call_of(2).usage
    assert usage is not None
    full = cost_of(replace(usage, tokens_cached=0))
    report = compared([_lost(2)], [line_of(2, billed_pico=full)])
    assert report.settled_pico == line_of(2).billed_pico
    assert _named(report) == [("cache read", full - report.settled_pico, 2)]


def test_the_same_prompt_tells_which_call_was_lost() -> None:
    """Two calls are lost at a time; the prompts of their repetitions are known."""
    first, second = _lost(1), _lost(2)
    again = [
        call_of(n, attempt=2, started_us=START + 60 * US, ended_us=START + 61 * US)
        for n in (1, 2)
    ]
    lost = [line_of(n, ids=("?",), start_us=START + 2 * US) for n in (1,)]
    report = compared([first, second, *again], [*lost, line_of(1, 8), line_of(2, 9)])
    assert {s.call.task: s.billed_pico for s in report.settlements} == {
        1: line_of(1).billed_pico,
        2: 0,
    }
    assert not report.differs


def test_a_misbilled_line_does_not_take_the_call_of_another_one() -> None:
    """All within the resolution of the file, and with the same prompt."""
    at = {"request_id": None, "started_us": START, "ended_us": START + 8_000}
    usage = call_of(1).usage
    assert usage is not None
    other = replace(usage, tokens_out=7)
    lost = _lost(2, CallOutcome.LOST)
    lost = replace(lost, started_us=START + 14_000, ended_us=START + 16_000)
    again = call_of(
        2, attempt=2, usage=other, cost_pico=cost_of(other), request_id=None
    )
    twice = replace(usage, tokens_out=usage.tokens_out + 10, tokens_reasoning=20)
    lines = [
        line_of(1, 1, ids=(), start_us=START + 7_000),
        line_of(1, 2, ids=(), start_us=START + 15_000, tokens_out=7),
        line_of(1, 3, ids=(), start_us=again.started_us, tokens_out=7),
    ]
    lines[0] = replace(
        lines[0],
        tokens_out=twice.tokens_out,
        tokens_reasoning=20,
        billed_pico=cost_of(twice),
    )
    lines[1:] = [replace(line, billed_pico=cost_of(other)) for line in lines[1:]]
    report = compared([call_of(1, **at), lost, again], lines)
    assert _named(report) == [("reasoning", 10 * OUT, 1)]
    assert [s.row for s in report.settlements] == [2]


def test_of_two_calls_with_the_same_prompt_more_equal_counts_decide() -> None:
    first, second = call_of(1, request_id=None), call_of(2, request_id=None)
    assert first.usage is not None
    assert second.usage is not None
    usage = replace(second.usage, tokens_in=first.usage.tokens_in)
    second = replace(
        second, usage=usage, cost_pico=cost_of(usage), started_us=first.started_us
    )
    lines = []
    for row, of in ((1, usage), (2, first.usage)):
        twice = replace(of, tokens_out=of.tokens_out + 10, tokens_reasoning=20)
        line = line_of(1, row, ids=(), tokens_out=twice.tokens_out, tokens_reasoning=20)
        lines.append(
            replace(line, tokens_cached=of.tokens_cached, billed_pico=cost_of(twice))
        )
    report = compared([first, second], lines)
    assert _named(report) == [("reasoning", 10 * OUT, n) for n in (2, 1)]


def _billed(n: int, usage: Usage) -> UsageLine:
    return line_of(n, billed_pico=cost_of(usage))


USAGE = call_of(3).usage or Usage(tokens_in=0, tokens_out=0)
MISBILLED = {
    "reasoning": _billed(3, replace(USAGE, tokens_out=USAGE.tokens_out + 10)),
    "cache read": _billed(3, replace(USAGE, tokens_cached=0)),
    "tier": line_of(3, billed_pico=2 * cost_of(replace(USAGE))),
    "batch": line_of(3, billed_pico=cost_of(USAGE) // 2),
    "prompt tokens": replace(
        _billed(3, replace(USAGE, tokens_in=2_000)), tokens_in=2_000
    ),
    "output tokens": replace(_billed(3, replace(USAGE, tokens_out=99)), tokens_out=99),
    "price table": line_of(3, billed_pico=cost_of(USAGE) + 150_000 * 912),
    "unexplained": line_of(3, billed_pico=cost_of(USAGE) + 12_345_677),
}


@pytest.mark.parametrize("cause", MISBILLED)
def test_each_cause_is_named_with_its_amount(cause: str) -> None:
    calls = [call_of(n) for n in range(5)]
    lines = [MISBILLED[cause] if n == 3 else line_of(n) for n in range(5)]
    report = compared(calls, lines)
    expected = (MISBILLED[cause].billed_pico or 0) - cost_of(USAGE)
    assert _named(report) == [(cause, expected, 3)]
    assert report.residual_pico == (expected if cause == "unexplained" else 0)
    assert report.differs


@pytest.mark.parametrize("stated", [0, None])
def test_written_tokens_at_another_price_are_named(stated: int | None) -> None:
    written = replace(USAGE, tokens_cache_write=200)
    call = call_of(3, usage=written, cost_pico=cost_of(written))
    line = line_of(3, billed_pico=cost_of(USAGE), tokens_cache_write=stated)
    report = compared([call], [line])
    assert _named(report) == [("cache write", 200 * (IN - WRITTEN), 3)]


def test_two_causes_in_stated_tokens_are_told_apart() -> None:
    usage = replace(USAGE, tokens_cached=0, tokens_in=USAGE.tokens_in + 5)
    line = replace(_billed(3, usage), tokens_cached=0, tokens_in=usage.tokens_in)
    report = compared([call_of(3)], [line])
    assert _named(report) == [
        ("cache read", USAGE.tokens_cached * (IN - CACHED), 3),
        ("prompt tokens", 5 * IN, 3),
    ]


def test_a_line_that_comes_twice_is_a_double_charge_with_its_id_or_without() -> None:
    for ids in (("req_1",), ("another",), ()):
        report = compared(
            [call_of(1), call_of(2)], [line_of(1), line_of(1, 7, ids=ids), line_of(2)]
        )
        assert _named(report) == [("double charge", line_of(1).billed_pico, 1)]


def test_of_two_lines_the_right_one_is_that_of_the_call() -> None:
    wrong = line_of(1, 7, billed_pico=12_345)
    report = compared([call_of(1)], [wrong, line_of(1)])
    assert _named(report) == [("double charge", 12_345, 1)]


def test_a_refused_call_is_charged() -> None:
    line = line_of(2, ids=("?",), billed_pico=123)
    report = compared([call_of(1), _lost(2, CallOutcome.FAILED)], [line_of(1), line])
    assert _named(report) == [("charged though failed", 123, 2)]
    assert report.residual_pico == 0


def test_a_line_of_no_call_and_a_call_without_a_line_are_named() -> None:
    stranger = line_of(2, ids=("?",), model="another-model")
    report = compared([call_of(1), call_of(2)], [line_of(1), stranger])
    assert _named(report) == [
        ("not charged", -(line_of(2).billed_pico or 0), 2),
        ("no call", line_of(2).billed_pico, None),
    ]


def test_lines_of_other_times_are_left_out() -> None:
    lines = [line_of(1), line_of(900, ids=("?",))]
    report = compared([call_of(1)], lines)
    assert (report.lines, report.outside, report.differs) == (1, 1, False)


@pytest.mark.parametrize("is_sum", [False, True])
def test_lines_of_other_models_alone_are_refused(is_sum: bool) -> None:
    others = [
        line_of(n, ids=(), model=f"other-{n}", is_sum=is_sum, billed_pico=0)
        for n in range(5)
    ]
    with pytest.raises(DatasetError, match="it has other-0, other-1, other-2 and 2 mo"):
        compared([call_of(1)], others)
    # a line that names the call by its id is of the run, whatever its model
    if not is_sum:
        compared([call_of(1)], [*others, line_of(1, model="other")])


def test_other_prices_of_all_kinds_are_found_from_several_lines() -> None:
    calls = [call_of(n) for n in range(6)]
    lines = []
    for n in range(6):
        usage = call_of(n).usage
        assert usage is not None
        fresh = usage.tokens_in - usage.tokens_cached
        billed = fresh * 2_100_000 + usage.tokens_cached * 555_555
        lines.append(line_of(n, billed_pico=billed + usage.tokens_out * 7_900_001))
    report = compared(calls, lines)
    assert {d.cause for d in report.differences} == {BillCause.PRICES}
    assert report.residual_pico == 0
    assert (
        "prompt $2.1, not $2; cached $0.555555, not $0.5; output $7.900001"
        in report.differences[0].detail
    )


def test_amounts_that_no_prices_give_stay_in_the_residual() -> None:
    lines = [line_of(n, billed_pico=10**9 + 17 * n * n) for n in range(6)]
    report = compared([call_of(n) for n in range(6)], lines)
    assert {d.cause for d in report.differences} == {BillCause.UNEXPLAINED}
    assert report.residual_pico == report.billed_pico - report.logged_pico != 0


def test_rounding_is_no_difference() -> None:
    lines = [line_of(n) for n in range(6)]
    rounded = [
        replace(line, billed_pico=round(line.billed_pico or 0, -6)) for line in lines
    ]
    report = compared([call_of(n) for n in range(6)], rounded, decimals=6)
    assert not report.differs
    assert report.residual_pico == 0
    assert [d.cause for d in report.differences] == [BillCause.ROUNDING]


# -- sums ----------------------------------------------------------------------


def _sum(ns: Sequence[int], **changes: Any) -> UsageLine:
    """The usage of calls as OpenAI's API sums it."""
    usages = [usage for n in ns if (usage := call_of(n).usage) is not None]
    line = line_of(
        1,
        ids=(),
        is_sum=True,
        start_us=START - 3600 * US,
        end_us=START + 3600 * US,
        calls=len(usages),
        tokens_in=sum(usage.tokens_in for usage in usages),
        tokens_out=sum(usage.tokens_out for usage in usages),
        tokens_cached=sum(usage.tokens_cached for usage in usages),
        tokens_reasoning=None,
        billed_pico=None,
    )
    return replace(line, **changes)


def _money(pico: int) -> UsageLine:
    counts = dict.fromkeys(("calls", "tokens_in", "tokens_out", "tokens_cached"))
    return _sum([1], model=None, billed_pico=pico, **counts)


def test_sums_of_tokens_that_agree_leave_nothing() -> None:
    spans = [_sum(range(4)), _sum(range(4, 9))]
    report = compared([call_of(n) for n in range(9)], spans)
    assert not report.differs
    assert report.billed_pico == report.logged_pico


def test_what_a_sum_has_beyond_the_log_settles_unknown_calls() -> None:
    calls = [*(call_of(n) for n in range(5)), _lost(5), _lost(6)]
    report = compared(calls, [_sum(range(6))])
    assert not report.differs
    assert report.settled_pico == line_of(5).billed_pico
    report = compared(calls, [_sum(range(5))])
    assert not report.differs
    assert [s.billed_pico for s in report.settlements] == [0, 0]


def test_a_sum_of_money_settles_within_the_bound_of_the_log() -> None:
    calls = [*(call_of(n) for n in range(5)), _lost(5)]
    logged = sum(call.cost_pico or 0 for call in calls)
    report = compared(calls, [_money(logged + 10**10)])
    assert (report.settled_pico, report.differs) == (10**10, False)
    report = compared(calls, [_money(logged + 10**11 + 1)])
    assert (report.residual_pico, report.differs) == (10**11 + 1, True)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"calls": 6, "tokens_in": 9_999}, "no call"),
        ({"calls": 4, "tokens_in": 4_000}, "not charged"),
        ({"tokens_cached": 0}, "cache read"),
        ({"tokens_in": 9_999}, "prompt tokens"),
        ({"tokens_out": sum(50 + n for n in range(5)) + 50}, "reasoning"),
        ({"tokens_out": 999}, "output tokens"),
        ({"is_batch": True, "tier": "batch"}, "batch"),
    ],
)
def test_a_sum_that_differs_has_a_cause(changes: dict[str, Any], cause: str) -> None:
    report = compared([call_of(n) for n in range(5)], [_sum(range(5), **changes)])
    assert [d.cause.value for d in report.differences] == [cause]
    assert report.residual_pico == 0


def test_a_sum_names_every_count_that_differs() -> None:
    tokens_in = _sum(range(5)).tokens_in or 0
    changed = _sum(range(5), tokens_in=tokens_in - 17, tokens_out=999)
    report = compared([call_of(n) for n in range(5)], [changed])
    more = 999 - (_sum(range(5)).tokens_out or 0)
    assert report.differences[0].detail == f"-17 prompt, {more:+,} output tokens"


def test_a_sum_of_money_without_the_discount_of_the_cache_has_a_cause() -> None:
    calls = [call_of(n) for n in range(5)]
    full = sum(
        cost_of(replace(call.usage, tokens_cached=0)) for call in calls if call.usage
    )
    report = compared(calls, [_money(full)])
    assert [d.cause for d in report.differences] == [BillCause.CACHE_READ]
    assert report.residual_pico == 0


@pytest.mark.parametrize(
    ("billed", "detail"),
    [
        ((2_200_000, CACHED, OUT), "prompt $2.2, not $2"),
        ((IN, CACHED, 7_000_000), "output $7, not $8"),
        (
            (2_200_000, 550_000, 8_800_000),
            "prompt $2.2, not $2; cached $0.55, not $0.5; output $8.8, not $8",
        ),
        # two prices are changed: many pairs of prices give it
        ((2_100_000, CACHED, 7_900_000), ""),
        ((IN, CACHED, OUT + 3), "output $8.000003, not $8"),
    ],
)
def test_a_sum_of_the_same_tokens_at_other_prices_names_them(
    billed: tuple[int, int, int], detail: str
) -> None:
    calls = [call_of(n) for n in range(33)]
    usages = [call.usage for call in calls if call.usage]
    cached = sum(usage.tokens_cached for usage in usages)
    fresh = sum(usage.tokens_in for usage in usages) - cached
    out = sum(usage.tokens_out for usage in usages)
    amount = fresh * billed[0] + cached * billed[1] + out * billed[2]
    report = compared(calls, [_sum(range(33), billed_pico=amount)])
    (difference,) = report.differences
    assert difference.cause is (BillCause.PRICES if detail else BillCause.UNEXPLAINED)
    assert difference.detail == (f"{detail} a million tokens" if detail else "of a sum")
    assert (report.residual_pico == 0) is bool(detail)
    # without its tokens, the money may be of other calls
    assert {d.cause for d in compared(calls, [_money(amount)]).differences} == {
        BillCause.UNEXPLAINED
    }


def test_a_sum_in_which_some_calls_have_another_price_is_unexplained() -> None:
    """Half of equal calls at the double price cost as all of them at other prices."""
    calls = [call_of(1, task=n) for n in range(40)]
    line = _sum([1] * 40, billed_pico=60 * (calls[0].cost_pico or 0))
    report = compared(calls, [line])
    assert [d.cause for d in report.differences] == [BillCause.UNEXPLAINED]


def test_a_model_that_the_file_lacks_is_not_charged_and_another_is_of_no_call() -> None:
    unpriced = call_of(2, model="openai/other", cost_pico=None)
    report = compared(
        [call_of(1), unpriced], [_sum([2], model="other"), _sum([3], model="third")]
    )
    assert [d.cause.value for d in report.differences] == ["not charged", "no call"]
    assert "the price of openai/other is not known" in report.notes[0]


def test_tokens_of_all_models_cannot_be_priced_for_several() -> None:
    calls = [call_of(1), call_of(2, model="openai/other")]
    with pytest.raises(DatasetError, match="export them grouped by model"):
        compared(calls, [_sum([1, 2], model=None)])
