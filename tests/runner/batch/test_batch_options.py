"""What is promised of batches before anything is sent: half the price, and a day."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.estimate.estimate import BATCH_S, preview
from runner.money.prices import FREE, Price, price_of, scaled
from runner.options import RunOptions, options_from
from runner.workload import load_workload
from tests.runner.toy_jobs import ToyJob, ToySettings

STAGES = 3


def _options(**options: object) -> RunOptions:
    return options_from(
        {"model": "m", "base_url": "http://127.0.0.1:9", "price": "1,2", **options}
    )


def test_batches_cost_half_of_whatever_single_calls_cost() -> None:
    single = price_of("m", _options())
    assert single is not None
    assert price_of("m", _options(batch=True)) == scaled(single, 0.5)
    dearer = _options(batch=True, batch_price_factor=0.75)
    assert price_of("m", dearer) == scaled(single, 0.75)


def test_only_what_is_asked_by_batches_is_cheaper() -> None:
    options = _options(batch=True, embed_model="e", judge_model="j")
    assert price_of("j", options) == price_of("m", options)
    assert price_of("e", options) == price_of("e", _options(embed_model="e"))
    assert price_of("baseline/lexical", options) is FREE


def test_longer_prompts_are_cheaper_too() -> None:
    price = Price(
        input_usd=2.0, output_usd=4.0, cached_input_usd=1.0, cache_write_usd=3.0
    )
    both = Price(
        input_usd=1.0,
        output_usd=1.0,
        cached_input_usd=1.0,
        cache_write_usd=1.0,
        longer=((200_000, price),),
    )
    ((tokens, step),) = scaled(both, 0.5).longer
    assert tokens == 200_000
    assert step == Price(
        input_usd=1.0, output_usd=2.0, cached_input_usd=0.5, cache_write_usd=1.5
    )


def test_an_estimate_has_half_the_price_and_a_day_for_each_round(
    tmp_path: Path,
) -> None:
    work = load_workload(ToyJob(), ToySettings(items=40))
    single = preview(work, _options(), tmp_path)
    batched = preview(work, _options(batch=True), tmp_path)
    assert single.total.usd is not None
    assert batched.total.usd is not None
    assert batched.total.usd.expected == pytest.approx(single.total.usd.expected / 2)
    assert (batched.whole_s.low, batched.whole_s.high) == (0.0, STAGES * BATCH_S)
    few = _options(batch=True, batch_requests=2, batch_open=10)
    rounds = preview(work, few, tmp_path).whole_s.expected / BATCH_S
    assert rounds == 2 + 4 + 2, "20 at a time of 40, 80 and 40"


def test_no_more_may_wait_than_can_be_held() -> None:
    with pytest.raises(UsageError, match=r"is more than 100,000 requests"):
        _options(batch=True, batch_requests=50_000, batch_open=3)
    assert _options(batch=True).limits_of("m").concurrency == 10_000
