"""What a scoring says of its run's course: cost and tokens, whole and for each unit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from runner.score.render import operations_json
from runner.scorecard import Scorecard
from store.database import open_reader
from store.read.status import Status, status
from store.read.usage import UsageCount, usage_counts
from tests.store.logs import written
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
from tests.store.samples import reply as answer

CARD = Scorecard(
    models={},
    summary="",
    units={"m-large": {"record": 4, "rightly excluded": 0}, "m-none": {"record": 4}},
)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> tuple[Status, list[UsageCount]]:
    """Two stages of one model, one call in vain, and one answer of another model."""
    path = written(
        tmp_path_factory.mktemp("run") / "log.db",
        [
            RUN_STARTED,
            plan([task(1), task(2, stage="judge"), task(3, model="m-small")]),
        ],
        [started(1), failed(1), started(1, 2)],
        [answer(1, b"x", 2, cost_usd=0.5), completed(1, 2)],
        [started(2), answer(2, b"x", cost_usd=0.25), completed(2)],
        [started(3), answer(3, b"x", cost_usd=8.0), completed(3)],
    )
    with open_reader(path) as reader:
        return status(reader), usage_counts(reader)


def said(state: Status, usage: list[UsageCount]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(operations_json(state, usage, CARD))["models"]
    return found


def test_what_a_model_took_is_told_by_what_its_job_counts(
    course: tuple[Status, list[UsageCount]],
) -> None:
    found = said(*course)
    assert [*found] == ["m-large", "m-none"]
    own = found["m-large"]
    assert (own["replies"], own["tokens_in"], own["cost_usd"]) == (2, 100, 0.75)
    assert own["per"]["record"] == {
        "n": 4,
        "tokens_in": 25.0,
        "tokens_out": own["tokens_out"] / 4,
        "cost_usd": 0.1875,
    }
    assert {*own["per"]["rightly excluded"].values()} == {0, None}
    assert found["m-none"]["per"]["record"]["cost_usd"] == 0.0


def test_a_cost_that_is_not_known_is_none_and_an_import_took_nobody_knows_what(
    course: tuple[Status, list[UsageCount]],
) -> None:
    state, usage = course
    found = said(replace(state, cost_usd=None), usage)["m-large"]
    assert (found["cost_usd"], found["per"]["record"]["cost_usd"]) == (None, None)
    assert found["per"]["record"]["tokens_in"] == 25.0
    assert said(replace(state, imported=True), usage) == {}
