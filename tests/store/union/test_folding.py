"""Which log's word on a task counts, and what all of them cost."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from store.task import TaskDraft, TaskState
from store.union.folding import Precedence, best_claim
from tests.replacing import replace
from tests.store.samples import task

REPLIES = {
    seq: Precedence(
        is_adopted=seq > 4, attempt=seq % 2, writer=bytes([seq]), log_seq=seq
    )
    for seq in range(1, 9)
}


def _draft(state: TaskState, **changed: object) -> TaskDraft:
    draft = TaskDraft.planned(1, task(1), seq=1)
    return replace(draft, state=state, **changed)  # type: ignore[arg-type]


@st.composite
def _logs(draw: st.DrawFn) -> dict[bytes, tuple[TaskDraft, int]]:
    """By log, what it says of the task, and how often it was reopened there."""
    names = draw(st.sets(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=1))
    numbers = st.integers(0, 3)
    found: dict[bytes, tuple[TaskDraft, int]] = {}
    for at, name in enumerate(sorted(names)):
        state = draw(st.sampled_from(TaskState))
        draft = _draft(
            state,
            attempts=draw(numbers),
            abandoned=draw(numbers),
            reply_seq=2 * at + draw(st.integers(1, 2)),
            cost_pico=draw(st.none() | numbers),
            updated_seq=draw(numbers),
            event_seq=draw(st.none() | numbers),
            error=name.decode(),
        )
        found[name] = draft, draw(st.integers(0, 1))
    return found


def _best(logs: dict[bytes, tuple[TaskDraft, int]], order: list[bytes]) -> TaskDraft:
    """The row, where the logs were merged in *order*."""
    return best_claim(
        {part: logs[log][0] for part, log in enumerate(order, 1)},
        REPLIES,
        {part: logs[log][1] for part, log in enumerate(order, 1) if logs[log][1]},
        dict(enumerate(order, 1)),
    )


@given(_logs(), st.randoms(use_true_random=False))
def test_the_best_claim_is_the_same_whichever_log_came_first(
    logs: dict[bytes, tuple[TaskDraft, int]], chance: Random
) -> None:
    order = sorted(logs)
    row = _best(logs, order)
    chance.shuffle(order)
    assert _best(logs, order) == row


@given(_logs())
def test_calls_and_money_of_all_logs_are_in_the_row(
    logs: dict[bytes, tuple[TaskDraft, int]],
) -> None:
    drafts = [draft for draft, _ in logs.values()]
    row = _best(logs, sorted(logs))
    known = [draft.cost_pico for draft in drafts if draft.cost_pico is not None]
    events = [draft.event_seq for draft in drafts if draft.event_seq is not None]
    assert row.cost_pico == (sum(known) if known else None)
    assert row.abandoned == sum(draft.abandoned for draft in drafts)
    assert row.attempts == max(draft.attempts for draft in drafts)
    assert row.updated_seq == max(draft.updated_seq for draft in drafts)
    assert row.event_seq == (max(events) if events else None)


def test_an_outcome_counts_before_what_a_lost_log_left_open() -> None:
    order = ("COMPLETED", "FAILED", "SKIPPED", "RUNNING", "WAITING", "QUEUED")
    states = [TaskState[name] for name in order]
    assert set(states) == set(TaskState)
    for at, state in enumerate(states):
        # the name of the log, which decides last, is against the better one
        logs = {
            bytes([9 - i]): (_draft(later), 0)
            for i, later in enumerate(states[at:], start=at)
        }
        assert _best(logs, sorted(logs)).state is state
