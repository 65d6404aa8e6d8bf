"""Calls against lines and sums: what is settled, what is named, what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.errors import DatasetError
from runner.messages import Usage
from runner.options import options_from
from runner.reconcile.attempts import CallOutcome, CallPrices, SentCall
from runner.reconcile.causes import BillCause
from runner.reconcile.compare import compare
from runner.reconcile.report import Reconciliation
from runner.reconcile.usage_file import US, UsageFile, UsageLine

MODEL = "openai/sim"
IN, CACHED, WRITTEN, OUT = 2_000_000, 500_000, 2_500_000, 8_000_000
"""Pico-dollars a token."""
TABLE = {
    "usd_per_mtok_in": 2.0,
    "usd_per_mtok_out": 8.0,
    "usd_per_mtok_cached": 0.5,
    "usd_per_mtok_cache_write": 2.5,
}
PRICES = CallPrices(options_from({"model": [MODEL], "models": {MODEL: TABLE}}))
START = 1_767_355_200 * US


def _cost(usage: Usage) -> int:
    written = usage.tokens_cache_write
    fresh = usage.tokens_in - usage.tokens_cached - written
    cost = fresh * IN + usage.tokens_cached * CACHED + usage.tokens_out * OUT
    return cost + written * WRITTEN


def _call(n: int, **changes: Any) -> SentCall:
    """An answered call that takes second *n*, with tokens of its own."""
    usage = Usage(
        tokens_in=1_000 + 7 * n,
        tokens_out=50 + n,
        tokens_cached=100 + n * n,
        tokens_reasoning=10,
    )
    call = SentCall(
        task=n,
        attempt=1,
        seq=n,
        key=f"item {n}",
        model=MODEL,
        outcome=CallOutcome.ANSWERED,
        request_sha256=f"{n}",
        started_us=START + n * US,
        ended_us=START + n * US + US // 2,
        is_batched=False,
        usage=usage,
        cost_pico=_cost(usage),
        request_id=f"req_{n}",
    )
    return replace(call, **changes)


def _lost(n: int, outcome: CallOutcome = CallOutcome.UNKNOWN) -> SentCall:
    return _call(
        n,
        outcome=outcome,
        usage=None,
        request_id=None,
        ended_us=None,
        cost_pico=None if outcome is not CallOutcome.FAILED else 0,
        possible_pico=10**11 if outcome is not CallOutcome.FAILED else 0,
    )


def _line(n: int, row: int = 0, **changes: Any) -> UsageLine:
    """The right line of the call *n*."""
    usage = _call(n).usage
    assert usage is not None
    line = UsageLine(
        row=row or n,
        start_us=START + n * US + US // 10,
        end_us=None,
        is_sum=False,
        ids=(f"req_{n}",),
        model="sim-2026-01-01",
        calls=1,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_cached=usage.tokens_cached,
        tokens_cache_write=0,
        tokens_cache_write_1h=0,
        tokens_reasoning=usage.tokens_reasoning,
        billed_pico=_cost(usage),
        tier=None,
        is_batch=None,
    )
    return replace(line, **changes)


def _compared(
    calls: Sequence[SentCall],
    lines: Sequence[UsageLine],
    *,
    decimals: int = 12,
    bodies: dict[int, str] | None = None,
) -> Reconciliation:
    def in_bodies(left: Sequence[SentCall]) -> Iterator[tuple[int, str]]:
        for at, call in enumerate(left):
            if call.task in (bodies or {}):
                yield at, (bodies or {})[call.task]

    usage = UsageFile(
        path=Path("u.csv"), form="plain", lines=tuple(lines), decimals=decimals
    )
    report = compare(calls, usage, PRICES, in_bodies)
    unexplained = sum(
        d.amount_pico for d in report.differences if d.cause is BillCause.UNEXPLAINED
    )
    assert report.residual_pico == unexplained
    return report


def _named(report: Reconciliation) -> list[tuple[str, int, int | None]]:
    return [
        (d.cause.value, d.amount_pico, d.call.task if d.call else None)
        for d in report.differences
    ]


def test_a_right_bill_leaves_nothing() -> None:
    report = _compared([_call(n) for n in range(9)], [_line(n) for n in range(9)])
    assert not report.differs
    assert report.residual_pico == 0
    assert report.billed_pico == report.logged_pico > 0


def test_lines_without_a_known_id_are_matched_by_time_and_tokens() -> None:
    calls = [_call(n, request_id=None) for n in range(9)]
    lines = [_line(n, ids=()) for n in reversed(range(9))]
    assert not _compared(calls, lines).differs


def test_the_id_in_the_body_of_a_reply_counts() -> None:
    calls = [_call(1), _call(2)]
    # times and tokens say nothing here
    bare = {"tokens_in": None, "tokens_out": None, "start_us": None}
    lines = [_line(n, ids=(f"gen-{n}",), **bare) for n in (1, 2)]
    assert len(_compared(calls, lines).differences) == 4
    report = _compared(calls, lines, bodies={1: "gen-1", 2: "gen-2"})
    assert not report.differs


@pytest.mark.parametrize(
    "outcome", [CallOutcome.UNKNOWN, CallOutcome.LOST, CallOutcome.NO_USAGE]
)
def test_a_call_of_unknown_cost_is_settled(outcome: CallOutcome) -> None:
    lines = [_line(1), _line(2, ids=("provider-2",))]
    report = _compared([_call(1), _lost(2, outcome)], lines)
    (settlement,) = report.settlements
    assert settlement.billed_pico == _line(2).billed_pico
    assert settlement.row == 2
    assert not report.differs
    assert report.billed_pico == report.logged_pico + report.settled_pico


def test_a_call_of_unknown_cost_without_a_line_was_not_billed() -> None:
    report = _compared([_call(1), _lost(2)], [_line(1)])
    assert [(s.billed_pico, s.row) for s in report.settlements] == [(0, None)]
    assert not report.differs


def test_a_settled_call_is_misbilled_like_another_one() -> None:
    usage = _call(2).usage
    assert usage is not None
    full = _cost(replace(usage, tokens_cached=0))
    report = _compared([_lost(2)], [_line(2, billed_pico=full)])
    assert report.settled_pico == _line(2).billed_pico
    assert _named(report) == [("cache read", full - report.settled_pico, 2)]


def test_the_same_prompt_tells_which_call_was_lost() -> None:
    """Two calls are lost at a time; the prompts of their repetitions are known."""
    first, second = _lost(1), _lost(2)
    again = [
        _call(n, attempt=2, started_us=START + 60 * US, ended_us=START + 61 * US)
        for n in (1, 2)
    ]
    lost = [_line(n, ids=("?",), start_us=START + 2 * US) for n in (1,)]
    report = _compared([first, second, *again], [*lost, _line(1, 8), _line(2, 9)])
    assert {s.call.task: s.billed_pico for s in report.settlements} == {
        1: _line(1).billed_pico,
        2: 0,
    }
    assert not report.differs


def test_a_misbilled_line_does_not_take_the_call_of_another_one() -> None:
    """All within the resolution of the file, and with the same prompt."""
    at = {"request_id": None, "started_us": START, "ended_us": START + 8_000}
    usage = _call(1).usage
    assert usage is not None
    other = replace(usage, tokens_out=7)
    lost = _lost(2, CallOutcome.LOST)
    lost = replace(lost, started_us=START + 14_000, ended_us=START + 16_000)
    again = _call(2, attempt=2, usage=other, cost_pico=_cost(other), request_id=None)
    twice = replace(usage, tokens_out=usage.tokens_out + 10, tokens_reasoning=20)
    lines = [
        _line(1, 1, ids=(), start_us=START + 7_000),
        _line(1, 2, ids=(), start_us=START + 15_000, tokens_out=7),
        _line(1, 3, ids=(), start_us=again.started_us, tokens_out=7),
    ]
    lines[0] = replace(
        lines[0],
        tokens_out=twice.tokens_out,
        tokens_reasoning=20,
        billed_pico=_cost(twice),
    )
    lines[1:] = [replace(line, billed_pico=_cost(other)) for line in lines[1:]]
    report = _compared([_call(1, **at), lost, again], lines)
    assert _named(report) == [("reasoning", 10 * OUT, 1)]
    assert [s.row for s in report.settlements] == [2]


def test_of_two_calls_with_the_same_prompt_more_equal_counts_decide() -> None:
    first, second = _call(1, request_id=None), _call(2, request_id=None)
    assert first.usage is not None
    assert second.usage is not None
    usage = replace(second.usage, tokens_in=first.usage.tokens_in)
    second = replace(
        second, usage=usage, cost_pico=_cost(usage), started_us=first.started_us
    )
    lines = []
    for row, of in ((1, usage), (2, first.usage)):
        twice = replace(of, tokens_out=of.tokens_out + 10, tokens_reasoning=20)
        line = _line(1, row, ids=(), tokens_out=twice.tokens_out, tokens_reasoning=20)
        lines.append(
            replace(line, tokens_cached=of.tokens_cached, billed_pico=_cost(twice))
        )
    report = _compared([first, second], lines)
    assert _named(report) == [("reasoning", 10 * OUT, n) for n in (2, 1)]


def _billed(n: int, usage: Usage) -> UsageLine:
    return _line(n, billed_pico=_cost(usage))


USAGE = _call(3).usage or Usage(tokens_in=0, tokens_out=0)
MISBILLED = {
    "reasoning": _billed(3, replace(USAGE, tokens_out=USAGE.tokens_out + 10)),
    "cache read": _billed(3, replace(USAGE, tokens_cached=0)),
    "tier": _line(3, billed_pico=2 * _cost(replace(USAGE))),
    "batch": _line(3, billed_pico=_cost(USAGE) // 2),
    "prompt tokens": replace(
        _billed(3, replace(USAGE, tokens_in=2_000)), tokens_in=2_000
    ),
    "output tokens": replace(_billed(3, replace(USAGE, tokens_out=99)), tokens_out=99),
    "price table": _line(3, billed_pico=_cost(USAGE) + 150_000 * 912),
    "unexplained": _line(3, billed_pico=_cost(USAGE) + 12_345_677),
}


@pytest.mark.parametrize("cause", MISBILLED)
def test_each_cause_is_named_with_its_amount(cause: str) -> None:
    calls = [_call(n) for n in range(5)]
    lines = [MISBILLED[cause] if n == 3 else _line(n) for n in range(5)]
    report = _compared(calls, lines)
    expected = (MISBILLED[cause].billed_pico or 0) - _cost(USAGE)
    assert _named(report) == [(cause, expected, 3)]
    assert report.residual_pico == (expected if cause == "unexplained" else 0)
    assert report.differs


@pytest.mark.parametrize("stated", [0, None])
def test_written_tokens_at_another_price_are_named(stated: int | None) -> None:
    written = replace(USAGE, tokens_cache_write=200)
    call = _call(3, usage=written, cost_pico=_cost(written))
    line = _line(3, billed_pico=_cost(USAGE), tokens_cache_write=stated)
    report = _compared([call], [line])
    assert _named(report) == [("cache write", 200 * (IN - WRITTEN), 3)]


def test_two_causes_in_stated_tokens_are_told_apart() -> None:
    usage = replace(USAGE, tokens_cached=0, tokens_in=USAGE.tokens_in + 5)
    line = replace(_billed(3, usage), tokens_cached=0, tokens_in=usage.tokens_in)
    report = _compared([_call(3)], [line])
    assert _named(report) == [
        ("cache read", USAGE.tokens_cached * (IN - CACHED), 3),
        ("prompt tokens", 5 * IN, 3),
    ]


def test_a_line_that_comes_twice_is_a_double_charge_with_its_id_or_without() -> None:
    for ids in (("req_1",), ("another",), ()):
        report = _compared(
            [_call(1), _call(2)], [_line(1), _line(1, 7, ids=ids), _line(2)]
        )
        assert _named(report) == [("double charge", _line(1).billed_pico, 1)]


def test_of_two_lines_the_right_one_is_that_of_the_call() -> None:
    wrong = _line(1, 7, billed_pico=12_345)
    report = _compared([_call(1)], [wrong, _line(1)])
    assert _named(report) == [("double charge", 12_345, 1)]


def test_a_refused_call_is_charged() -> None:
    line = _line(2, ids=("?",), billed_pico=123)
    report = _compared([_call(1), _lost(2, CallOutcome.FAILED)], [_line(1), line])
    assert _named(report) == [("charged though failed", 123, 2)]
    assert report.residual_pico == 0


def test_a_line_of_no_call_and_a_call_without_a_line_are_named() -> None:
    stranger = _line(2, ids=("?",), model="another-model")
    report = _compared([_call(1), _call(2)], [_line(1), stranger])
    assert _named(report) == [
        ("not charged", -(_line(2).billed_pico or 0), 2),
        ("no call", _line(2).billed_pico, None),
    ]


def test_lines_of_other_times_are_left_out() -> None:
    lines = [_line(1), _line(900, ids=("?",))]
    report = _compared([_call(1)], lines)
    assert (report.lines, report.outside, report.differs) == (1, 1, False)


def test_other_prices_of_all_kinds_are_found_from_several_lines() -> None:
    calls = [_call(n) for n in range(6)]
    lines = []
    for n in range(6):
        usage = _call(n).usage
        assert usage is not None
        fresh = usage.tokens_in - usage.tokens_cached
        billed = fresh * 2_100_000 + usage.tokens_cached * 555_555
        lines.append(_line(n, billed_pico=billed + usage.tokens_out * 7_900_001))
    report = _compared(calls, lines)
    assert {d.cause for d in report.differences} == {BillCause.PRICES}
    assert report.residual_pico == 0
    assert (
        "prompt $2.1, not $2; cached $0.555555, not $0.5; output $7.900001"
        in report.differences[0].detail
    )


def test_amounts_that_no_prices_give_stay_in_the_residual() -> None:
    lines = [_line(n, billed_pico=10**9 + 17 * n * n) for n in range(6)]
    report = _compared([_call(n) for n in range(6)], lines)
    assert {d.cause for d in report.differences} == {BillCause.UNEXPLAINED}
    assert report.residual_pico == report.billed_pico - report.logged_pico != 0


def test_rounding_is_no_difference() -> None:
    lines = [_line(n) for n in range(6)]
    rounded = [
        replace(line, billed_pico=round(line.billed_pico or 0, -6)) for line in lines
    ]
    report = _compared([_call(n) for n in range(6)], rounded, decimals=6)
    assert not report.differs
    assert report.residual_pico == 0
    assert [d.cause for d in report.differences] == [BillCause.ROUNDING]


# -- sums ----------------------------------------------------------------------


def _sum(ns: Sequence[int], **changes: Any) -> UsageLine:
    """The usage of calls as OpenAI's API sums it."""
    usages = [usage for n in ns if (usage := _call(n).usage) is not None]
    line = _line(
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
    report = _compared([_call(n) for n in range(9)], spans)
    assert not report.differs
    assert report.billed_pico == report.logged_pico


def test_what_a_sum_has_beyond_the_log_settles_unknown_calls() -> None:
    calls = [*(_call(n) for n in range(5)), _lost(5), _lost(6)]
    report = _compared(calls, [_sum(range(6))])
    assert not report.differs
    assert report.settled_pico == _line(5).billed_pico
    report = _compared(calls, [_sum(range(5))])
    assert not report.differs
    assert [s.billed_pico for s in report.settlements] == [0, 0]


def test_a_sum_of_money_settles_within_the_bound_of_the_log() -> None:
    calls = [*(_call(n) for n in range(5)), _lost(5)]
    logged = sum(call.cost_pico or 0 for call in calls)
    report = _compared(calls, [_money(logged + 10**10)])
    assert (report.settled_pico, report.differs) == (10**10, False)
    report = _compared(calls, [_money(logged + 10**11 + 1)])
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
    report = _compared([_call(n) for n in range(5)], [_sum(range(5), **changes)])
    assert [d.cause.value for d in report.differences] == [cause]
    assert report.residual_pico == 0


def test_a_sum_of_money_without_the_discount_of_the_cache_has_a_cause() -> None:
    calls = [_call(n) for n in range(5)]
    full = sum(
        _cost(replace(call.usage, tokens_cached=0)) for call in calls if call.usage
    )
    report = _compared(calls, [_money(full)])
    assert [d.cause for d in report.differences] == [BillCause.CACHE_READ]
    assert report.residual_pico == 0


def test_a_model_that_the_file_lacks_is_not_charged_and_another_is_of_no_call() -> None:
    unpriced = _call(2, model="openai/other", cost_pico=None)
    report = _compared(
        [_call(1), unpriced], [_sum([2], model="other"), _sum([3], model="third")]
    )
    assert [d.cause.value for d in report.differences] == ["not charged", "no call"]
    assert "the price of openai/other is not known" in report.notes[0]


def test_tokens_of_all_models_cannot_be_priced_for_several() -> None:
    calls = [_call(1), _call(2, model="openai/other")]
    with pytest.raises(DatasetError, match="export them grouped by model"):
        _compared(calls, [_sum([1, 2], model=None)])
