"""Compares the log of a run with a usage file, call by call or as sums.

Exports such as OpenAI's and Anthropic's have no line for a call. Their tokens and
amounts are compared in sum, by model, over all spans of the run's time: a call near the
end of a span may count in the next one. Where a file has no money, tokens are priced
like calls.

A sum settles all calls of unknown cost at once: what it has beyond the other calls was
billed for them, if it is within the bound of their cost.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from runner.errors import DatasetError
from runner.money.prices import cost_pico
from runner.options import RunOptions
from runner.reconcile.attempts import (
    CallOutcome,
    CallPrices,
    SentCall,
    body_ids,
    sent_calls,
)
from runner.reconcile.candidates import SKEW_US, is_same_model
from runner.reconcile.causes import (
    NO_TOKENS,
    Amount,
    BillCause,
    Charge,
    charge_of,
    costs_by_cause,
    explain,
    other_prices,
    other_prices_of_sum,
    stated,
)
from runner.reconcile.matching import match
from runner.reconcile.report import Reconciliation
from runner.reconcile.usage_file import UsageFile, UsageLine
from runner.reconcile.usage_forms import COUNTS
from store.clock import iso_time

MOST_NAMES: Final = 3
"""Models that an error names."""


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
        DatasetError: no line of the file is of the run.
    """
    bodies = partial(body_ids, reader)
    return compare(sent_calls(reader), usage, CallPrices(options), bodies)


def compare(
    calls: Sequence[SentCall],
    usage: UsageFile,
    prices: CallPrices,
    bodies: Callable[[Sequence[SentCall]], Iterator[tuple[int, str]]],
) -> Reconciliation:
    """Compare a usage file with calls; `bodies` is that of `match`.

    Raises:
        DatasetError: no line of the file is of the run.
    """
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
        _check_models(calls, lines, usage)
        compare_sums(report, calls, lines, usage, prices)
        return report
    report.billed_pico = sum(line.billed_pico or 0 for line in lines)
    matches = match(calls, lines, bodies, prices, tolerance_pico)
    if not matches.lines:
        _check_models(calls, lines, usage)
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


def _check_models(
    calls: Sequence[SentCall], lines: Sequence[UsageLine], usage: UsageFile
) -> None:
    """Refuse a file without a line of the run's time and models.

    Raises:
        DatasetError: none of *lines*, which are of the run's time, is of its models.
    """
    served = {(call.model, call.served_model): call for call in calls}
    if not calls or any(
        is_same_model(call, line.model) for line in lines for call in served.values()
    ):
        return
    times = [line.start_us for line in usage.lines if line.start_us is not None]
    ends = [line.end_us for line in usage.lines if line.end_us is not None]
    billed = (min(times), max(times + ends)) if times else None
    raise DatasetError(
        f"{usage.path} has no line of this run: it has "
        f"{_described(billed, {line.model for line in usage.lines})}, and the run "
        f"called {_described(_span(calls), {call.model for call in calls})}."
    )


def _described(span_us: tuple[int, int] | None, models: Iterable[str | None]) -> str:
    """Return models and times in words."""
    names = sorted(filter(None, models))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    what = f"{', '.join(names[:MOST_NAMES])}{more}" if names else "no named model"
    if span_us is None:
        return what
    return f"{what} from {iso_time(span_us[0])} to {iso_time(span_us[1])}"


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


def compare_sums(
    report: Reconciliation,
    calls: Sequence[SentCall],
    lines: Sequence[UsageLine],
    usage: UsageFile,
    prices: CallPrices,
) -> None:
    """Compare the calls of each model with the sums of it, and add what differs.

    Raises:
        DatasetError: tokens are not by model, and the run has several models.
    """
    models = sorted({call.model for call in calls})
    unnamed = next((line for line in lines if line.model is None), None)
    if unnamed is not None and len(models) > 1 and unnamed.billed_pico is None:
        raise DatasetError(
            f"{usage.path} row {unnamed.row}: the tokens are of all models, and the "
            "run has several; export them grouped by model."
        )
    groups = [[call for call in calls if call.model == model] for model in models]
    if unnamed is not None:
        groups = [list(calls)] if calls else []
    rest = list(lines)
    for group in groups:
        of_group = [line for line in rest if is_same_model(group[0], line.model)]
        rest = [line for line in rest if line not in of_group]
        _Sum(group, of_group, prices, usage.tolerance_pico).compare(report)
    for line in rest:
        billed = line.billed_pico or 0
        report.billed_pico += billed
        detail = f"model {line.model} is not in the run"
        report.add(Amount(BillCause.NO_CALL, billed, detail), None, line)


NAMES: Final = {
    "tokens_in": "prompt",
    "tokens_out": "output",
    "tokens_cached": "cached",
    "tokens_cache_write": "cache write",
    "tokens_cache_write_1h": "one-hour cache write",
    "tokens_reasoning": "reasoning",
}
"""Names of the counts in details, by field of a line."""


def _named_counts(counts: Mapping[str, int]) -> str:
    """Return differences of counts as text, such as `-17 prompt, +13 output tokens`."""
    named = (f"{count:+,} {NAMES[name]}" for name, count in sorted(counts.items()))
    return f"{', '.join(named)} tokens"


class _Sum:
    """The calls of a model, and the sums of its usage."""

    def __init__(
        self,
        calls: Sequence[SentCall],
        lines: Sequence[UsageLine],
        prices: CallPrices,
        tolerance_pico: int,
    ) -> None:
        self._calls, self._lines, self._prices = calls, lines, prices
        self._tolerance_pico = tolerance_pico * max(1, len(lines))
        self._known = [call for call in calls if call.cost_pico is not None]
        self._open = [call for call in calls if call.cost_pico is None]
        self._logged = sum(call.cost_pico or 0 for call in self._known)
        self._billed = sum(map(self._cost, lines))

    def _cost(self, line: UsageLine) -> int:
        """Return what a line bills: its amount, or the price of its tokens."""
        if line.billed_pico is not None or not line.has_tokens or not self._calls:
            return line.billed_pico or 0
        call = self._calls[0]
        is_batched = line.is_batch or line.tier == "batch"
        if line.is_batch is None and line.tier is None:
            is_batched = call.is_batched
        price = self._prices.of(call.model, is_batched=is_batched)
        if price is None:
            return 0
        return cost_pico(price, stated(line, NO_TOKENS), line.tier)

    def compare(self, report: Reconciliation) -> None:
        """Add what is settled, and what differs."""
        report.notes += self._notes()
        report.billed_pico += self._billed
        excess = self._billed - self._logged
        counts = self._excess_counts()
        more_calls = self._excess_calls()
        possible = sum(call.possible_pico for call in self._open)
        is_priced = all(call.possible_pico for call in self._open)
        is_same = abs(excess) <= self._tolerance_pico and not any(counts.values())
        is_open = (
            bool(self._open)
            and excess >= 0
            and (excess <= possible or not is_priced)
            and all(count >= 0 for count in counts.values())
            and (more_calls is None or 0 < more_calls <= len(self._open))
        )
        if is_open and not is_same:
            report.settled_sum_pico += excess
            return
        for call in self._open:
            report.settle(call, 0, None)
        if is_same:
            if excess:
                report.add(Amount(BillCause.ROUNDING, excess), None, None)
            return
        report.add(self._amount(excess, counts, more_calls), None, None)

    def _notes(self) -> Iterator[str]:
        """Yield why the price of tokens may not be that of the bill."""
        if all(line.billed_pico is not None for line in self._lines):
            return
        for model in sorted({call.model for call in self._calls}):
            price = self._prices.of(model, is_batched=False)
            if price is None:
                yield f"the price of {model} is not known, so its tokens cost nothing"
            elif price.longer:
                yield f"long prompts of {model} cost more than their part of a sum"

    def _excess_counts(self) -> dict[str, int]:
        """Return how many tokens of each kind the sums have beyond the log."""
        return {
            name: sum(getattr(line, name) or 0 for line in self._lines)
            - sum(getattr(call.usage, name) for call in self._known if call.usage)
            for name in COUNTS
            if any(getattr(line, name) is not None for line in self._lines)
        }

    def _excess_calls(self) -> int | None:
        if not self._lines or any(line.calls is None for line in self._lines):
            return None
        counted = sum(line.calls or 0 for line in self._lines)
        return counted - sum(call.usage is not None for call in self._known)

    def _amount(
        self, excess: int, counts: dict[str, int], more_calls: int | None
    ) -> Amount:
        """Return the cause of a difference between the sums."""
        if not self._lines:
            return Amount(BillCause.NOT_CHARGED, excess, "the file has no such model")
        if more_calls:
            cause = BillCause.NO_CALL if more_calls > 0 else BillCause.NOT_CHARGED
            words = "more" if more_calls > 0 else "fewer"
            return Amount(cause, excess, f"{abs(more_calls):,} calls {words} in sum")
        different = {name: count for name, count in counts.items() if count}
        for name, cause in (
            ("tokens_in", BillCause.PROMPT),
            ("tokens_reasoning", BillCause.REASONING),
            ("tokens_out", BillCause.OUTPUT),
            ("tokens_cached", BillCause.CACHE_READ),
            ("tokens_cache_write", BillCause.CACHE_WRITE),
            ("tokens_cache_write_1h", BillCause.CACHE_WRITE),
        ):
            if name not in different:
                continue
            reasoning = sum(c.usage.tokens_reasoning for c in self._known if c.usage)
            is_reasoning = name == "tokens_out" and different[name] == reasoning
            cause = BillCause.REASONING if is_reasoning else cause  # noqa: PLW2901
            return Amount(cause, excess, _named_counts(different))
        return self._other_price(excess, counts)

    def _other_price(self, excess: int, counts: dict[str, int]) -> Amount:
        """Return the cause of another price of the same tokens."""
        for cause, cost in costs_by_cause(self._charges(), self._prices).items():
            if abs(self._billed - cost) <= self._tolerance_pico:
                return Amount(cause, excess, "in all calls")
        if counts and all(line.billed_pico is None for line in self._lines):
            batched = sum(call.is_batched for call in self._known)
            in_batches = (line.is_batch or line.tier == "batch" for line in self._lines)
            is_batch = any(in_batches) != bool(batched)
            cause = BillCause.BATCH if is_batch else BillCause.TIER
            return Amount(cause, excess, "the same tokens in another tier")
        # without its tokens, the money may be of other calls
        if {"tokens_in", "tokens_out"} <= counts.keys():
            detail = other_prices_of_sum(self._charges(), self._billed)
            if detail:
                return Amount(BillCause.PRICES, excess, detail)
        return Amount(BillCause.UNEXPLAINED, excess, "of a sum")

    def _charges(self) -> list[Charge]:
        return [
            Charge(
                call=call,
                line=self._lines[0],
                usage=call.usage,
                price=self._prices.of(call.model, is_batched=call.is_batched),
                tier=call.tier,
                expected_pico=call.cost_pico,
                billed_pico=0,
            )
            for call in self._known
            if self._lines and call.usage is not None
        ]
