"""Lines without ids: a bill that can be right is not called wrong."""

from __future__ import annotations

import cProfile
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.messages import Usage
from runner.reconcile import candidates
from runner.reconcile.attempts import CallOutcome, SentCall
from runner.reconcile.usage_file import US, UsageLine
from runner.reconcile.usage_forms import COUNTS
from tests.runner.reconcile.calls import START, call_of, compared, cost_of, line_of

UNSTATED: dict[str, Any] = dict.fromkeys(COUNTS)

OPEN = (CallOutcome.LOST, CallOutcome.UNKNOWN, CallOutcome.NO_USAGE)


@st.composite
def right_bills(draw: st.DrawFn) -> tuple[list[SentCall], list[UsageLine]]:
    """Calls that are hard to tell apart, and the right line of each billed one."""
    skew_us = draw(st.integers(-2 * US, 2 * US))
    states_tokens = draw(st.booleans())
    calls, lines = [], []
    for n in range(draw(st.integers(1, 12))):
        usage = Usage(tokens_in=10 * draw(st.integers(1, 2)), tokens_out=5)
        usage = replace(usage, tokens_out=draw(st.integers(5, 6)))
        start_us = START + draw(st.integers(0, 40)) * US // 4
        outcome = draw(st.sampled_from((CallOutcome.ANSWERED,) * 3 + OPEN))
        if draw(st.booleans()) and outcome is CallOutcome.ANSWERED:
            refused = replace(call_of(n), started_us=start_us, ended_us=start_us + US)
            free = {"outcome": CallOutcome.FAILED, "usage": None, "request_id": None}
            calls.append(replace(refused, cost_pico=0, **free))
        is_open = outcome is not CallOutcome.ANSWERED
        call = call_of(
            n,
            outcome=outcome,
            request_sha256=f"prompt of {usage.tokens_in} tokens",
            started_us=start_us,
            ended_us=start_us + draw(st.integers(1, 8)) * US // 4,
            usage=None if is_open else usage,
            cost_pico=None if is_open else cost_of(usage),
            possible_pico=cost_of(usage) + draw(st.integers(0, 1)) * 10**9,
            request_id=None,
        )
        calls.append(call)
        if is_open and draw(st.booleans()):
            continue  # it was not billed
        line = line_of(
            n,
            ids=(),
            start_us=start_us + skew_us,
            billed_pico=cost_of(usage),
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            **dict.fromkeys(COUNTS[2:], 0),
        )
        lines.append(line if states_tokens else replace(line, **UNSTATED))
    assume(lines)  # a file without lines is not read
    return calls, draw(st.permutations(lines))


nearest = st.sampled_from((1, 2, candidates.MOST_NEAR))
"""With few, the search beyond the nearest calls has to find the others."""


@given(right_bills(), nearest)
def test_a_right_bill_is_not_called_wrong(
    bill: tuple[list[SentCall], list[UsageLine]], most_near: int
) -> None:
    calls, lines = bill
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "MOST_NEAR", most_near)
        report = compared(calls, lines)
    assert not report.differs, report.differences
    assert report.residual_pico == 0


@given(right_bills(), st.integers(0), nearest)
def test_one_wrong_line_makes_no_other_one_wrong(
    bill: tuple[list[SentCall], list[UsageLine]], which: int, most_near: int
) -> None:
    calls, lines = bill
    at = which % len(lines)
    wrong = replace(lines[at], billed_pico=10**12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "MOST_NEAR", most_near)
        report = compared(calls, [*lines[:at], wrong, *lines[at + 1 :]])
    rows = [d.row for d in report.differences]
    assert set(rows) - {None} == {wrong.row}
    # its own call may seem not to be charged
    assert rows.count(None) <= 1


def _work(count: int, *, states_tokens: bool) -> int:
    """Return how many functions are called to match so many lines."""
    chance = random.Random(count)
    calls, lines = [], []
    for n in range(count):
        at_us = START + n * US // 10
        times = {"started_us": at_us, "ended_us": at_us + chance.randrange(5 * US)}
        calls.append(call_of(n % 25, **times, task=n, request_id=None))
        line = line_of(n % 25, row=n + 1, ids=(), start_us=at_us + 1000)
        lines.append(line if states_tokens else replace(line, **UNSTATED))
    chance.shuffle(lines)
    with cProfile.Profile() as profile:
        report = compared(calls, lines)
    assert not report.differs
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("states_tokens", [True, False])
def test_the_work_for_many_lines_without_ids_grows_in_proportion(
    *, states_tokens: bool
) -> None:
    few, many = (_work(n, states_tokens=states_tokens) for n in (300, 900))
    assert many < 4 * few


def _dense(
    count: int, *, apart_us: int, skew_us: int = 0
) -> tuple[list[SentCall], list[UsageLine]]:
    """Equal calls without ids, many at a time, and their lines in any order."""
    chance = random.Random(count)
    calls, lines = [], []
    for n in range(count):
        at_us = START + n * apart_us
        times = {"started_us": at_us, "ended_us": at_us + chance.randrange(US, 3 * US)}
        calls.append(call_of(1, **times, task=n, request_id=None))
        at_us += 1000 + skew_us
        lines.append(line_of(1, row=n + 1, ids=(), start_us=at_us))
    chance.shuffle(lines)
    return calls, lines


@pytest.mark.parametrize("states_tokens", [True, False])
@pytest.mark.parametrize("skew_us", [0, -3 * US, 3 * US])
@pytest.mark.parametrize("apart_us", [0, 10_000])
def test_many_equal_calls_at_a_time_have_each_their_line(
    apart_us: int, skew_us: int, *, states_tokens: bool
) -> None:
    calls, lines = _dense(150, apart_us=apart_us, skew_us=skew_us)
    if not states_tokens:
        lines = [replace(line, **UNSTATED) for line in lines]
    assert not compared(calls, lines).differs


@pytest.mark.parametrize("apart_us", [0, 10_000])
def test_among_many_equal_calls_only_what_is_wrong_is_named(apart_us: int) -> None:
    calls, lines = _dense(150, apart_us=apart_us)
    usage = calls[0].usage
    assert usage is not None
    more = cost_of(replace(usage, tokens_out=999))
    for at in (20, 70, 120):
        lines[at] = replace(lines[at], tokens_out=999, billed_pico=more)
    report = compared(calls, lines)
    assert Counter(d.cause.value for d in report.differences) == {"output tokens": 3}
    calls, lines = _dense(150, apart_us=apart_us)
    again = [replace(lines[at], row=1000 + at) for at in (20, 70, 120)]
    report = compared(calls, [*lines, *again])
    assert Counter(d.cause.value for d in report.differences) == {"double charge": 3}


@pytest.mark.parametrize("apart_us", [0, 10_000])
def test_the_work_for_many_equal_calls_at_a_time_grows_in_proportion(
    apart_us: int,
) -> None:
    work = []
    for count in (100, 300):
        calls, lines = _dense(count, apart_us=apart_us)
        again = [replace(line, row=count + line.row) for line in lines[::20]]
        with cProfile.Profile() as profile:
            compared(calls, [*lines, *again])
        work.append(sum(entry.callcount for entry in profile.getstats()))
    assert work[1] < 4 * work[0]


def test_a_lost_call_is_left_to_the_line_that_can_be_of_no_other_one() -> None:
    """The misbilled line could be of either call, the other line of the lost one."""
    answered = call_of(1, request_id=None)
    lost = call_of(
        2,
        outcome=CallOutcome.LOST,
        usage=None,
        cost_pico=None,
        started_us=answered.started_us,
        request_id=None,
        possible_pico=10**12,
    )
    assert answered.usage is not None
    twice = replace(answered.usage, tokens_out=answered.usage.tokens_out + 10)
    wrong = replace(
        line_of(1, ids=(), billed_pico=cost_of(twice)),
        tokens_out=twice.tokens_out,
        tokens_reasoning=20,
    )
    report = compared([answered, lost], [wrong, line_of(2, ids=())])
    assert [(d.cause.value, d.row) for d in report.differences] == [("reasoning", 1)]
    assert [settled.row for settled in report.settlements] == [2]


def _open(n: int, **changes: Any) -> SentCall:
    """A call of unknown cost, which lasts as long as call 1."""
    unknown: dict[str, Any] = {
        "outcome": CallOutcome.LOST,
        "usage": None,
        "cost_pico": None,
        "started_us": call_of(1).started_us,
        "ended_us": call_of(1).ended_us,
        "request_id": None,
        "possible_pico": 10**12,
    }
    return call_of(n, **unknown | changes)


def _priced(n: int, usage: Usage, after_us: int) -> UsageLine:
    """A line without an id, of the time of call 1, that bills its tokens rightly."""
    counts = {name: getattr(usage, name) for name in COUNTS}
    start_us = call_of(1).started_us + after_us
    return line_of(n, ids=(), start_us=start_us, billed_pico=cost_of(usage), **counts)


def test_of_two_lines_that_a_lost_call_may_have_the_one_with_more_causes_has_it() -> (
    None
):
    """The answered call of the same prompt is left to the line with one cause."""
    answered = call_of(1, request_id=None)
    usage = answered.usage
    assert usage is not None
    # the reply to a later call with the lost one's request tells how long its prompt is
    again = call_of(2, usage=usage, cost_pico=cost_of(usage))
    lost = _open(2)
    twice = replace(usage, tokens_out=usage.tokens_out + 10, tokens_reasoning=20)
    other = replace(usage, tokens_out=70, tokens_cached=7, tokens_reasoning=30)
    lines = [_priced(1, twice, 1_000), _priced(2, other, 9_000)]
    lines.append(replace(_priced(3, usage, US), ids=("req_2",)))
    report = compared([answered, lost, again], lines)
    assert [(d.cause.value, d.row, d.amount_pico) for d in report.differences] == [
        ("reasoning", 1, cost_of(twice) - cost_of(usage))
    ]
    assert [settled.row for settled in report.settlements] == [2]


@pytest.mark.parametrize("stated", [10, 0])
def test_the_doubled_count_is_the_cause_and_not_another_count(stated: int) -> None:
    """One cause each, but only one without a number that is not in the reply.

    A reply may not say how many of its tokens were reasoning.
    """
    usage = replace(call_of(1).usage or Usage(), tokens_reasoning=stated)
    answered = call_of(1, request_id=None, usage=usage, cost_pico=cost_of(usage))
    again = call_of(2, usage=usage, cost_pico=cost_of(usage))
    twice = replace(usage, tokens_out=usage.tokens_out + 10, tokens_reasoning=20)
    other = replace(usage, tokens_out=usage.tokens_out + 1, tokens_reasoning=11)
    lines = [_priced(1, twice, 1_000), _priced(2, other, 9_000)]
    lines.append(replace(_priced(3, usage, US), ids=("req_2",)))
    report = compared([answered, _open(2), again], lines)
    assert [(d.cause.value, d.row) for d in report.differences] == [("reasoning", 1)]


def test_output_is_of_the_lost_call_and_not_of_the_refused_one() -> None:
    refused = replace(_open(1), outcome=CallOutcome.FAILED, cost_pico=0)
    lost = _open(2)
    nothing = Usage(tokens_in=1_700, tokens_out=0)
    output = Usage(tokens_in=900, tokens_out=16, tokens_reasoning=1)
    lines = [_priced(1, nothing, 1_000), _priced(2, output, 9_000)]
    report = compared([refused, lost], lines)
    assert [(d.cause.value, d.row) for d in report.differences] == [
        ("charged though failed", 1)
    ]
    assert [settled.row for settled in report.settlements] == [2]


@st.composite
def bills_of_few_prompts(
    draw: st.DrawFn,
) -> tuple[list[SentCall], list[UsageLine], int]:
    """Calls that are hard to tell apart, lines of them all, and how many are wrong."""
    calls, lines, wrong = [], [], 0
    for n in range(draw(st.integers(2, 7))):
        usage = Usage(
            tokens_in=10 * draw(st.integers(1, 2)),
            tokens_out=draw(st.integers(12, 14)),
            tokens_cached=draw(st.integers(0, 2)),
            tokens_reasoning=draw(st.integers(1, 3)),
        )
        at_us = draw(st.integers(0, 3)) * US // 10
        call = _open(n, request_sha256=f"prompt of {usage.tokens_in} tokens")
        billed = usage
        if draw(st.booleans()):
            call = replace(
                call,
                outcome=CallOutcome.ANSWERED,
                usage=usage,
                cost_pico=cost_of(usage),
            )
            if draw(st.booleans()):
                wrong += 1
                billed = replace(
                    usage,
                    tokens_out=usage.tokens_out + usage.tokens_reasoning,
                    tokens_reasoning=2 * usage.tokens_reasoning,
                )
        calls.append(call)
        lines.append(_priced(n, billed, at_us))
    return calls, draw(st.permutations(lines)), wrong


@given(bills_of_few_prompts())
def test_no_more_causes_are_named_than_there_are(
    bill: tuple[list[SentCall], list[UsageLine], int],
) -> None:
    calls, lines, wrong = bill
    report = compared(calls, lines)
    assert report.residual_pico == 0
    assert len(report.differences) <= wrong, report.differences
