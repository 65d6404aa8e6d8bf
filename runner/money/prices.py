"""Finds prices of models: set by the user, else from the table that litellm ships.

The table is read from litellm's file without importing litellm, which takes seconds; a
model's row is decoded on demand. An unknown price is unknown and never 0, and zeros in
the table count as unknown: only the user can declare a server free (`--price 0,0`).

Money is counted in whole pico-dollars (`store.task.PICO_PER_USD`), so that sums are
exact in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import msgspec

from runner.clients.client import Api, Route, is_offline, route
from runner.errors import UsageError
from runner.messages import Usage
from runner.model_names import KINDS, full_name, model_hint, table_file
from runner.money.tokens import (
    LARGEST_OUTPUT,
    TokenBounds,
    byte_tokens,
    image_counter,
    tokenizer_of,
)
from runner.options import RunOptions
from store.task import pico

UNREAD: Final = ("tiered_pricing", "input_cost_per_request")
"""Keys of a row whose tokens do not determine the price: it counts as unknown."""

SEARCH: Final = "search_context_cost_per_query"
"""Key of the rows of models that can search the web. Most search with a tool, which
siftlog never enables. Models with "search" in their name, and all of Perplexity's,
search at each request, which costs several times as much as the tokens."""

EMBEDDING: Final = "embedding"
"""Mode of the rows that may have no output price, because there is no output."""

PER_MTOK: Final = 1e-6

_LONG: Final = re.compile(r"input_cost_per_token(_above_(\d+)k_tokens)")


TIERS: Final[Mapping[str, str]] = {
    "flex": "_flex",
    "priority": "_priority",
    "batch": "_batches",
    "ultrafast": "_ultrafast",
    "balanced": "_balanced",
}
"""Service tiers with separate prices, and the suffixes of their keys in the table. Any
other tier in a reply ("default", "standard", "scale", "on_demand") has the plain
price."""

AUTO: Final = "auto"
"""Requested tier that leaves the choice to the provider (OpenAI, Anthropic)."""

WRITE_FACTOR: Final = 1.25
HOUR_FACTOR: Final = 2.0
"""Anthropic's prices of prompt tokens written to its cache, for five minutes and for an
hour, relative to plain prompt tokens (its documentation, "Prompt caching")."""

_ANTHROPIC: Final = re.compile(r"anthropic|claude", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices in dollars per token."""

    input_usd: float
    output_usd: float
    cached_input_usd: float  #: of prompt tokens read from the provider's cache
    cache_write_usd: float  #: of prompt tokens written to it
    cache_write_1h_usd: float | None = None  #: for an hour; None: as for any time
    reasoning_usd: float | None = None
    """Price of reasoning tokens; None: as other output. If a reply does not report
    their number, the higher of the two prices counts for all output."""
    longer: tuple[tuple[int, Price], ...] = ()
    """Prices of prompts with more tokens than the given number, ascending."""
    tiers: tuple[tuple[str, Price], ...] = ()
    """Prices by tier of service, if it has its own."""

    @property
    def is_free(self) -> bool:
        """Return whether no call can cost anything."""
        prices = (self, *(price for _, price in self.tiers))
        return not any(
            _dearest_input(step) or _dearest_output(step)
            for price in prices
            for step in price.steps
        )

    @property
    def steps(self) -> tuple[Price, ...]:
        """This price, and those of longer prompts."""
        return (self, *(step for _, step in self.longer))

    def at(self, tier: str | None) -> Price:
        """Return the price in a service tier, as named in a reply."""
        if tier is None or not self.tiers:
            return self
        name = "batch" if tier == "batches" else tier.lower()
        return next(
            (price for tier_name, price in self.tiers if tier_name == name), self
        )


FREE: Final = Price(
    input_usd=0.0, output_usd=0.0, cached_input_usd=0.0, cache_write_usd=0.0
)
"""Price of calls without a provider: baselines, recordings, cached answers."""


def cost_pico(price: Price, usage: Usage, tier: str | None = None) -> int:
    """Return the cost of a call with this usage, in pico-dollars.

    The tier is that of the reply, not the requested one.
    """
    price = price_at(price, usage.tokens_in, tier)
    read, written = usage.tokens_cached, usage.tokens_cache_write
    for_an_hour, reasoning = usage.tokens_cache_write_1h, usage.tokens_reasoning
    plain = price.output_usd if reasoning else _dearest_output(price)
    return (
        max(0, usage.tokens_in - read - written) * pico(price.input_usd)
        + read * pico(price.cached_input_usd)
        + (written - for_an_hour) * pico(price.cache_write_usd)
        + for_an_hour * pico(_hour(price))
        + (usage.tokens_out - reasoning) * pico(plain)
        + reasoning * pico(_reasoning(price))
    )


def price_at(price: Price, tokens_in: int, tier: str | None) -> Price:
    """Return the price of a call with a prompt of that length, served in a tier."""
    price = price.at(tier)
    for tokens, step in price.longer:
        if tokens_in > tokens:
            price = step
    return price


def worst_pico(
    price: Price, tokens_in: int, tokens_out: int, tier: str | None = None
) -> int:
    """Return the maximum cost of a call within token limits, in pico-dollars.

    Args:
        price: of its model.
        tokens_in: maximum tokens of the prompt.
        tokens_out: maximum tokens of the reply.
        tier: the requested service tier; the plain one may be served instead. "auto"
            leaves the choice to the provider, so the most expensive tier counts.
    """
    if not price.tiers and not price.longer:  # nearly always
        return _worst_step(price, tokens_in, tokens_out)
    tiers = (
        [tier_price for _, tier_price in price.tiers]
        if tier == AUTO
        else [price.at(tier)]
    )
    return max(
        _worst_step(step, tokens_in, tokens_out)
        for served in (price, *tiers)
        for step in (
            served,
            *(step for tokens, step in served.longer if tokens_in > tokens),
        )
    )


def _worst_step(step: Price, tokens_in: int, tokens_out: int) -> int:
    return tokens_in * pico(_dearest_input(step)) + tokens_out * pico(
        _dearest_output(step)
    )


def _dearest_input(price: Price) -> float:
    """Return the highest price of a prompt token, cached or not."""
    return max(
        price.input_usd, price.cached_input_usd, price.cache_write_usd, _hour(price)
    )


def _dearest_output(price: Price) -> float:
    return max(price.output_usd, _reasoning(price))


def _hour(price: Price) -> float:
    hour = price.cache_write_1h_usd
    return price.cache_write_usd if hour is None else hour


def _reasoning(price: Price) -> float:
    return price.output_usd if price.reasoning_usd is None else price.reasoning_usd


def prices_of(models: Iterable[str], options: RunOptions) -> dict[str, Price | None]:
    """Return the price of each of a run's models; None: unknown, which is allowed.

    Raises:
        UsageError: a price is unknown, and that is not allowed or there is a budget.
    """
    prices = {model: price_of(model, options) for model in models}
    unknown = next((model for model, price in prices.items() if price is None), None)
    if unknown is None:
        return prices
    is_served = options.of(unknown).base_url is not None
    say = ("" if is_served else model_hint(unknown)) + (
        "check the name with siftlog models --filter, or give the "
        "price with --price IN,OUT (dollars per million tokens; 0,0 if "
        "it is free)"
    )
    if options.budget is not None:
        raise UsageError(
            f"A budget needs the price of {unknown}, which is unknown; {say}."
        )
    if not options.allow_unknown_price:
        raise UsageError(
            f"The price of {unknown} is unknown; {say}, or continue "
            "without it with --allow-unknown-price."
        )
    return prices


def price_of(model: str, options: RunOptions) -> Price | None:
    """Return the price of *model*; None: unknown.

    In this order: the model's own table in the configuration, `--price`, litellm's
    table, which is searched by the model's name, not by its endpoint. This is the price
    of single calls; batches cost a share of it.
    """
    if is_offline(model):
        return FREE
    price = _single(model, options)
    if price is None or not options.is_batched(model):
        return price
    factor = options.batch_price_factor
    is_usual = factor == RunOptions.model_fields["batch_price_factor"].default
    if is_usual and price.at("batch") is not price:
        return price.at("batch")
    return scaled(price, factor)


def scaled(price: Price, factor: float) -> Price:
    """Return *price* times *factor*; the result is the same in every tier."""
    hour, reasoning = price.cache_write_1h_usd, price.reasoning_usd
    return Price(
        input_usd=price.input_usd * factor,
        output_usd=price.output_usd * factor,
        cached_input_usd=price.cached_input_usd * factor,
        cache_write_usd=price.cache_write_usd * factor,
        cache_write_1h_usd=None if hour is None else hour * factor,
        reasoning_usd=None if reasoning is None else reasoning * factor,
        longer=tuple((tokens, scaled(step, factor)) for tokens, step in price.longer),
    )


def _single(model: str, options: RunOptions) -> Price | None:
    """Return the price of *model* in single calls, not in batches."""
    model_options = options.of(model)
    if (
        model_options.usd_per_mtok_in is not None
        and model_options.usd_per_mtok_out is not None
    ):
        return _set(
            model,
            model_options.usd_per_mtok_in,
            model_options.usd_per_mtok_out,
            model_options.usd_per_mtok_cached,
            model_options.usd_per_mtok_cache_write,
        )
    if options.price is not None:
        return _set(model, *options.price)
    row = row_of(model)
    return None if row is None else listed_price(model, row)


def _set(
    model: str,
    input_usd: float,
    output_usd: float,
    cached_usd: float | None = None,
    write_usd: float | None = None,
) -> Price:
    """Return a price given in dollars per million tokens."""
    is_anthropic = _ANTHROPIC.search(model) is not None
    if write_usd is None:
        write_usd = input_usd * (WRITE_FACTOR if is_anthropic else 1.0)
    return Price(
        input_usd=input_usd * PER_MTOK,
        output_usd=output_usd * PER_MTOK,
        cached_input_usd=PER_MTOK * (input_usd if cached_usd is None else cached_usd),
        cache_write_usd=PER_MTOK * write_usd,
        cache_write_1h_usd=PER_MTOK * max(write_usd, input_usd * HOUR_FACTOR)
        if is_anthropic
        else None,
    )


def row_of(model: str) -> Mapping[str, Any] | None:
    """Return the table's row of *model*, by its name or without its provider.

    Without it, the row must be of that provider.
    """
    provider, _, name = model.partition("/")
    for key in (model, name):
        if key in table():
            row: dict[str, Any] = msgspec.json.decode(table()[key])
            # "cohere_chat" is cohere, "vertex_ai-language-models" is vertex_ai
            if key == model or str(row.get("litellm_provider")).startswith(provider):
                return row
    return None


@cache
def table() -> Mapping[str, msgspec.Raw]:
    """Return the table's rows by name, undecoded: 2 ms for all of them."""
    path = table_file()
    if path is None:
        return {}
    return msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])


def listed_price(model: str, row: Mapping[str, Any]) -> Price | None:
    """Return the price in a row, with those of longer prompts; None: unknown."""
    is_embedding = row.get("mode") == EMBEDDING
    output = "input_cost_per_token" if is_embedding else "output_cost_per_token"
    is_whole = "input_cost_per_token" in row and output in row
    if not is_whole or any(row.get(key) for key in UNREAD) or _searches(model, row):
        return None
    longer = sorted(
        (int(match[2]) * 1000, match[1]) for match in map(_LONG.fullmatch, row) if match
    )

    def stepped(tier: str) -> Price:
        return replace(
            _price_at(model, row, "", tier),
            longer=tuple(
                (tokens, _price_at(model, row, suffix, tier))
                for tokens, suffix in longer
            ),
        )

    price = replace(
        stepped(""),
        tiers=tuple(
            (name, stepped(suffix))
            for name, suffix in TIERS.items()
            if f"input_cost_per_token{suffix}" in row
        ),
    )
    return None if price.is_free else price


def _searches(model: str, row: Mapping[str, Any]) -> bool:
    """Return whether each request is charged for a search too."""
    always = "search" in model or row.get("litellm_provider") == "perplexity"
    return always and bool(row.get(SEARCH))


def _price_at(
    model: str, row: Mapping[str, Any], length_suffix: str, tier_suffix: str
) -> Price:
    """Return the price for a prompt length and a tier, given by suffixes of the keys.

    If the table has no key for both, return the higher price of the two that it has.
    """

    def usd(key: str) -> float:
        exact = row.get(key + length_suffix + tier_suffix)
        if exact is not None:
            return float(exact)
        suffixes = [
            suffix
            for suffix in (length_suffix, tier_suffix)
            if suffix and row.get(key + suffix)
        ]
        prices = [row.get(key + suffix) or 0.0 for suffix in suffixes or [""]]
        return float(max(prices))

    input_usd = usd("input_cost_per_token")
    # never cheaper than uncached input; the table may omit it
    write_usd = max(usd("cache_creation_input_token_cost"), input_usd)
    hour_usd = row.get(
        f"cache_creation_input_token_cost_above_1hr{length_suffix}{tier_suffix}"
    )
    if not hour_usd and (
        _ANTHROPIC.search(model) or row.get("cache_creation_input_token_cost_above_1hr")
    ):
        hour_usd = input_usd * HOUR_FACTOR
    return Price(
        input_usd=input_usd,
        output_usd=usd("output_cost_per_token"),
        cached_input_usd=usd("cache_read_input_token_cost") or input_usd,
        cache_write_usd=write_usd,
        cache_write_1h_usd=max(hour_usd, write_usd) if hour_usd else None,
        reasoning_usd=usd("output_cost_per_reasoning_token") or None,
    )


CHAT: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
"""Endpoints that a row may list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model in the table."""

    model: str  #: as `--model` takes it
    kind: str  #: of request: "chat", "embed" or "rerank"
    price: Price | None  #: None: not in the table
    context_tokens: int | None  #: longest prompt; None: not in the table


def listed_models() -> Iterator[ListedModel]:
    """Return the models of the table that siftlog supports, by name."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    rows = (_listed_model(name, decoder.decode(row)) for name, row in table().items())
    return iter(sorted((row for row in rows if row), key=lambda row: row.model))


def context_tokens(model: str) -> int | None:
    """Return the longest prompt of a model in tokens; None: not in the table."""
    row = row_of(model)
    return None if row is None else _context_tokens(row)


def most_output_tokens(model: str) -> int | None:
    """Return the longest output of a model in tokens; None: not in the table."""
    tokens = (row_of(model) or {}).get("max_output_tokens")
    return int(tokens) if isinstance(tokens, int | float) and tokens else None


def api_of(model: str, options: RunOptions) -> Api:
    """Return the wire form of *model*'s chats, if its endpoint is OpenAI-compatible.

    Raises:
        UsageError: responses are requested, but the model is reached through litellm.
    """
    model_options = options.of(model)
    if model_options.api == "chat" or is_offline(model):
        return "chat"
    if model_options.api == "auto":
        return "responses" if lacks_chat(model) else "chat"
    if (
        route(model, has_base_url=model_options.base_url is not None)
        is not Route.DIRECT
    ):
        raise UsageError(
            f"{model} is reached through litellm, which has no Responses form here; "
            "give its address with --base-url, or leave out --api responses."
        )
    return "responses"


def lacks_chat(model: str) -> bool:
    """Return whether the table lists *model* for responses only, without chats."""
    row = row_of(model) or {}
    endpoints = row.get("supported_endpoints") or ()
    if RESPONSES in endpoints:
        return CHAT not in endpoints
    return row.get("mode") == "responses"


def _listed_model(name: str, row: Mapping[str, Any]) -> ListedModel | None:
    model = full_name(name, row)
    if model is None:
        return None
    return ListedModel(
        model=model,
        kind=KINDS[row["mode"]],
        price=listed_price(name, row),
        context_tokens=_context_tokens(row),
    )


def _context_tokens(row: Mapping[str, Any]) -> int | None:
    tokens = row.get("max_input_tokens") or row.get("max_tokens")
    return int(tokens) if isinstance(tokens, int | float) and tokens else None


UNBOUNDED: Final = re.compile(r"grok|gemini", re.IGNORECASE)
"""Names of models whose OpenAI form counts reasoning beside the completion, so that the
limit of the completion does not bound it (xAI, and Gemini behind a gateway)."""


NATIVE: Final = re.compile(r"(gemini|vertex_ai|vertex_ai_beta)/", re.IGNORECASE)
"""Through litellm, Gemini uses its native form, whose limit includes reasoning."""


MAKERS: Final = ("", "xai/", "gemini/")
"""Prefixes under which the table lists the models of `UNBOUNDED`."""


ENOUGH_REPLIES: Final = 3
"""Replies of earlier processes after which a model's limit is trusted: some of them may
be refusals, which take no reasoning."""


def bounds_of(
    model: str, options: RunOptions, *, learned: int | None = None, replies: int = 0
) -> TokenBounds:
    """Return the known bounds of *model*'s calls before the next of them.

    Args:
        model: its name.
        options: its endpoint, and whether there is a budget.
        learned: tokens of its longest reply, as learned by earlier processes.
        replies: number of replies that earlier processes received.
    """
    if is_offline(model):
        return TokenBounds()
    is_foreign = options.of(model).base_url is not None
    count = None if is_foreign else tokenizer_of(model)
    most = None
    if UNBOUNDED.search(model) and (is_foreign or not NATIVE.match(model)):
        name = model.rpartition("/")[2]
        known = (most_output_tokens(maker + name) for maker in MAKERS)
        most = max(filter(None, known), default=LARGEST_OUTPUT)
    if learned is not None:
        most = max(learned, most or 0)
    is_unproven = is_foreign and options.budget is not None and most is None
    return TokenBounds(
        count=count or byte_tokens,
        image=image_counter(model),
        most_output=most,
        is_unproven=is_unproven and replies < ENOUGH_REPLIES,
    )
