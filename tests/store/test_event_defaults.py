"""Defaults of stored fields are frozen, because the log leaves them out.

A changed default would change events that were recorded long ago. A new field needs a
line here; no line is ever changed.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator

import msgspec
import pytest

from store.encoding import event_of, facts_of
from store.events import KINDS, fields_of
from store.served_by import ServedBy
from tests.replay.every_kind import ENTRIES
from tests.store.samples import answered, started

DEFAULTS: dict[str, object] = {
    "RunStarted.imported": False,
    "RunStarted.expected": None,
    "ExpectedUsage.follow_ups": [],
    "RunStarted.budget_usd": None,
    "RunStarted.group": None,
    "RunStarted.stopping": None,
    "RunStarted.shard": None,
    "RunStarted.fork": None,
    "ForkOrigin.anew": (),
    "ForkOrigin.logs": (),
    "RunStarted.code": None,
    "Input.kept": "",
    "StoppingRule.margin": 0.0,
    "StoppingRule.alpha": 0.05,
    "RunResumed.budget_usd": None,
    "RunResumed.lost": 0,
    "RunResumed.changed": [],
    "RunResumed.code": None,
    "RunPaused.stage": None,
    "RunPaused.model": None,
    "TasksPlanned.exhausted": False,
    "TasksPlanned.places": None,
    "TasksReopened.command": None,
    "TaskCompleted.unparsed": None,
    "TaskCompleted.fault": None,
    "TaskCompleted.adopted": False,
    "TaskFailed.fault": None,
    "AttemptStarted.worst_usd": None,
    "AttemptStarted.adopted": False,
    "AttemptStarted.batched": False,
    "AttemptAnswered.tokens_in": None,
    "AttemptAnswered.tokens_out": None,
    "AttemptAnswered.tokens_cached": None,
    "AttemptAnswered.tokens_cache_write": None,
    "AttemptAnswered.cost_usd": None,
    "AttemptAnswered.possible_usd": None,
    "AttemptAnswered.cached": False,
    "AttemptAnswered.headers": None,
    "AttemptAnswered.reask": None,
    "AttemptAnswered.fault": None,
    "AttemptAnswered.adopted": None,
    "AttemptAnswered.tokens_reasoning": None,
    "AttemptAnswered.tokens_cache_write_1h": None,
    "AttemptAnswered.charged_usd": None,
    "AttemptAnswered.usage_doubtful": False,
    "AttemptAnswered.served": None,
    "AttemptAnswered.empty": False,
    "AttemptAnswered.kept": False,
    "AttemptAnswered.forked": None,
    "ForkedBody.cost_usd": 0.0,
    "ForkedBody.log": "",
    "ServedBy.model": None,
    "ServedBy.fingerprint": None,
    "ServedBy.provider": None,
    "ServedBy.region": None,
    "ServedBy.tier": None,
    "ServedBy.request_id": None,
    "AttemptFailed.status": None,
    "AttemptFailed.retry_after_s": None,
    "AttemptFailed.retry_in_s": None,
    "AttemptFailed.possible_usd": 0.0,
    "AttemptsAbandoned.hold": False,
    "AttemptsAbandoned.possible_usd": 0.0,
    "LimitObserved.rpm": None,
    "LimitObserved.tpm": None,
    "LimitObserved.paused_until_us": None,
    "LimitObserved.ceiling": None,
    "ParameterRefused.instead": None,
    "ParameterRefused.how": "refused",
    "ScoringRecorded.milestone": None,
    "ScoringRecorded.definitions": "",
    "ScoringRecorded.headline": "",
    "ScoringRecorded.reached": {},
    "ScoringRecorded.code": None,
    "StageAdded.budget_usd": None,
    "Milestone.data": "",
    "Milestone.partial": False,
    "Milestone.cost_usd": {},
    "ItemScore.tries": [],
    "ItemScore.verdict": None,
    "BatchCreated.file": None,
    "BatchCreated.found": False,
    "BatchPolled.done": 0,
    "BatchPolled.failed": 0,
    "BatchEnded.done": 0,
    "BatchEnded.failed": 0,
    "BatchEnded.why": None,
    "ItemDrawn.field": "",
    "ItemDrawn.stratum": "",
    "ItemDrawn.score": None,
    "ItemDrawn.run": "",
    "LabelRecorded.field": "",
    "LabelRecorded.reason": "",
    "LabelRecorded.visible": None,
    "LabelRecorded.run": "",
    "LabelRecorded.run_task": None,
    "LabelRecorded.text_sha256": "",
    "LabelRecorded.reply_sha256": "",
    "LabelRecorded.draw": "",
    "LabelRecorded.probability": None,
    "LabelRecorded.seconds": None,
    "LabelRecorded.source": "",
    "LabelWithdrawn.reason": "",
    "Adjudicated.field": "",
    "Adjudicated.reason": "",
    "Adjudicated.text_sha256": "",
    "Adjudicated.reply_sha256": "",
    "Adjudicated.run": "",
    "ScreeningPlanned.question": "",
    "ScreeningPlanned.scoring": None,
    "ScreeningPlanned.scoring_digest": "",
}


def _stored_classes() -> dict[str, type]:
    """Every dataclass that events are made of, by its name."""
    classes: dict[str, type] = {}

    def add(hint: object) -> None:
        if isinstance(hint, type) and (
            dataclasses.is_dataclass(hint) or issubclass(hint, msgspec.Struct)
        ):
            of = hint
            if of.__name__ not in classes:
                classes[of.__name__] = of
                for inner in typing.get_type_hints(of).values():
                    add(inner)
        for argument in typing.get_args(hint):
            add(argument)

    for event in KINDS.values():
        add(event)
    return classes


def _defaults(of: type) -> Iterator[tuple[str, object]]:
    if issubclass(of, msgspec.Struct):
        for one in msgspec.structs.fields(of):
            if one.default_factory is not msgspec.NODEFAULT:
                yield one.name, one.default_factory()
            elif one.default is not msgspec.NODEFAULT:
                yield one.name, one.default
        return
    for field in dataclasses.fields(of):
        if field.default_factory is not dataclasses.MISSING:
            yield field.name, field.default_factory()
        elif field.default is not dataclasses.MISSING:
            yield field.name, field.default


def test_no_default_of_a_stored_field_has_changed() -> None:
    found = {
        f"{name}.{field}": default
        for name, of in _stored_classes().items()
        for field, default in _defaults(of)
    }
    assert found == DEFAULTS
    # 0 and False are equal, but not in JSON
    assert {n: type(d) for n, d in found.items()} == {
        n: type(d) for n, d in DEFAULTS.items()
    }


def test_stored_facts_leave_out_what_is_a_default() -> None:
    event = answered(7, served=ServedBy(model="m-2026"))
    assert facts_of(event) == (
        b'{"task":7,"attempt":1,"form":"chat","status":200,"latency_ms":107.0,'
        b'"finish_reason":"stop","tokens_in":50,"tokens_out":7,'
        b'"served":{"model":"m-2026"}}'
    )
    assert set(msgspec.json.decode(facts_of(started(7)))) == {
        "task",
        "attempt",
        "request_sha256",
    }


@pytest.mark.parametrize("log", sorted(ENTRIES))
def test_facts_with_every_field_as_in_older_logs_mean_the_same(log: str) -> None:
    for entry in ENTRIES[log]:
        event = entry.event
        kind = next(kind for kind, of in KINDS.items() if of is type(event))
        older, newer = msgspec.json.encode(fields_of(event)), facts_of(event)
        assert event_of(kind, event.VERSION, older) == event
        assert event_of(kind, event.VERSION, newer) == event
        assert len(newer) <= len(older)
