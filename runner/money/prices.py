"""What a model costs: what people set, then the table that litellm ships.

The table is read from litellm's file without importing litellm, which takes seconds; a
model's row is decoded when it is asked for. An unknown price is unknown and never 0,
and zeros in the table are taken for unknown: whether a server is free its owner says
(`--price 0,0`).

Money is counted in whole pico-dollars (`store.task.PICO_PER_USD`), so that sums are
exact in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.clients.route import is_offline
from runner.errors import UsageError
from runner.options import RunOptions
from runner.reply import Usage
from store.task import pico

TABLE: Final = "model_prices_and_context_window_backup.json"
"""Inside litellm's package: its prices as of its release."""

UNREAD: Final = ("tiered_pricing", "input_cost_per_request")
"""Keys of a row whose tokens do not tell the price: it counts as unknown."""

SEARCH: Final = "search_context_cost_per_query"
"""Key of the rows of models that can search the web. Most do it as a tool, which is
never asked for here; those called after it, and a provider's who sells nothing else, do
it at each request, and cost for it several times what the tokens cost."""

EMBEDDING: Final = "embedding"
"""Mode of the rows that may have no output price, because there is no output."""

PER_MTOK: Final = 1e-6

_LONG: Final = re.compile(r"input_cost_per_token(_above_(\d+)k_tokens)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars a token."""

    input_usd: float
    output_usd: float
    cached_input_usd: float  #: of prompt tokens read from the provider's cache
    cache_write_usd: float  #: of prompt tokens written to it
    longer: tuple[tuple[int, Price], ...] = ()
    """Ascending: prices of prompts that have more tokens than that."""

    @property
    def is_free(self) -> bool:
        """Whether no call can cost anything."""
        return not any(_dearest(step) or step.output_usd for step in self.steps)

    @property
    def steps(self) -> tuple[Price, ...]:
        """This price, and those of longer prompts."""
        return (self, *(step for _, step in self.longer))


FREE: Final = Price(
    input_usd=0.0, output_usd=0.0, cached_input_usd=0.0, cache_write_usd=0.0
)
"""Of what calls no provider: baselines, recordings, cached answers."""


def cost_pico(price: Price, usage: Usage) -> int:
    """What a call cost that used so much, in pico-dollars."""
    for tokens, step in price.longer:
        if usage.tokens_in > tokens:
            price = step
    read, written = usage.tokens_cached, usage.tokens_cache_write
    return (
        max(0, usage.tokens_in - read - written) * pico(price.input_usd)
        + read * pico(price.cached_input_usd)
        + written * pico(price.cache_write_usd)
        + usage.tokens_out * pico(price.output_usd)
    )


def worst_pico(price: Price, tokens_in: int, tokens_out: int) -> int:
    """The most that a call of at most so many tokens can cost, in pico-dollars."""
    short = [step for tokens, step in price.longer if tokens_in > tokens]
    return max(
        tokens_in * pico(_dearest(step)) + tokens_out * pico(step.output_usd)
        for step in (price, *short)
    )


def _dearest(price: Price) -> float:
    """Of a prompt token, whatever a cache makes of it."""
    return max(price.input_usd, price.cached_input_usd, price.cache_write_usd)


def prices_of(models: Iterable[str], options: RunOptions) -> dict[str, Price | None]:
    """The price of each of a run's models; None: unknown, and allowed to be.

    Raises:
        UsageError: one is unknown and that is not allowed, or a budget depends on it.
    """
    prices = {model: price_of(model, options) for model in models}
    unknown = next((model for model, price in prices.items() if price is None), None)
    if unknown is None:
        return prices
    say = (
        "check the name with siftlog models --filter, or say the price with --price "
        "IN,OUT (dollars a million tokens; 0,0 if it costs none)"
    )
    if options.budget is not None:
        raise UsageError(
            f"No budget can be kept for {unknown}, whose price is unknown; {say}."
        )
    if not options.allow_unknown_price:
        raise UsageError(
            f"The price of {unknown} is unknown; {say}, or go on without it by "
            "--allow-unknown-price."
        )
    return prices


def price_of(model: str, options: RunOptions) -> Price | None:
    """What a token of *model* costs; None: nobody knows.

    In this order: the model's own table of the configuration, `--price`, litellm's
    table. Where a model is served does not matter, its name does. Whichever it is, it
    is the price of single calls, and batches cost a share of it.
    """
    if is_offline(model):
        return FREE
    price = _single(model, options)
    if price is None or not options.is_batched(model):
        return price
    return scaled(price, options.batch_price_factor)


def scaled(price: Price, factor: float) -> Price:
    """That price times *factor*."""
    return Price(
        input_usd=price.input_usd * factor,
        output_usd=price.output_usd * factor,
        cached_input_usd=price.cached_input_usd * factor,
        cache_write_usd=price.cache_write_usd * factor,
        longer=tuple((tokens, scaled(step, factor)) for tokens, step in price.longer),
    )


def _single(model: str, options: RunOptions) -> Price | None:
    """What a token costs in a call of its own."""
    own = options.of(model)
    if own.usd_per_mtok_in is not None and own.usd_per_mtok_out is not None:
        return _set(
            own.usd_per_mtok_in,
            own.usd_per_mtok_out,
            own.usd_per_mtok_cached,
            own.usd_per_mtok_cache_write,
        )
    if options.price is not None:
        return _set(*options.price)
    row = row_of(model)
    return None if row is None else listed_price(model, row)


def _set(
    input_usd: float,
    output_usd: float,
    cached_usd: float | None = None,
    write_usd: float | None = None,
) -> Price:
    """A price as people write it: dollars a million tokens."""
    return Price(
        input_usd=input_usd * PER_MTOK,
        output_usd=output_usd * PER_MTOK,
        cached_input_usd=PER_MTOK * (input_usd if cached_usd is None else cached_usd),
        cache_write_usd=PER_MTOK * (input_usd if write_usd is None else write_usd),
    )


def row_of(model: str) -> Mapping[str, Any] | None:
    """The table's row of *model*: by its name, or without a provider that fits."""
    provider, _, name = model.partition("/")
    for key in (model, name):
        if key in table():
            row: dict[str, Any] = msgspec.json.decode(table()[key])
            # "cohere_chat" is of cohere, "vertex_ai-language-models" of vertex_ai
            if key == model or str(row.get("litellm_provider")).startswith(provider):
                return row
    return None


@cache
def table() -> Mapping[str, msgspec.Raw]:
    """Rows by name, undecoded: 2 ms for the whole of it."""
    litellm = find_spec("litellm")
    folders = litellm.submodule_search_locations if litellm is not None else None
    if not folders:
        return {}
    content = (Path(folders[0]) / TABLE).read_bytes()
    return msgspec.json.decode(content, type=dict[str, msgspec.Raw])


def listed_price(model: str, row: Mapping[str, Any]) -> Price | None:
    """A price by its row, with those of longer prompts; None: it does not tell."""
    is_embedding = row.get("mode") == EMBEDDING
    output = "input_cost_per_token" if is_embedding else "output_cost_per_token"
    is_whole = "input_cost_per_token" in row and output in row
    if not is_whole or any(row.get(key) for key in UNREAD) or _searches(model, row):
        return None
    longer = sorted(
        (int(found[2]) * 1000, found[1]) for found in map(_LONG.fullmatch, row) if found
    )
    price = replace(
        _step(row, ""),
        longer=tuple((tokens, _step(row, suffix)) for tokens, suffix in longer),
    )
    return None if price.is_free else price


def _searches(model: str, row: Mapping[str, Any]) -> bool:
    """Whether each request is charged for a search too."""
    always = "search" in model or row.get("litellm_provider") == "perplexity"
    return always and bool(row.get(SEARCH))


def _step(row: Mapping[str, Any], suffix: str) -> Price:
    """The price under the keys that end so; where one is missing, the plain key's."""

    def usd(key: str) -> float:
        return float(row.get(key + suffix) or row.get(key) or 0.0)

    input_usd = usd("input_cost_per_token")
    return Price(
        input_usd=input_usd,
        # thoughts are not told apart in a usage: the dearer counts for all
        output_usd=max(
            usd("output_cost_per_token"), usd("output_cost_per_reasoning_token")
        ),
        cached_input_usd=usd("cache_read_input_token_cost") or input_usd,
        # never cheaper than to read anew; where the table says so it is left open
        cache_write_usd=max(usd("cache_creation_input_token_cost"), input_usd),
    )
