"""Compares the log of a run with a usage file, call by call or as sums."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from runner.options import RunOptions
from runner.reconcile.attempts import (
    CallOutcome,
    CallPrices,
    SentCall,
    body_ids,
    sent_calls,
)
from runner.reconcile.candidates import SKEW_US
from runner.reconcile.causes import (
    Amount,
    BillCause,
    Charge,
    charge_of,
    explain,
    other_prices,
)
from runner.reconcile.matching import match
from runner.reconcile.report import Reconciliation
from runner.reconcile.sums import compare_sums
from runner.reconcile.usage_file import UsageFile, UsageLine


def reconcile(
    reader: sqlite3.Connection, options: RunOptions, usage: UsageFile
) -> Reconciliation:
    """Compare a usage file with the log of a run.

    Args:
        reader: of the log.
        options: of the run; they decide the prices.
        usage: the file.

    Raises:
        CorruptLog: an event is damaged.
    """
    bodies = partial(body_ids, reader)
    return compare(sent_calls(reader), usage, CallPrices(options), bodies)


def compare(
    calls: Sequence[SentCall],
    usage: UsageFile,
    prices: CallPrices,
    bodies: Callable[[Sequence[SentCall]], Iterator[tuple[int, str]]],
) -> Reconciliation:
    """Compare a usage file with calls; `bodies` is that of `match`."""
    span_us = _span(calls)
    lines = _within(span_us, usage.lines)
    report = Reconciliation(
        form=usage.form,
        calls=len(calls),
        lines=len(lines),
        outside=len(usage.lines) - len(lines),
        span_us=span_us,
        logged_pico=sum(call.cost_pico or 0 for call in calls),
        possible_pico=sum(call.possible_pico for call in calls),
    )
    tolerance_pico = usage.tolerance_pico
    if usage.is_sum:
        compare_sums(report, calls, lines, usage, prices)
        return report
    report.billed_pico = sum(line.billed_pico or 0 for line in lines)
    matches = match(calls, lines, bodies, prices, tolerance_pico)
    charges: list[Charge] = []
    for i, call in enumerate(calls):
        charged = [
            charge_of(call, line, prices, tolerance_pico)
            for line in matches.lines.get(i, ())
            if line.billed_pico
        ]
        if charged:
            # of several lines, the one that should be there is the nearest
            charged.sort(key=lambda c: abs(c.billed_pico - (c.expected_pico or 0)))
            charges.append(charged[0])
        elif call.cost_pico is None:
            report.settle(call, 0, None)
        elif call.cost_pico:
            report.add(Amount(BillCause.NOT_CHARGED, -call.cost_pico), call, None)
        for charge in charged[1:]:
            report.add(Amount(BillCause.DOUBLE, charge.billed_pico), call, charge.line)
    _compare(report, charges, prices, tolerance_pico)
    for line in matches.strangers:
        if line.billed_pico:
            report.add(Amount(BillCause.NO_CALL, line.billed_pico), None, line)
    report.differences.sort(key=lambda difference: difference.row or 0)
    return report


def _span(calls: Sequence[SentCall]) -> tuple[int, int] | None:
    """Return the start of the first call and the end of the last one."""
    if not calls:
        return None
    first = min(call.started_us for call in calls)
    return first, max(call.ended_us or call.started_us for call in calls)


def _within(
    span_us: tuple[int, int] | None, lines: Sequence[UsageLine]
) -> list[UsageLine]:
    """Return the lines of a span of time; clocks may differ by `SKEW_US`."""
    if span_us is None:
        return []
    first, last = span_us[0] - SKEW_US, span_us[1] + SKEW_US

    def is_of_run(line: UsageLine) -> bool:
        if line.start_us is None:
            return True
        end_us = line.end_us if line.is_sum else None
        return line.start_us <= last and (end_us or line.start_us) >= first

    return [line for line in lines if is_of_run(line)]


def _compare(
    report: Reconciliation,
    charges: Sequence[Charge],
    prices: CallPrices,
    tolerance_pico: int,
) -> None:
    """Name the causes of the difference of each line."""
    unexplained: list[Charge] = []
    rounding = 0
    for charge in charges:
        call, expected = charge.call, charge.expected_pico
        if expected is None:
            expected = charge.billed_pico
        if call.cost_pico is None:
            report.settle(call, expected, charge.line)
        excess = charge.billed_pico - expected
        if call.outcome is CallOutcome.FAILED:
            amounts = [Amount(BillCause.FAILED, excess)]
        else:
            amounts = explain(charge, prices, tolerance_pico)
        for amount in amounts:
            report.add(amount, call, charge.line)
        rest = excess - sum(amount.pico for amount in amounts)
        if abs(rest) <= tolerance_pico:
            rounding += rest
        else:
            unexplained.append(charge)
    _compare_prices(report, unexplained)
    if rounding:
        report.add(Amount(BillCause.ROUNDING, rounding), None, None)


def _compare_prices(report: Reconciliation, charges: Sequence[Charge]) -> None:
    """Name another price table for what has no other cause, or nothing."""
    groups: defaultdict[object, list[Charge]] = defaultdict(list)
    for charge in charges:
        groups[charge.call.model, charge.step].append(charge)
    for group in groups.values():
        detail = other_prices(group)
        cause = BillCause.PRICES if detail else BillCause.UNEXPLAINED
        for charge in group:
            excess = charge.billed_pico - (charge.expected_pico or 0)
            report.add(Amount(cause, excess, detail), charge.call, charge.line)
