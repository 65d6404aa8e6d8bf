"""Calls and their lines, for tests of reconcile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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


def cost_of(usage: Usage) -> int:
    written = usage.tokens_cache_write
    fresh = usage.tokens_in - usage.tokens_cached - written
    cost = fresh * IN + usage.tokens_cached * CACHED + usage.tokens_out * OUT
    return cost + written * WRITTEN


def call_of(n: int, **changes: Any) -> SentCall:
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
        cost_pico=cost_of(usage),
        request_id=f"req_{n}",
    )
    return replace(call, **changes)


def line_of(n: int, row: int = 0, **changes: Any) -> UsageLine:
    """The right line of the call *n*."""
    usage = call_of(n).usage
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
        billed_pico=cost_of(usage),
        tier=None,
        is_batch=None,
    )
    return replace(line, **changes)


def compared(
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
