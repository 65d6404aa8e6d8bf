"""The invoice of the simulated endpoint, with misbillings drawn at random.

Written from the endpoint's ledger and price list alone: nothing of `runner.money` or
`runner.reconcile` is used, so that an error of theirs cannot be in the invoice too.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from runner.simulate.billing import (
    GENERATED,
    BatchAct,
    BatchLine,
    BilledTokens,
    LedgerLine,
    PriceList,
)
from runner.simulate.options import RequestOutcome

KINDS: Final = (
    *("reasoning", "cache read", "cache write", "tier", "batch", "double charge"),
    *("price table", "charged though failed"),
)
"""The kinds of misbilling, by the names that the command gives them."""

ALWAYS_POSSIBLE: Final = frozenset({"double charge", "tier", "price table"})
"""Kinds that nearly every line can have; the others are drawn first."""

FORMS: Final = ("plain", "litellm", "openrouter")
PICO: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A line of the invoice, before it has a form."""

    id: str
    start_ms: int
    end_ms: int
    model: str
    tokens: BilledTokens
    tier: str | None
    cost: Decimal
    is_known: bool  #: the log has its reply with usage
    is_batch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A misbilling."""

    kind: str
    id: str
    row: int
    pico: int  #: charged too much


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """A written invoice."""

    path: Path
    injected: tuple[Injected, ...]
    pico: int  #: the sum
    rows: int


def charged_lines(
    lines: Sequence[LedgerLine],
    batch_lines: Sequence[BatchLine],
    is_known: Callable[[LedgerLine | BatchLine], bool],
) -> list[Charged]:
    """What the endpoint rightly bills."""
    billed: list[tuple[LedgerLine | BatchLine, int, int]] = [
        (line, line.received_ms, line.finished_ms)
        for line in lines
        if line.outcome in GENERATED and line.finish
    ]
    billed += [
        (line, line.at_ms, line.at_ms)
        for line in batch_lines
        if line.act is BatchAct.BILLED
    ]
    return [
        Charged(
            id=line.request_id or "",
            start_ms=start_ms,
            end_ms=end_ms,
            model=line.served_model or line.model,
            tokens=_tokens(line),
            tier=line.tier,
            cost=Decimal(line.cost_usd),
            is_known=is_known(line),
            is_batch=isinstance(line, BatchLine),
        )
        for line, start_ms, end_ms in billed
    ]


def _tokens(line: LedgerLine | BatchLine) -> BilledTokens:
    cached, written = line.tokens_cached, line.tokens_cache_write
    hour = line.tokens_cache_write_1h
    return BilledTokens(
        fresh=line.tokens_in - cached - written,
        cached=cached,
        written_5m=written - hour,
        written_1h=hour,
        visible=line.tokens_out - line.tokens_reasoning,
        reasoning=line.tokens_reasoning,
    )


class Misbiller:
    """Draws misbillings; each line has at most one."""

    def __init__(
        self,
        chance: random.Random,
        prices: PriceList,
        *,
        share: float,
        priority: Decimal,
        states_tier: bool,
    ) -> None:
        self.chance, self._prices, self._share = chance, prices, share
        self._tiers = {**prices.tiers, "priority": priority}
        self._states_tier = states_tier
        factor = chance.choice((Decimal("1.1"), Decimal("0.9"), Decimal("1.25")))
        if chance.random() < 0.5:
            self._other = replace(prices, fresh=prices.fresh * factor)
        else:
            self._other = PriceList(
                fresh=prices.fresh * factor,
                out=prices.out * factor,
                cached=prices.cached * factor,
                written_5m=prices.written_5m * factor,
                written_1h=prices.written_1h * factor,
                tiers=prices.tiers,
            )

    def misbilled(self, line: Charged) -> tuple[str, Charged] | None:
        """The line with a misbilling that it can have; None: it has none."""
        if self.chance.random() >= self._share:
            return None
        possible = [
            (kind, changed)
            for kind, changed in self._possible(line)
            if changed.cost != line.cost or kind == "double charge"
        ]
        rare = [each for each in possible if each[0] not in ALWAYS_POSSIBLE]
        if rare and self.chance.random() < 0.8:
            possible = rare
        return self.chance.choice(possible) if possible else None

    def _possible(self, line: Charged) -> Iterator[tuple[str, Charged]]:
        yield "double charge", line
        if not line.is_known:
            return
        tokens, states = line.tokens, self.chance.random() < 0.5
        if tokens.reasoning:
            twice = replace(tokens, reasoning=2 * tokens.reasoning)
            yield "reasoning", self._counted(line, twice, states=states)
        if tokens.cached:
            fresh = replace(tokens, fresh=tokens.fresh + tokens.cached, cached=0)
            yield "cache read", self._counted(line, fresh, states=states)
        if not tokens.cached:
            written = replace(tokens, fresh=0, written_5m=tokens.prompt, written_1h=0)
            yield "cache write", self._counted(line, written, states=states)
        if line.is_batch:
            cost = self._prices.cost(tokens)
            yield "batch", replace(line, cost=cost, tier=None, is_batch=False)
            return
        if line.tier is None:
            other = replace(self._prices, tiers=self._tiers)
            yield (
                "tier",
                replace(
                    line,
                    cost=other.cost(tokens, "priority"),
                    tier="priority" if self._states_tier else None,
                ),
            )
        if tokens.fresh >= 200:
            yield "price table", replace(line, cost=self._other.cost(tokens, line.tier))

    def _counted(self, line: Charged, tokens: BilledTokens, *, states: bool) -> Charged:
        cost = self._prices.cost(tokens, line.tier)
        return replace(line, cost=cost, tokens=tokens if states else line.tokens)

    def for_nothing(self, line: LedgerLine) -> Charged | None:
        """A charge for a call that was refused; None: it has none."""
        is_failed = line.outcome is RequestOutcome.SERVER_ERROR and line.tokens
        if not is_failed or self.chance.random() >= self._share:
            return None
        tokens = BilledTokens(fresh=line.tokens)
        return Charged(
            id=f"refused-{line.n}",
            start_ms=line.received_ms,
            end_ms=line.finished_ms,
            model=line.model,
            tokens=tokens,
            tier=None,
            cost=self._prices.cost(tokens),
            is_known=False,
        )


def write_invoice(
    path: Path,
    form: str,
    charged: Sequence[Charged],
    calls: Sequence[LedgerLine],
    misbiller: Misbiller,
) -> Invoice:
    """Write the invoice in a form, in random order, with misbillings.

    Args:
        path: of the file, without its suffix.
        form: one of `FORMS`.
        charged: what is rightly billed.
        calls: all calls, of which refused ones may be charged.
        misbiller: draws the misbillings.
    """
    lines: list[tuple[Charged, str, Decimal]] = []
    for line in charged:
        match misbiller.misbilled(line):
            case ("double charge", again):
                lines += [(line, "", Decimal(0)), (again, "double charge", again.cost)]
            case (kind, changed):
                lines.append((changed, kind, changed.cost - line.cost))
            case None:
                lines.append((line, "", Decimal(0)))
    for failed in calls:
        free = misbiller.for_nothing(failed)
        if free is not None and free.cost:
            lines.append((free, "charged though failed", free.cost))
    misbiller.chance.shuffle(lines)
    path = path.with_suffix(".csv" if form == "openrouter" else ".jsonl")
    records = [_RECORDS[form](line) for line, _, _ in lines]
    with path.open("w", newline="") as file:
        if form == "openrouter":
            writer = csv.DictWriter(file, list(records[0]) if records else ["none"])
            writer.writeheader()
            writer.writerows(records)
        else:
            file.writelines(f"{json.dumps(record)}\n" for record in records)
    first = 2 if form == "openrouter" else 1
    return Invoice(
        path=path,
        injected=tuple(
            Injected(kind=kind, id=line.id, row=row, pico=int(extra * PICO))
            for row, (line, kind, extra) in enumerate(lines, first)
            if kind
        ),
        pico=sum(int(line.cost * PICO) for line, _, _ in lines),
        rows=len(lines),
    )


def _iso(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(line: Charged) -> dict[str, Any]:
    tokens = line.tokens
    return {
        "request_id": line.id,
        "time": _iso(line.start_ms),
        "end_time": _iso(line.end_ms),
        "model": line.model,
        "tokens_in": tokens.prompt,
        "tokens_out": tokens.out,
        "tokens_cached": tokens.cached,
        "tokens_cache_write": tokens.written,
        "tokens_cache_write_1h": tokens.written_1h,
        "tokens_reasoning": tokens.reasoning,
        "cost_usd": f"{line.cost:f}",
        "tier": line.tier or "default",
        "batch": line.is_batch,
    }


def litellm_record(line: Charged) -> dict[str, Any]:
    """A row of LiteLLM's spend logs."""
    tokens = line.tokens
    return {
        "request_id": line.id,
        "call_type": "acompletion",
        "spend": float(line.cost),
        "total_tokens": tokens.total,
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.out,
        "startTime": _iso(line.start_ms),
        "endTime": _iso(line.end_ms),
        "model": line.model,
        "metadata": {
            "usage_object": {
                "prompt_tokens_details": {"cached_tokens": tokens.cached},
                "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
                "cache_creation_input_tokens": tokens.written,
            }
        },
    }


def _openrouter(line: Charged) -> dict[str, Any]:
    tokens = line.tokens
    moment = _iso(line.start_ms).replace("T", " ").removesuffix("Z")
    return {
        "generation_id": line.id,
        "created_at": moment,
        "cost_total": f"{line.cost:f}",
        "byok_usage_inference": 0,
        "tokens_prompt": tokens.prompt,
        "tokens_completion": tokens.out,
        "tokens_reasoning": tokens.reasoning,
        "tokens_cached": tokens.cached,
        "model_permaslug": line.model,
        "cancelled": "false",
    }


_RECORDS: Final = {
    "plain": _plain,
    "litellm": litellm_record,
    "openrouter": _openrouter,
}
