"""Which refused answers a dialogue is taken up from."""

from __future__ import annotations

from runner.engine.attempt_events import refused_answers
from store.events import (
    AttemptAnswered,
    Event,
    RecordedEvent,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
)


def _history(*events: Event) -> list[RecordedEvent]:
    return [
        RecordedEvent(seq=seq, ts_us=seq, epoch=1, event=event, payload_bytes=0)
        for seq, event in enumerate(events, 1)
    ]


def _refused(attempt: int) -> AttemptAnswered:
    return AttemptAnswered(
        task=1,
        attempt=attempt,
        form="openai.chat",
        status=200,
        latency_ms=1.0,
        finish_reason="stop",
        reask="empty_reply",
    )


def test_a_dialogue_begins_anew_after_each_end_of_its_task() -> None:
    for end in (
        TaskCompleted(task=1, attempt=1, unparsed="empty_reply"),
        TaskFailed(task=1, attempt=1, error="Timeout"),
        TaskSkipped(task=1, reason="cancelled"),
    ):
        found = refused_answers(_history(_refused(1), end, _refused(2), _refused(3)))
        assert [recorded.seq for recorded in found] == [3, 4]
