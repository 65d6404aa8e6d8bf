"""What a token costs: a stand-in until the price table is there; knows free models."""

from __future__ import annotations

from dataclasses import dataclass

from runner.options import BASELINE, RunOptions
from runner.reply import Usage
from store.task import PICO_PER_USD


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars a token."""

    input_usd: float
    output_usd: float
    cached_input_usd: float | None = None  #: None: as other input
    cache_write_usd: float | None = None


FREE = Price(input_usd=0.0, output_usd=0.0)


def price_of(model: str, options: RunOptions) -> Price | None:
    """The price of a model; None where it is unknown."""
    del options
    return FREE if model == BASELINE or model.startswith("recorded:") else None


def cost_pico(price: Price, usage: Usage) -> int:
    """What a reply cost, in pico-dollars."""
    cached = (
        price.input_usd if price.cached_input_usd is None else price.cached_input_usd
    )
    return round(
        PICO_PER_USD
        * (
            (usage.tokens_in - usage.tokens_cached) * price.input_usd
            + usage.tokens_cached * cached
            + usage.tokens_out * price.output_usd
        )
    )


def worst_pico(price: Price, tokens_in: int, tokens_out: int) -> int:
    """The most that a call may cost, in pico-dollars."""
    dearest = max(price.input_usd, price.cache_write_usd or 0.0)
    return round(PICO_PER_USD * (tokens_in * dearest + tokens_out * price.output_usd))
