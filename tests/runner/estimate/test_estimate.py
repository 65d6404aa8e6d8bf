"""From a sample to figures: what is exact, what is a span, what holds.

Estimates from work and options, and what earlier runs know. Tokens by letters, digits
and marks.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.estimate.estimate import (
    AT_START_S,
    BEFORE_S,
    FOLLOWED,
    PER_TOKEN_S,
    TOKENIZERS,
    Estimate,
    EstimateInputs,
    EstimateRange,
    estimate,
    expected,
    preview,
    usual_replies,
    verdict,
)
from runner.estimate.sample import Grown, PlanSample, SampledStage, StageUsage
from runner.job import Answer, TaskSpec
from runner.limits.limiter import Limits
from runner.messages import ChatRequest, Message, Schema, TextPart
from runner.money.prices import FREE, Price
from runner.money.tokens import USUAL_MESSAGE_TOKENS, prompt_tokens, text_tokens
from runner.options import options_from
from runner.workload import load_workload
from store.clock import SystemClock
from store.events import Entry, Event
from store.log.sqlite import SqliteLog
from tests.replacing import replace
from tests.runner.run.test_launch_whole_runs_of_roles import ITEMS, NAMES, WHOLE
from tests.runner.toy_jobs import PanelJob, PanelSettings, ToyJob, ToySettings
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, plan, started, task
from tests.store.samples import reply as answer

FIRST = SampledStage(stage="read", model="m", is_first=True)
ASKED = SampledStage(stage="ask", model="m", is_first=False)
DEAR = Price(
    input_usd=1e-6, output_usd=4e-6, cached_input_usd=1e-7, cache_write_usd=2e-6
)


def _use(calls: float = 1, tokens: float = 1000, most: float = 50) -> StageUsage:
    return StageUsage(
        calls=calls,
        tokens_in=tokens * calls,
        tokens_out=10 * calls,
        most_out=most * calls,
    )


def _sample(items: int, *tried: Grown) -> PlanSample:
    return PlanSample(
        items=items, specs=items, first_calls=Counter(read=items), tried=tried
    )


def _plan(
    *,
    limits: Limits = Limits(concurrency=10),  # noqa: B008 - a value
    price: Price | None = DEAR,
    models: tuple[str, ...] = ("m",),
    replicates: int = 1,
    usual: Mapping[tuple[str, str], float] | None = None,
    offline: frozenset[str] = frozenset(),
) -> EstimateInputs:
    return EstimateInputs(
        replicates=replicates,
        limits=dict.fromkeys(models, limits),
        prices=dict.fromkeys(models, price),
        usual_out=usual or {},
        offline=offline,
    )


def _of(sample: PlanSample, **given: object) -> Estimate:
    return estimate(_plan(**given), sample)  # type: ignore[arg-type]


def test_the_first_stage_is_exact_and_the_rest_is_a_span() -> None:
    tried = [{FIRST: _use(), ASKED: _use(calls)} for calls in (1, 2, 3)]
    found = _of(_sample(300, *tried))
    assert found.stages["read", "m"].calls == EstimateRange(
        low=300, expected=300, high=300
    )
    asked = found.stages["ask", "m"].calls
    assert asked.expected == 600
    assert 0 < asked.low < 600 * FOLLOWED[0]
    assert asked.high > 600 * FOLLOWED[2]
    assert found.total.calls.expected == 900


def test_a_plan_that_was_tried_whole_leaves_no_doubt_of_its_prompts() -> None:
    found = _of(_sample(2, {FIRST: _use(tokens=10)}, {FIRST: _use(tokens=90)}))
    low, middle, high = TOKENIZERS
    tokens = found.total.tokens_in
    assert (tokens.low, tokens.expected, tokens.high) == pytest.approx(
        (100 * low, 100 * middle, 100 * high)
    )


def test_one_item_of_many_says_little() -> None:
    tokens = _of(_sample(10, {FIRST: _use(tokens=100)})).total.tokens_in
    assert tokens.low == pytest.approx(1000 / 2 * TOKENIZERS[0])
    assert tokens.high == pytest.approx(1000 * 2 * TOKENIZERS[2])


def test_an_interval_holds_the_truth_about_nineteen_times_of_twenty() -> None:
    chance = random.Random(3)
    sizes = [chance.lognormvariate(6, 1) for _ in range(2_000)]
    truth, held = sum(sizes), 0
    for _ in range(200):
        drawn = chance.sample(sizes, 64)
        found = _of(_sample(2_000, *({FIRST: _use(tokens=size)} for size in drawn)))
        tokens = found.total.tokens_in
        held += tokens.low / TOKENIZERS[0] <= truth <= tokens.high / TOKENIZERS[2]
    assert held >= 170


def test_models_and_replicates_multiply_what_is_asked() -> None:
    other = {replace(FIRST, model="n"): _use(), replace(ASKED, model="n"): _use(2)}
    sample = _sample(4, *[{FIRST: _use(), ASKED: _use(2)} | other] * 4)
    found = _of(sample, models=("m", "n"), replicates=3)
    assert found.models["m"].calls.expected == 3 * (4 + 8)
    assert found.total.calls.expected == 2 * 3 * (4 + 8)


def test_dollars_follow_the_tokens_and_the_worst_is_the_dearest() -> None:
    found = _of(_sample(10, *[{FIRST: _use()}] * 10))
    usd = found.total.usd
    assert usd is not None
    assert usd.expected == pytest.approx(10 * (1000 * 1e-6 + 10 * 4e-6))
    assert usd.low < usd.expected
    # every token of the prompt written to a cache, every reply as long as allowed
    assert usd.high == pytest.approx(10 * (1250 * 2e-6 + 50 * 4e-6))


def test_an_unknown_price_is_unknown_in_the_sum_too() -> None:
    plan = _plan(models=("m", "n"))
    plan = EstimateInputs(
        replicates=plan.replicates,
        limits=plan.limits,
        prices={"m": DEAR, "n": None},
        usual_out={},
        offline=frozenset(),
    )
    other = {replace(FIRST, model="n"): _use()}
    found = estimate(plan, _sample(1, {FIRST: _use()} | other))
    assert found.models["m"].usd is not None
    assert found.total.usd is None
    assert verdict(found, 1e9)[0] == "unknown"


def test_replies_of_earlier_runs_are_believed_before_the_baseline() -> None:
    sample = _sample(10, *[{FIRST: _use()}] * 10)
    assert _of(sample).total.tokens_out.expected == 100
    told = _of(sample, usual={("read", "m"): 30.0}).total.tokens_out
    assert told.expected == 300
    assert told.high == 500
    # longer than this plan allows: never less than what is expected
    long = _of(sample, usual={("read", "m"): 90.0}).total.tokens_out
    assert long.low <= long.expected <= long.high


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (Limits(concurrency=1), 100 * BEFORE_S[1] + 1000 * PER_TOKEN_S[1]),
        (Limits(concurrency=50), 2 * BEFORE_S[1] + 20 * PER_TOKEN_S[1]),
        (Limits(concurrency=500), BEFORE_S[1] + 10 * PER_TOKEN_S[1]),
        (Limits(concurrency=50, rpm=10), 600.0),
        (Limits(concurrency=50, tpm=10_000), 60 * (100_000 + 1_000) / 10_000),
    ],
)
def test_time_is_the_longest_of_slots_and_limits(
    limits: Limits, seconds: float
) -> None:
    found = _of(_sample(100, *[{FIRST: _use()}] * 100), limits=limits)
    assert found.whole_s.expected == pytest.approx(seconds)
    assert found.whole_s.low <= found.whole_s.expected <= found.whole_s.high


def test_a_stage_waits_for_the_one_before() -> None:
    sample = _sample(1, {FIRST: _use(), ASKED: _use()})
    one_call = BEFORE_S[1] + 10 * PER_TOKEN_S[1]
    assert _of(sample).whole_s.expected == pytest.approx(2 * one_call)


def test_what_is_answered_offline_takes_no_time() -> None:
    found = _of(_sample(1, {FIRST: _use()}), offline=frozenset({"m"}), price=FREE)
    assert found.whole_s.high == 0
    assert found.total.usd == EstimateRange(low=0, expected=0, high=0)


def test_a_plan_without_calls_comes_to_nothing() -> None:
    found = _of(_sample(0))
    assert found.total.calls.high == 0
    assert found.whole_s.high == 0


def test_a_budget_holds_may_hold_or_does_not() -> None:
    found = _of(_sample(10, *[{FIRST: _use()}] * 10))
    usd = found.total.usd
    assert usd is not None
    assert verdict(found, usd.high)[0] == "holds"
    assert verdict(found, usd.low / 2)[0] == "does not hold"
    word, said = verdict(found, (usd.expected + usd.high) / 2)
    assert (word, "is likely to hold" in said) == ("may not hold", True)
    assert "is not likely" in verdict(found, (usd.low + usd.expected) / 2)[1]


PRICED = options_from({"model": ["openai/m"], "price": "1,4"})


class Slow(ToyJob):
    """A job whose baseline takes two seconds of a clock for each answer."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    def baseline(self, request: object) -> str:
        self.clock.advance(2.0)
        return super().baseline(request)  # type: ignore[arg-type]


def test_a_run_remembers_what_one_item_comes_to(tmp_path: Path) -> None:
    work = load_workload(ToyJob(), ToySettings(items=1000))
    found = expected(work, PRICED, tmp_path, SystemClock(), notify=print)
    whole = preview(work, PRICED, tmp_path)
    assert found is not None
    assert found.first == ["read"]
    assert found.calls[1] == 4.0
    assert found.follow_ups == []  # nothing is known of the order of so many
    assert whole.total.calls.expected == 4000
    assert found.tokens_in[1] == pytest.approx(
        whole.total.tokens_in.expected / 1000, 0.1
    )
    assert found.cost_usd is not None
    assert whole.total.usd is not None
    assert found.cost_usd[1] == pytest.approx(whole.total.usd.expected / 1000, 0.1)


def test_each_model_of_each_role_is_expected_to_be_asked_as_often_as_in_a_run(
    tmp_path: Path,
) -> None:
    work = load_workload(PanelJob(), PanelSettings(items=ITEMS))
    asked = {**NAMES, "rerank_model": "r", "price": "1,1", "replicates": 2}
    found = preview(work, options_from(asked), tmp_path)
    calls = {key: figures.calls.expected for key, figures in found.stages.items()}
    assert calls == {key: 2 * n for key, n in WHOLE.items()}


def test_a_start_tries_one_item_and_then_minds_the_clock(tmp_path: Path) -> None:
    clock = FakeClock()
    work = load_workload(Slow(clock), ToySettings(items=1000))
    found = expected(work, PRICED, tmp_path, clock, notify=print)
    assert found is not None
    assert found.tried == 1
    assert clock.monotonic() == 8 > AT_START_S


class Uneven(ToyJob):
    """A job whose first items have nothing to follow up."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        if group[0].task.key >= "i5":
            yield from super().follow_up(dataset, group)


def test_a_small_plan_tells_which_items_have_follow_ups(tmp_path: Path) -> None:
    work = load_workload(Uneven(), ToySettings(items=8))
    found = expected(work, PRICED, tmp_path, SystemClock(), notify=print)
    assert found is not None
    assert found.follow_ups == [0.0] * 5 + [3.0] * 3


def test_items_that_were_not_tried_have_the_mean_of_the_others(tmp_path: Path) -> None:
    clock = FakeClock()
    work = load_workload(Slow(clock), ToySettings(items=2))
    found = expected(work, PRICED, tmp_path, clock, notify=print)
    assert found is not None
    assert found.tried == 1
    assert found.follow_ups == [3.0, 3.0]


def test_an_empty_plan_is_not_foretold(tmp_path: Path) -> None:
    work = load_workload(ToyJob(), ToySettings(items=0))
    assert expected(work, PRICED, tmp_path, SystemClock(), notify=print) is None


def _run(path: Path, tasks: int, tokens_out: int) -> None:
    async def write() -> None:
        path.parent.mkdir(parents=True)
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            events: Sequence[Entry | Event] = [
                RUN_STARTED,
                plan([task(n) for n in range(1, tasks + 1)]),
                *(
                    event
                    for n in range(1, tasks + 1)
                    for event in (
                        started(n),
                        answer(n, b"x", tokens_out=tokens_out),
                        completed(n),
                    )
                ),
            ]
            await log.append(*events)

    asyncio.run(write())


def test_the_newest_run_with_enough_answers_is_believed(tmp_path: Path) -> None:
    _run(tmp_path / "2026-01" / "log.db", 30, 10)
    _run(tmp_path / "2026-02" / "log.db", 30, 20)
    _run(tmp_path / "2026-03" / "log.db", 5, 99)
    (tmp_path / "2026-04").mkdir()
    (tmp_path / "2026-04" / "log.db").write_text("no log")
    assert usual_replies(tmp_path, "sample-job") == {("ask", "m-large"): 20.0}
    assert usual_replies(tmp_path, "another-job") == {}
    assert usual_replies(tmp_path / "nowhere", "sample-job") == {}


texts = st.text(max_size=200)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("dose", 1),
        ("pharmacogenomics", 3),
        ("rs9923231", 4),
        ("p = 0.03", 5),
        ('{"a":1}', 5),
        ("薬物", 2),
        ("a\n\n  b", 2),
    ],
)
def test_words_numbers_and_marks_are_cut_as_tokenizers_do(
    text: str, tokens: int
) -> None:
    assert text_tokens(text) == tokens


@given(texts)
def test_no_character_is_more_than_a_token_and_no_token_longer_than_seven(
    text: str,
) -> None:
    seen = len("".join(text.split()))
    assert seen / 7 <= text_tokens(text) <= seen


@given(texts, texts)
def test_what_stands_apart_is_counted_apart(one: str, other: str) -> None:
    assert text_tokens(f"{one}\n{other}") == text_tokens(one) + text_tokens(other)


def test_a_prompt_is_its_parts_its_schema_and_its_messages() -> None:
    asked = ChatRequest(
        messages=(
            Message(role="system", parts=(TextPart(text="one two"),)),
            Message(role="user", parts=(TextPart(text="three"), TextPart(text="four"))),
        ),
        max_tokens=10,
        schema=Schema(name="s", json='{"a":1}'),
    )
    assert prompt_tokens(asked) == 2 + 1 + 1 + 5 + 2 * USUAL_MESSAGE_TOKENS
    assert prompt_tokens(asked, len) == 7 + 5 + 4 + 7 + 2 * USUAL_MESSAGE_TOKENS
