"""Compares sums of a provider with sums of the log, by model.

Exports such as OpenAI's and Anthropic's have no line for a call. Their tokens and
amounts are compared in sum, over all spans of the run's time: a call near the end of a
span may count in the next one. Where a file has no money, tokens are priced like calls.

A sum settles all calls of unknown cost at once: what it has beyond the other calls was
billed for them, if it is within the bound of their cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from runner.errors import DatasetError
from runner.money.prices import cost_pico
from runner.reconcile.attempts import CallPrices, SentCall
from runner.reconcile.candidates import is_same_model
from runner.reconcile.causes import (
    NO_TOKENS,
    Amount,
    BillCause,
    Charge,
    costs_by_cause,
    stated,
)
from runner.reconcile.report import Reconciliation
from runner.reconcile.usage_file import UsageFile, UsageLine
from runner.reconcile.usage_forms import COUNTS


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
    """Return the differences of all counts, such as `+13 output, -17 prompt tokens`."""
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
        for cause, cost in costs_by_cause(self._charges(), self._prices).items():
            if abs(self._billed - cost) <= self._tolerance_pico:
                return Amount(cause, excess, "in all calls")
        if counts and all(line.billed_pico is None for line in self._lines):
            batched = sum(call.is_batched for call in self._known)
            stated = [line.is_batch or line.tier == "batch" for line in self._lines]
            is_batch = any(stated) != bool(batched)
            cause = BillCause.BATCH if is_batch else BillCause.TIER
            return Amount(cause, excess, "the same tokens in another tier")
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
