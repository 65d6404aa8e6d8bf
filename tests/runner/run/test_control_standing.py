"""Limits that were set while a run went on, read from its log again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.limits.limiter import Limits
from runner.run.control import CommandRefused, limits_change, limits_in_force
from store.events import CommandAccepted, CommandApplied, Event, RecordedEvent

MODELS = ("a", "b")
FIRST = Limits(concurrency=100, rpm=50.0)

ceilings = st.none() | st.floats(0.1, 1e6)
payloads = st.fixed_dictionaries(
    {"model": st.sampled_from([None, *MODELS])},
    optional={"concurrency": st.integers(1, 500), "rpm": ceilings, "tpm": ceilings},
).filter(lambda payload: len(payload) > 1)


def _recorded(*happened: Event) -> list[RecordedEvent]:
    return [
        RecordedEvent(seq=seq, ts_us=seq, epoch=1, event=event, payload_bytes=0)
        for seq, event in enumerate(happened, 1)
    ]


def _accepted(name: str, payload: dict[str, object], kind: str = "limits") -> Event:
    return CommandAccepted(
        command=name, kind=kind, author="ops", payload=json.dumps(payload)
    )


def _in_force(events: list[RecordedEvent]) -> dict[str, Limits]:
    limits = dict.fromkeys(MODELS, FIRST)
    for change in limits_in_force(events):
        for model in filter(change.concerns, MODELS):
            limits[model] = change.applied_to(limits[model])
    return limits


@given(asked=st.lists(st.tuples(payloads, st.booleans()), max_size=6))
def test_what_was_applied_holds_and_the_latest_word_on_each_limit_counts(
    asked: list[tuple[dict[str, object], bool]],
) -> None:
    events: list[Event] = []
    expected = {m: {"concurrency": 100, "rpm": 50.0, "tpm": None} for m in MODELS}
    for number, (payload, is_applied) in enumerate(asked):
        events.append(_accepted(str(number), payload))
        if not is_applied:
            continue
        events.append(CommandApplied(command=str(number), effect=""))
        for model in MODELS:
            if payload["model"] in {None, model}:
                expected[model] |= {k: v for k, v in payload.items() if k != "model"}
    assert _in_force(_recorded(*events)) == {
        model: Limits(**values) for model, values in expected.items()
    }


def test_a_request_that_two_processes_accepted_is_heard_once() -> None:
    accepted = _accepted("c", {"rpm": 5})
    applied = CommandApplied(command="c", effect="")
    assert len(limits_in_force(_recorded(accepted, accepted, applied))) == 1


def test_only_limits_stand() -> None:
    other = _accepted("c", {"filter": ""}, kind="retry")
    assert (
        limits_in_force(_recorded(other, CommandApplied(command="c", effect=""))) == []
    )


def test_limits_that_a_process_was_given_itself_are_left_out() -> None:
    change = limits_change({"concurrency": 3, "rpm": 7, "tpm": None})
    assert change.without(["rpm", "tpm"]).applied_to(FIRST) == Limits(
        concurrency=3, rpm=50.0
    )


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({}, "no limit was named"),
        ({"model": "a"}, "no limit was named"),
        ({"rpm": -1}, "rpm must be above 0"),
        ({"rpm": True}, "rpm must be above 0"),
        ({"tpm": "many"}, "tpm must be above 0"),
        ({"tpm": float("inf")}, "tpm must be above 0"),
        ({"tpm": float("nan")}, "tpm must be above 0"),
        ({"tpm": 10**400}, "at most 1,000,000,000,000"),
        ({"concurrency": 10**20}, "at most 1,000,000,000,000"),
        ({"concurrency": 2.5}, "whole number"),
        ({"concurrency": 100_001}, "at most 100,000"),
    ],
)
def test_limits_that_cannot_be_are_refused(
    payload: dict[str, object], reason: str
) -> None:
    with pytest.raises(CommandRefused, match=reason):
        limits_change(payload)


def test_a_change_is_said_in_a_few_words() -> None:
    change = limits_change({"model": "a", "concurrency": 8, "rpm": None})
    assert str(change) == "a: at most 8 calls at a time, no limit of requests a minute"
    change = limits_change({"rpm": 0.5, "tpm": 2_000_000})
    assert str(change) == (
        "every model: at most 0.5 requests a minute, 2,000,000 tokens a minute"
    )
