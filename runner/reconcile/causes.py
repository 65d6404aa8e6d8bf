"""Names why a provider billed another amount than the log expects.

Each cause is a hypothesis with an amount of its own: cached tokens at the full price, a
batch without its discount. A difference has a cause only if a hypothesis gives the
billed amount to the last pico-dollar, or to the last decimal of the file. What none of
them gives is unexplained, and stays in the residual.

Another price table is the hypothesis of several lines at once: prices in whole
pico-dollars per token that give the billed amounts of all lines that are otherwise
unexplained.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd
from typing import Final, NamedTuple, TypeAlias

from runner.messages import Usage
from runner.money.prices import Price, cost_pico, price_at
from runner.reconcile.attempts import CallOutcome, CallPrices, SentCall
from runner.reconcile.usage_file import UsageLine
from runner.reconcile.usage_forms import COUNTS
from store.task import pico


class BillCause(enum.StrEnum):
    """Reasons why an amount is not the expected one."""

    REASONING = "reasoning"  #: reasoning tokens are charged twice, or not at all
    CACHE_READ = "cache read"  #: not at the price of cached tokens
    CACHE_WRITE = "cache write"  #: not at the price of tokens written to the cache
    TIER = "tier"  #: at the price of another service tier
    BATCH = "batch"  #: without the discount of batches, or with it
    DOUBLE = "double charge"
    FAILED = "charged though failed"  #: the call was refused with an error status
    PRICES = "price table"  #: at other prices per token
    PROMPT = "prompt tokens"  #: other numbers than in the reply
    OUTPUT = "output tokens"
    NOT_CHARGED = "not charged"  #: the file has no line of an answered call
    NO_CALL = "no call"  #: a line that belongs to no call of the run
    ROUNDING = "rounding"  #: beyond the decimals of the file
    UNEXPLAINED = "unexplained"


class Amount(NamedTuple):
    """A part of a difference."""

    cause: BillCause
    pico: int  #: billed beyond what was expected; negative: less
    detail: str = ""  #: for people, without a full stop; empty: that of the cause


DETAILS: Final[Mapping[BillCause, str]] = {
    BillCause.DOUBLE: "a further line of the same call",
    BillCause.FAILED: "the call was refused with an error status",
    BillCause.NOT_CHARGED: "the file has no line of the call",
    BillCause.NO_CALL: "no call has this id, or this time, model and tokens",
    BillCause.ROUNDING: "beyond the decimals of the file",
    BillCause.UNEXPLAINED: "no cause gives this amount",
}
"""Details of causes that are the same in every case."""


TIER_FACTORS: Final = (Fraction(1, 2), Fraction(2), Fraction(7, 4), Fraction(5, 2))
"""Usual prices of tiers relative to the standard one: flex; priority by model (OpenAI's
price page). They count where the price of a tier is not known."""


NO_TOKENS: Final = Usage(tokens_in=0, tokens_out=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A line that was billed for a call, with what is known of both."""

    call: SentCall
    line: UsageLine
    usage: Usage | None  #: of the reply; if it has none, that of the line
    price: Price | None
    tier: str | None
    expected_pico: int | None  #: None: not known, so any amount settles it
    billed_pico: int

    @property
    def step(self) -> Price | None:
        """The prices of its tier and prompt length."""
        if self.price is None or self.usage is None:
            return None
        return price_at(self.price, self.usage.tokens_in, self.tier)


def charge_of(
    call: SentCall, line: UsageLine, prices: CallPrices, tolerance_pico: int
) -> Charge:
    """Return what a line should have billed for a call.

    Of a call whose reply the log does not have, the line says tokens and tier.
    """
    price = prices.of(call.model, is_batched=call.is_batched)
    usage, tier = call.usage, call.tier
    expected = call.cost_pico
    if usage is None and line.has_tokens:
        usage = stated(line, NO_TOKENS)
        if expected is None and price is not None:
            tier, expected = _served(price, usage, line, tolerance_pico)
    return Charge(
        call=call,
        line=line,
        usage=usage,
        price=price,
        tier=tier,
        expected_pico=expected,
        billed_pico=line.billed_pico or 0,
    )


def _served(
    price: Price, usage: Usage, line: UsageLine, tolerance_pico: int
) -> tuple[str | None, int | None]:
    """Return tier and cost of a call whose reply the log does not have.

    A tier that the line does not state is the one that gives the bill. The cost is not
    known if the line does not state all parts of the prompt, and the parts that it
    states do not give the bill.
    """
    tiers = [None, *(name for name, _ in price.tiers)] if line.tier is None else []
    for tier in (line.tier, *tiers):
        cost = cost_pico(price, usage, tier)
        if abs(cost - (line.billed_pico or 0)) <= tolerance_pico:
            return tier, cost
    is_whole = None not in {line.tokens_cached, line.tokens_cache_write} and (
        not usage.tokens_cache_write or line.tokens_cache_write_1h is not None
    )
    return line.tier, cost_pico(price, usage, line.tier) if is_whole else None


def stated(line: UsageLine, usage: Usage) -> Usage:
    """Return the tokens of a line; of *usage* those that it does not state."""
    counts = {name: getattr(line, name) for name in COUNTS}
    return replace(usage, **{k: n for k, n in counts.items() if n is not None})


def explain(charge: Charge, prices: CallPrices, tolerance_pico: int) -> list[Amount]:
    """Return the causes of a difference; empty: there is none, or none is known.

    The amounts add up to the difference, or to it without what is rounded away.
    """
    expected, billed, usage = charge.expected_pico, charge.billed_pico, charge.usage
    if expected is None or abs(billed - expected) <= tolerance_pico:
        return []
    if usage is None or charge.price is None:
        return []
    counted, as_stated = _token_amounts(charge, usage, charge.price)
    so_far = expected + sum(amount.pico for amount in counted)
    if abs(billed - so_far) <= tolerance_pico:
        return counted
    for cause, cost, detail in _hypotheses(replace(charge, usage=as_stated), prices):
        if abs(billed - cost) <= tolerance_pico and cost != so_far:
            return [*counted, Amount(cause, cost - so_far, detail)]
    return []


class Misfit(NamedTuple):
    """How little a line fits a call; the larger, the less likely it is of the call.

    Counts outweigh amounts: few causes of much money are likelier than many of little.
    """

    causes: int = 0
    is_arbitrary: int = 0  #: 1: it states numbers of tokens that no miscount gives
    unexplained_pico: int = 0
    excess_pico: int = 0  #: between what was billed and what was expected

    def plus(self, other: Misfit, sign: int = 1) -> Misfit:
        """Return the sum, or with *sign* -1 the difference."""
        return Misfit(*(a + sign * b for a, b in zip(self, other, strict=True)))


FITTING: Final = Misfit()


def misfit(charge: Charge, prices: CallPrices, tolerance_pico: int) -> Misfit:
    """Return how little a line fits its call; `FITTING`: nothing is misbilled."""
    expected = charge.expected_pico
    if expected is None or abs(charge.billed_pico - expected) <= tolerance_pico:
        return FITTING
    excess = abs(charge.billed_pico - expected)
    if charge.call.outcome is CallOutcome.FAILED:
        # a refused call has generated nothing
        return Misfit(1 + bool(charge.line.tokens_out), excess_pico=excess)
    usage, price = charge.usage, charge.price
    if usage is None or price is None:
        return Misfit(1, unexplained_pico=excess, excess_pico=excess)
    billed = stated(charge.line, usage)
    # a reply that does not say how much was reasoning may have had half of the billed
    reasoning = usage.tokens_reasoning or billed.tokens_reasoning // 2
    likely = replace(usage, tokens_reasoning=reasoning)
    miscounts = (changed for _, changed, _ in _miscounts(likely))
    is_arbitrary = int(billed != usage and billed not in miscounts)
    causes = len(explain(charge, prices, tolerance_pico))
    if causes:
        return Misfit(causes, is_arbitrary, excess_pico=excess)
    counted, _ = _token_amounts(charge, usage, price)
    rest = abs(charge.billed_pico - expected - sum(amount.pico for amount in counted))
    return Misfit(len(counted) + 1, is_arbitrary, rest, excess)


def _token_amounts(
    charge: Charge, usage: Usage, price: Price
) -> tuple[list[Amount], Usage]:
    """Return what other numbers of tokens cost, one kind after the other."""
    billed = stated(charge.line, usage)
    now, cost = usage, charge.expected_pico or 0
    amounts: list[Amount] = []
    for names, cause in (
        (("tokens_out", "tokens_reasoning"), BillCause.OUTPUT),
        (("tokens_cached",), BillCause.CACHE_READ),
        (("tokens_cache_write", "tokens_cache_write_1h"), BillCause.CACHE_WRITE),
        (("tokens_in",), BillCause.PROMPT),
    ):
        changes = {name: getattr(billed, name) for name in names}
        if all(getattr(now, name) == value for name, value in changes.items()):
            continue
        extra = billed.tokens_out - usage.tokens_out
        is_reasoning = billed.tokens_reasoning != usage.tokens_reasoning
        if cause is BillCause.OUTPUT and (
            is_reasoning or (extra and abs(extra) == usage.tokens_reasoning)
        ):
            cause = BillCause.REASONING  # noqa: PLW2901 - the particular case
        now = replace(now, **changes)
        changed = cost_pico(price, now, charge.tier)
        name = names[0]
        detail = (
            f"{getattr(billed, name):,} tokens billed, {getattr(usage, name):,} in "
            "the reply"
        )
        if changed != cost:
            amounts.append(Amount(cause, changed - cost, detail))
        cost = changed
    return amounts, now


def _hypotheses(
    charge: Charge, prices: CallPrices
) -> Iterator[tuple[BillCause, int, str]]:
    """Yield causes with the amount that each of them bills."""
    usage, price, tier = charge.usage, charge.price, charge.tier
    if usage is None or price is None:
        return
    for cause, changed, detail in _miscounts(usage):
        yield cause, cost_pico(price, changed, tier), detail
    is_batched = charge.call.is_batched
    other = prices.of(charge.call.model, is_batched=not is_batched)
    if is_batched and other is not None:
        yield BillCause.BATCH, cost_pico(other, usage), "without the discount"
    for name in (None, *(name for name, _ in price.tiers)):
        cost = cost_pico(price, usage, name)
        yield BillCause.TIER, cost, f"at the price of tier {name or 'standard'}"
    if not is_batched and other is not None:
        yield BillCause.BATCH, cost_pico(other, usage), "at the price of batches"
    step = price_at(price, usage.tokens_in, None)
    plain = cost_pico(replace(step, longer=(), tiers=()), usage)
    for factor in TIER_FACTORS:
        whole = plain * factor
        if whole.denominator == 1:
            detail = f"at {float(factor):g} times the standard price"
            yield BillCause.TIER, whole.numerator, detail


def costs_by_cause(
    charges: Sequence[Charge], prices: CallPrices
) -> dict[BillCause, int]:
    """Return what all calls cost if each cause held for each call that it can."""
    causes: dict[BillCause, int] = {}
    expected = sum(charge.expected_pico or 0 for charge in charges)
    for charge in charges:
        first: dict[BillCause, int] = {}
        for cause, cost, _ in _hypotheses(charge, prices):
            if cost != charge.expected_pico:
                first.setdefault(cause, cost - (charge.expected_pico or 0))
        for cause, excess in first.items():
            causes[cause] = causes.get(cause, expected) + excess
    return causes


def _miscounts(usage: Usage) -> Iterator[tuple[BillCause, Usage, str]]:
    """Yield the usage as it is billed if tokens are counted as others."""
    reasoning = usage.tokens_reasoning
    if reasoning:
        out = usage.tokens_out
        yield (
            BillCause.REASONING,
            replace(usage, tokens_out=out + reasoning, tokens_reasoning=2 * reasoning),
            f"{reasoning:,} tokens charged twice",
        )
        yield (
            BillCause.REASONING,
            replace(usage, tokens_out=out - reasoning, tokens_reasoning=0),
            f"{reasoning:,} tokens not charged",
        )
    cached, written = usage.tokens_cached, usage.tokens_cache_write
    if cached:
        detail = f"{cached:,} cached tokens at the full price"
        yield BillCause.CACHE_READ, replace(usage, tokens_cached=0), detail
    if written:
        for hour, detail in ((written, "for an hour"), (0, "for five minutes")):
            yield (
                BillCause.CACHE_WRITE,
                replace(usage, tokens_cache_write_1h=hour),
                f"{written:,} tokens as if written {detail}",
            )
        yield (
            BillCause.CACHE_WRITE,
            replace(usage, tokens_cache_write=0, tokens_cache_write_1h=0),
            f"{written:,} written tokens at the price of plain ones",
        )
        yield (
            BillCause.CACHE_READ,
            replace(
                usage,
                tokens_cached=cached + written,
                tokens_cache_write=0,
                tokens_cache_write_1h=0,
            ),
            f"{written:,} written tokens at the price of cached ones",
        )
    fresh = usage.tokens_in - cached - written
    if fresh > 0 or cached:
        yield (
            BillCause.CACHE_WRITE,
            replace(
                usage, tokens_cached=0, tokens_cache_write=fresh + cached + written
            ),
            "all prompt tokens as if written to the cache",
        )


# -- another price table -------------------------------------------------------

_Rows: TypeAlias = Sequence[tuple[int, ...]]

FEWEST_TOKENS: Final = 100
"""A single line proves another price only if its amount divides by its tokens, which
are at least this many: by chance one amount in N divides by N."""


def other_prices(charges: Sequence[Charge]) -> str:
    """Return the prices that give all billed amounts, for people; empty: none do.

    Args:
        charges: otherwise unexplained, at the same prices.
    """
    rows = [_token_counts(charge.usage) for charge in charges if charge.usage]
    step = charges[0].step
    if step is None or step.reasoning_usd is not None:
        return ""
    listed = _token_prices(step)
    billed = [charge.billed_pico for charge in charges]
    fitted = (
        _one_price(rows, billed, listed)
        or _one_factor(rows, billed, listed)
        or _all_prices(rows, billed, listed)
    )
    return "" if fitted is None else _named_prices(fitted, listed, rows)


LEAST_CHANCE: Final = 1_000
"""A sum proves another price only if by chance one amount in this number has one."""


def other_prices_of_sum(charges: Sequence[Charge], billed_pico: int) -> str:
    """Return the prices that give the amount of a sum, for people; empty: none do.

    A sum is one equation, which many prices solve. It proves those where one price is
    another one, or all are changed by one factor, if no others of this kind give it,
    and dearer calls among them hardly can.

    Args:
        charges: all that the sum has, with the tokens that it has.
        billed_pico: its amount.
    """
    step = charges[0].step if charges else None
    if step is None or step.reasoning_usd is not None:
        return ""
    if any(charge.step != step for charge in charges):
        return ""
    listed = _token_prices(step)
    rows = [_token_counts(charge.usage) for charge in charges if charge.usage]
    row = tuple(map(sum, zip(*rows, strict=True)))
    costs = [charge.expected_pico or 0 for charge in charges]
    cost = _cost(row, listed)
    if cost != sum(costs) or not cost:
        return ""
    # also what some of the calls cost too much is a multiple of this
    unit = gcd(*costs)
    #: prices, and of how many multiples one has them by chance
    priced: dict[tuple[int, ...], int] = {}
    for at, count in enumerate(row):
        if count and (billed_pico - cost) % count == 0:
            price = listed[at] + (billed_pico - cost) // count
            priced[*listed[:at], price, *listed[at + 1 :]] = count // gcd(count, unit)
    factor = Fraction(billed_pico, cost)
    used = [price for price, count in zip(listed, row, strict=True) if count]
    if all((price * factor).denominator == 1 for price in used):
        prices = tuple(
            int(price * factor) if count else price
            for price, count in zip(listed, row, strict=True)
        )
        priced[prices] = cost // gcd(cost, unit * gcd(*used))
    if len(priced) != 1:
        return ""
    ((prices, chance),) = priced.items()
    if chance < LEAST_CHANCE or min(prices) < 0:
        return ""
    return _named_prices(prices, listed, [row])


def _named_prices(fitted: Sequence[int], listed: Sequence[int], rows: _Rows) -> str:
    words = (
        f"{name} ${_per_mtok(new)}, not ${_per_mtok(old)}"
        for at, (name, new, old) in enumerate(
            zip(_CLASSES, fitted, listed, strict=True)
        )
        if new != old and any(row[at] for row in rows)
    )
    return f"{'; '.join(words)} a million tokens"


_CLASSES: Final = ("prompt", "cached", "written", "written for an hour", "output")


def _per_mtok(pico_per_token: int) -> str:
    return f"{pico_per_token / 1e6:.6f}".rstrip("0").rstrip(".")


def _token_counts(usage: Usage) -> tuple[int, ...]:
    read, written = usage.tokens_cached, usage.tokens_cache_write
    hour = usage.tokens_cache_write_1h
    fresh = max(0, usage.tokens_in - read - written)
    return fresh, read, written - hour, hour, usage.tokens_out


def _token_prices(step: Price) -> tuple[int, ...]:
    hour = step.cache_write_1h_usd
    return tuple(
        pico(usd)
        for usd in (
            step.input_usd,
            step.cached_input_usd,
            step.cache_write_usd,
            step.cache_write_usd if hour is None else hour,
            step.output_usd,
        )
    )


def _cost(row: Sequence[int], prices: Sequence[int]) -> int:
    return sum(n * price for n, price in zip(row, prices, strict=True))


def _one_price(
    rows: _Rows, billed: Sequence[int], listed: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return prices of which one is another one."""
    for at in range(len(listed)):
        if not rows[0][at]:
            continue
        excess = billed[0] - _cost(rows[0], listed)
        change, left = divmod(excess, rows[0][at])
        prices = (*listed[:at], listed[at] + change, *listed[at + 1 :])
        is_proven = len(rows) > 1 or rows[0][at] >= FEWEST_TOKENS
        if left == 0 and min(prices) >= 0 and is_proven and _give(prices, rows, billed):
            return prices
    return None


def _one_factor(
    rows: _Rows, billed: Sequence[int], listed: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return prices that are all changed by the same factor."""
    cost = _cost(rows[0], listed)
    factor = Fraction(billed[0], cost) if cost else Fraction(0)
    scaled_prices = [price * factor for price in listed]
    if factor <= 0 or any(price.denominator != 1 for price in scaled_prices):
        return None
    prices = tuple(price.numerator for price in scaled_prices)
    return prices if _give(prices, rows, billed) else None


def _all_prices(
    rows: _Rows, billed: Sequence[int], listed: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return prices that solve the equations of more lines than there are prices."""
    used = [at for at in range(len(listed)) if any(row[at] for row in rows)]
    if len(rows) <= len(used):
        return None
    equations = [
        [*(Fraction(row[at]) for at in used), Fraction(amount)]
        for row, amount in zip(rows, billed, strict=True)
    ]
    solved = _solution(equations, len(used))
    if solved is None or any(price.denominator != 1 or price < 0 for price in solved):
        return None
    prices = list(listed)
    for at, price in zip(used, solved, strict=True):
        prices[at] = price.numerator
    return tuple(prices) if _give(prices, rows, billed) else None


def _solution(equations: list[list[Fraction]], unknowns: int) -> list[Fraction] | None:
    """Solve linear equations; None: there is not exactly one solution."""
    rest = equations
    pivots: list[list[Fraction]] = []
    for at in range(unknowns):
        pivot = next((row for row in rest if row[at]), None)
        if pivot is None:
            return None
        unit = [cell / pivot[at] for cell in pivot]
        rest = [_without(row, unit, at) for row in rest if row is not pivot]
        pivots = [*(_without(row, unit, at) for row in pivots), unit]
    return [row[-1] for row in pivots]


def _without(row: list[Fraction], unit: list[Fraction], at: int) -> list[Fraction]:
    return [cell - row[at] * one for cell, one in zip(row, unit, strict=True)]


def _give(prices: Sequence[int], rows: _Rows, billed: Sequence[int]) -> bool:
    return all(
        _cost(row, prices) == amount for row, amount in zip(rows, billed, strict=True)
    )
