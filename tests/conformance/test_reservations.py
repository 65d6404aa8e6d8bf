"""What a call reserves where its limit, or its tier of service, is no bound of it."""

from __future__ import annotations

from pathlib import Path

from runner.money.tokens import LEAST_LEARNED
from store.database import open_reader
from store.events import AttemptStarted, Event, ParameterRefused
from store.read.tasks import events
from store.runs import RunFolder
from store.task import pico
from tests.conformance.promises import MODEL, Case
from tests.conformance.random_runs import TIERED

OUTPUT_USD = 10e-6
"""A token of output, by the prices of `Case`."""


def recorded(case: Case, run_id: str) -> list[Event]:
    with open_reader(RunFolder(case.folder / "runs" / run_id).log) as reader:
        return [each.event for each in events(reader, after=0, limit=10_000)]


def test_its_first_calls_reserve_more_and_a_resume_knows_what_was_learned(
    tmp_path: Path,
) -> None:
    case = Case("xai", tmp_path)
    with case.serve(reasoning=12_000) as endpoint:
        assert case.run(endpoint.base_url, "x", "--limit=1", "--budget=0.3") == 4
        first = recorded(case, "x")
        bill = endpoint.ledger.bill().cost_usd
        assert case.resume("x", "--budget=50") == 0
    assert 0 < bill <= 0.3
    facts = [event for event in first if isinstance(event, ParameterRefused)]
    learned = [fact for fact in facts if fact.name == "max_tokens"]
    assert [fact.how for fact in learned] == ["ignored"] * len(learned) != []
    starts = [event for event in first if isinstance(event, AttemptStarted)]
    assert (starts[0].worst_usd or 0) >= LEAST_LEARNED * OUTPUT_USD
    later = recorded(case, "x")[len(first) :]
    again = next(event for event in later if isinstance(event, AttemptStarted))
    assert (again.worst_usd or 0) >= int(learned[-1].instead or 0) * OUTPUT_USD


def test_a_budget_without_room_for_its_first_call_says_why(tmp_path: Path) -> None:
    case = Case("xai", tmp_path)
    with case.serve() as endpoint:
        assert case.run(endpoint.base_url, "x", "--limit=1", "--budget=0.1") == 4
        assert not endpoint.ledger.lines
    assert "16,384 tokens of output are reserved until a reply shows" in case.said()


def test_a_budget_of_a_few_cents_is_enough_where_the_limit_bounds(
    tmp_path: Path,
) -> None:
    case = Case("vllm", tmp_path)
    with case.serve() as endpoint:
        price = "--price=0.2,0.8"
        words = case.words(endpoint.base_url, "v", "--limit=1", "--budget=0.03", price)
        (tmp_path / "config.toml").write_text("")
        assert case.carry_out(words) == 0, case.said()
    assert not any(
        isinstance(e, ParameterRefused) and e.how == "ignored"
        for e in recorded(case, "v")
    )


def test_a_call_in_a_dear_tier_reserves_its_price(tmp_path: Path) -> None:
    case = Case("openai", tmp_path)
    worst = {}
    with case.serve() as endpoint:
        for tier in ("flex", "priority", "auto", "default"):
            words = case.words(endpoint.base_url, tier, "--limit=1")
            words = tuple(word.replace(MODEL, TIERED) for word in words)
            config = f'[models."{TIERED}"]\nservice_tier = "{tier}"\n'
            (tmp_path / "config.toml").write_text(config)
            assert case.carry_out(words) == 0, case.said()
            started = (e for e in recorded(case, tier) if isinstance(e, AttemptStarted))
            worst[tier] = pico(next(started).worst_usd or 0)
    assert worst["default"] == worst["flex"] > 0
    assert worst["auto"] == worst["priority"] == worst["default"] * 9 // 5
