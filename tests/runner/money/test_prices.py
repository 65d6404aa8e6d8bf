"""Prices: what a person says, then the packaged table; unknown is never zero."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.messages import Usage
from runner.money.prices import (
    FREE,
    Price,
    cost_pico,
    listed_price,
    price_of,
    prices_of,
    scaled,
    worst_pico,
)
from runner.options import RunOptions, options_from

PLAIN = Price(
    input_usd=1e-6, output_usd=4e-6, cached_input_usd=1e-7, cache_write_usd=1.25e-6
)
LONG = Price(
    input_usd=2e-6, output_usd=6e-6, cached_input_usd=2e-7, cache_write_usd=2.5e-6
)


def _prices(options: RunOptions) -> dict[str, Price | None]:
    return prices_of(options.model, options)


def _listed(model: str) -> Price | None:
    return price_of(model, options_from({"model": [model]}))


def test_the_table_is_read_without_importing_litellm() -> None:
    program = (
        "import sys; from runner.options import options_from as o; "
        "from runner.money.prices import price_of; "
        "print(price_of('gpt-4o-mini', o({})).output_usd, 'litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["6e-07", "False"]


def test_a_model_is_found_with_and_without_its_provider() -> None:
    price = _listed("gpt-4o-mini")
    assert price is not None
    assert (price.input_usd, price.cached_input_usd) == (1.5e-07, 7.5e-08)
    assert _listed("openai/gpt-4o-mini") == price
    claude = _listed("anthropic/claude-sonnet-4-5")
    assert claude is not None
    assert claude.cache_write_usd > claude.input_usd > claude.cached_input_usd


def test_a_model_of_another_provider_is_not_taken_for_it() -> None:
    assert _listed("groq/gpt-4o-mini") is None


def test_embeddings_have_no_output_to_pay_for() -> None:
    price = _listed("openai/text-embedding-3-small")
    assert price is not None
    assert (price.input_usd, price.output_usd) == (2e-08, 0.0)


@pytest.mark.parametrize(
    "model",
    [
        "a-model-of-mine",
        "ollama/llama3",  # zeros in the table: nobody filled them in
        "cohere/rerank-english-v3.0",  # priced by the search
        "perplexity/sonar-small-online",  # and by the request
        "perplexity/sonar",  # which searches, at a price, whatever it is asked
        "openai/gpt-4o-search-preview",
        "sample_spec",  # the table's own legend
    ],
)
def test_what_tokens_do_not_tell_is_unknown_and_never_zero(model: str) -> None:
    assert _listed(model) is None


def test_longer_prompts_have_their_own_price() -> None:
    price = _listed("gemini/gemini-2.5-pro")
    assert price is not None
    short = cost_pico(price, Usage(tokens_in=200_000, tokens_out=0))
    longer = cost_pico(price, Usage(tokens_in=200_001, tokens_out=0))
    assert longer == pytest.approx(2 * short, rel=0.001)


def test_what_a_person_says_wins_over_the_table() -> None:
    options = options_from(
        {
            "model": ["gpt-4o-mini", "gpt-4o", "baseline/lexical"],
            "price": "1,2,0.5",
            "models": {"gpt-4o": {"usd_per_mtok_in": 3, "usd_per_mtok_out": 4}},
        }
    )
    prices = _prices(options)
    mini, own = prices["gpt-4o-mini"], prices["gpt-4o"]
    assert mini is not None
    assert own is not None
    assert (mini.input_usd, mini.output_usd, mini.cached_input_usd) == (
        1e-6,
        2e-6,
        5e-7,
    )
    assert cost_pico(own, Usage(tokens_in=10, tokens_out=1)) == 34_000_000
    # cached tokens without a price of their own cost what others do
    assert own.cached_input_usd == own.input_usd
    assert prices["baseline/lexical"] == FREE


def test_recordings_and_baselines_are_free() -> None:
    assert _listed("baseline/lexical") == FREE
    assert _listed("recorded:answers.jsonl#openai/gpt-4o") == FREE
    assert FREE.is_free
    assert not PLAIN.is_free


def test_cached_tokens_are_priced_as_such() -> None:
    usage = Usage(tokens_in=100, tokens_out=10, tokens_cached=60, tokens_cache_write=30)
    assert cost_pico(PLAIN, usage) == 10_000_000 + 6_000_000 + 37_500_000 + 40_000_000


def test_an_unknown_price_is_refused_by_name_with_both_ways_out() -> None:
    with pytest.raises(UsageError, match=r"of mine is unknown") as refused:
        _prices(options_from({"model": ["gpt-4o", "mine"]}))
    assert "--price" in str(refused.value)
    assert "--allow-unknown-price" in str(refused.value)
    allowed = options_from({"model": ["mine"], "allow_unknown_price": True})
    assert _prices(allowed) == {"mine": None}


def test_a_budget_is_refused_where_nobody_could_keep_it() -> None:
    options = {"model": ["mine"], "allow_unknown_price": True, "budget": 5}
    with pytest.raises(UsageError, match="A budget needs the price of mine"):
        _prices(options_from(options))
    assert _prices(options_from({**options, "price": [0, 0]}))["mine"] == FREE


@pytest.mark.parametrize("price", ["1", "1,2,3,4", "a,b", "-1,2", "nan,1", 5, [1, "x"]])
def test_a_price_that_is_none_is_refused(price: object) -> None:
    with pytest.raises(
        UsageError, match=r"^Option price: write IN,OUT or IN,OUT,CACHED"
    ):
        options_from({"price": price})


def test_half_a_price_in_a_models_table_is_refused() -> None:
    with pytest.raises(UsageError, match="usd_per_mtok_in and usd_per_mtok_out"):
        options_from({"model": ["m"], "models": {"m": {"usd_per_mtok_in": 1}}})


@given(
    worst_in=st.integers(1, 400_000),
    worst_out=st.integers(0, 10_000),
    data=st.data(),
)
def test_no_usage_within_the_bounds_costs_more_than_the_worst_case(
    worst_in: int, worst_out: int, data: st.DataObject
) -> None:
    price = Price(
        input_usd=PLAIN.input_usd,
        output_usd=PLAIN.output_usd,
        cached_input_usd=PLAIN.cached_input_usd,
        cache_write_usd=PLAIN.cache_write_usd,
        longer=((100_000, LONG), (300_000, PLAIN)),
    )
    tokens_in = data.draw(st.integers(0, worst_in))
    cached = data.draw(st.integers(0, tokens_in))
    usage = Usage(
        tokens_in=tokens_in,
        tokens_out=data.draw(st.integers(0, worst_out)),
        tokens_cached=cached,
        tokens_cache_write=data.draw(st.integers(0, tokens_in - cached)),
    )
    assert cost_pico(price, usage) <= worst_pico(price, worst_in, worst_out)


@pytest.mark.parametrize(
    ("asked", "factor"),
    [
        (None, 1),
        ("default", 1),
        ("flex", 1),  # the plain tier may be served instead
        ("priority", 2),
        ("auto", 2),  # the provider decides
    ],
)
def test_the_dearest_tier_that_may_serve_a_call_is_reserved(
    asked: str | None, factor: int
) -> None:
    tiers = (("flex", scaled(PLAIN, 0.5)), ("priority", scaled(PLAIN, 2)))
    price = replace(PLAIN, tiers=tiers)
    assert worst_pico(price, 100, 10, asked) == factor * worst_pico(PLAIN, 100, 10)


def test_prices_of_cached_tokens_and_of_writes_can_be_set() -> None:
    table = {
        "usd_per_mtok_in": 3,
        "usd_per_mtok_out": 4,
        "usd_per_mtok_cached": 0.5,
        "usd_per_mtok_cache_write": 6,
    }
    price = price_of("m", options_from({"model": ["m"], "models": {"m": table}}))
    assert price is not None
    assert price.cached_input_usd == pytest.approx(5e-7)
    assert price.cache_write_usd == pytest.approx(6e-6)
    assert price.cache_write_1h_usd is None


def test_a_write_for_an_hour_costs_twice_a_prompt_token_at_anthropic() -> None:
    model = "anthropic/claude-of-tomorrow"
    price = price_of(model, options_from({"model": [model], "price": "1,2"}))
    assert price is not None
    assert price.cache_write_usd == pytest.approx(1.25e-6)
    assert price.cache_write_1h_usd == pytest.approx(2e-6)


def test_a_model_with_a_tier_that_costs_is_not_free() -> None:
    assert not replace(FREE, tiers=(("priority", PLAIN),)).is_free


@pytest.mark.parametrize(
    ("tier", "factor"),
    [("priority", 2), ("PRIORITY", 2), ("batches", 0.5), ("standard", 1), (None, 1)],
)
def test_a_tier_is_known_by_the_names_that_replies_have_for_it(
    tier: str | None, factor: float
) -> None:
    tiers = (("priority", scaled(PLAIN, 2)), ("batch", scaled(PLAIN, 0.5)))
    assert replace(PLAIN, tiers=tiers).at(tier).input_usd == factor * PLAIN.input_usd


def test_the_dearer_price_counts_where_the_table_has_none_for_both() -> None:
    row = {
        "input_cost_per_token": 1e-6,
        "input_cost_per_token_above_200k_tokens": 2e-6,
        "input_cost_per_token_priority": 3e-6,
        "output_cost_per_token": 4e-6,
        "output_cost_per_token_above_200k_tokens": 6e-6,
        "output_cost_per_token_priority": 5e-6,
    }
    price = listed_price("m", row)
    assert price is not None
    ((tokens, step),) = price.at("priority").longer
    assert (tokens, step.input_usd, step.output_usd) == (200_000, 3e-6, 6e-6)


def test_a_share_of_a_price_is_one_of_longer_prompts_too() -> None:
    half = scaled(replace(PLAIN, longer=((100_000, LONG),)), 0.5)
    assert half.longer == ((100_000, scaled(LONG, 0.5)),)
    usage = Usage(tokens_in=100_001, tokens_out=0)
    assert cost_pico(half, usage) == 100_001 * 1_000_000
