"""What a run has spent and may spend, as anybody reads it from its log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from store.database import open_reader
from store.events import (
    AttemptsAbandoned,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Entry,
    Event,
    RunResumed,
)
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.read.usage import Spending, dollars, spending
from store.task import pico, usd
from tests.replacing import replace
from tests.store.memory_log import FakeClock
from tests.store.samples import (
    RUN_STARTED,
    answered,
    completed,
    failed,
    plan,
    started,
    task,
)

CAPPED = replace(RUN_STARTED, budget_usd=2.0)


def _resumed(budget_usd: float | None) -> RunResumed:
    return RunResumed(code_sha256="c", settings="{}", unknown=0, budget_usd=budget_usd)


def _applied(command: str = "c1") -> CommandApplied:
    return CommandApplied(command=command, effect="added to the budget")


def _add(usd: float, command: str = "c1") -> CommandAccepted:
    payload = f'{{"add_usd": {usd}}}'
    return CommandAccepted(command=command, kind="budget", author="me", payload=payload)


def _spending(path: Path, *events: Entry | Event) -> Spending:
    _write(path, events)
    with open_reader(path) as reader:
        return spending(reader)


def _write(path: Path, events: Sequence[Entry | Event]) -> None:
    async def write() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            await log.append(*events)

    asyncio.run(write())


def test_without_a_cap_there_is_none_and_nothing_to_add_to(path: Path) -> None:
    assert _spending(path, RUN_STARTED, _add(5)).cap_usd is None


@pytest.mark.parametrize(
    ("events", "cap_usd"),
    [
        ([CAPPED], 2.0),
        ([CAPPED, _add(5)], 2.0),
        ([CAPPED, _add(5), _applied()], 7.0),
        ([CAPPED, _add(5), _applied(), _add(0.5, "c2"), _applied("c2")], 7.5),
        # a start says the whole cap, so that what was added before is in it
        ([CAPPED, _add(5), _applied(), _resumed(7.0)], 7.0),
        ([CAPPED, _add(5), _applied(), _resumed(7.0), _add(1, "c2")], 7.0),
        # accepted, then a crash: the next process applies it, once
        ([CAPPED, _add(5), _resumed(2.0), _applied()], 7.0),
        ([RUN_STARTED, _resumed(3.0)], 3.0),
        ([CAPPED, _resumed(1.0), _resumed(4.0)], 4.0),
    ],
)
def test_the_cap_is_the_last_starts_with_what_was_added_since(
    path: Path, events: list[Event], cap_usd: float
) -> None:
    assert _spending(path, *events).cap_usd == cap_usd


def test_other_commands_and_refused_ones_add_nothing(path: Path) -> None:
    refused = CommandRejected(command="c", kind="budget", author="me", reason="no")
    drain = CommandAccepted(command="d", kind="drain", author="me", payload="{}")
    assert _spending(path, CAPPED, refused, drain).cap_usd == 2.0


def test_what_may_have_been_spent_is_summed_apart_from_what_was(path: Path) -> None:
    seen = _spending(
        path,
        RUN_STARTED,
        plan([task(n) for n in range(1, 6)]),
        started(1),
        answered(1, cost_usd=0.25),
        completed(1),
        started(2),
        answered(2, possible_usd=0.5),
        completed(2),
        started(3),
        failed(3, possible_usd=0.125),
        started(4),
        failed(4),
        started(5),
        AttemptsAbandoned(attempts=[(5, 1)], possible_usd=1.0),
    )
    assert seen == Spending(
        spent_pico=pico(0.25),
        possible_pico=pico(1.625),
        in_flight_pico=0,
        cap_pico=None,
        is_whole=True,
    )
    assert (seen.spent_usd, seen.possible_usd) == (0.25, 1.625)


def test_status_shows_the_money_and_whose_it_was(path: Path) -> None:
    _write(
        path,
        [
            CAPPED,
            plan([task(1), task(2, model="m-small")]),
            started(1),
            answered(1, cost_usd=0.25),
            started(2),
            answered(2, cost_usd=0.5),
        ],
    )
    with open_reader(path) as reader:
        seen = status(reader)
    assert (seen.cost_usd, seen.possible_usd, seen.budget_usd) == (0.75, 0.0, 2.0)
    assert seen.model_cost_usd == {"m-large": 0.25, "m-small": 0.5}


def test_calls_without_an_outcome_are_shown_at_their_worst(path: Path) -> None:
    _write(
        path,
        [
            CAPPED,
            plan([task(n) for n in range(1, 5)]),
            replace(started(1), worst_usd=0.25),
            replace(started(2), worst_usd=0.5),
            answered(2, cost_usd=0.125),
            replace(started(3), worst_usd=0.5),
            failed(3),
            replace(started(3, attempt=2), worst_usd=0.75),
            started(4),
        ],
    )
    with open_reader(path) as reader:
        seen = status(reader)
    assert (seen.cost_usd, seen.possible_usd, seen.in_flight_usd) == (0.125, 0.0, 1.0)


def test_an_answer_without_a_price_makes_the_whole_unknown(path: Path) -> None:
    seen = _spending(
        path,
        CAPPED,
        plan([task(1), task(2)]),
        started(1),
        answered(1, cost_usd=0.25),
        started(2),
        answered(2),
    )
    assert seen.spent_usd is None
    assert usd(seen.spent_pico) == 0.25


def test_dollars_are_shown_to_a_hundredth_of_a_cent() -> None:
    assert dollars(1234.56789) == "$1,234.5679"


def test_an_unknown_sum_is_never_shown_as_zero() -> None:
    assert dollars(None) == "?"
