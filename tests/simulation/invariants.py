"""What must hold after any course of things, asked of the events and of the ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

from runner.clients.wire import decode_reply
from runner.limits.limiter import BRIEF_S
from runner.limits.rate_limits import MINUTE_S
from store.events import AttemptAnswered, RecordedEvent
from store.task import TaskRow, TaskState
from tests.simulation.broken import Broken
from tests.simulation.course import Course
from tests.simulation.disk import Disk
from tests.simulation.oracle import Final, expected
from tests.simulation.past import Past
from tests.simulation.provider import Line, Provider
from tests.simulation.scenario import CRASH, Scenario

ROUNDING_S = 1e-6


async def check(
    scenario: Scenario,
    disk: Disk,
    provider: Provider,
    events: Sequence[RecordedEvent],
    past: Sequence[Past],
) -> None:
    """All invariants of a run that is over.

    Args:
        scenario: what befell it.
        disk: its log.
        provider: its endpoints.
        events: all that was recorded.
        past: its processes.

    Raises:
        Broken: one does not hold.
    """
    rows = await disk.rows()
    Course(past, reask=scenario.reask).follow(events, provider.ledger)
    deliveries(events, provider.ledger, past)
    limits(scenario, provider, past)
    waits(provider.ledger, past)
    returns(provider.ledger)
    difference = await disk.difference()
    if difference is not None:
        raise Broken("the folded state equals the live state", difference)
    log = disk.open()
    replies = {
        row.task: stored
        for row in rows
        if row.reply_seq is not None
        and (stored := await log.reply(row.task)) is not None
    }
    disk.end(is_crash=False)
    texts = {
        task: decode_reply(stored.answered.form, stored.body).text
        for task, stored in replies.items()
    }
    answers(scenario, provider, rows, texts)


def deliveries(
    events: Iterable[RecordedEvent], ledger: Iterable[Line], past: Sequence[Past]
) -> None:
    """What a process was given it wrote down, if it came to write."""
    delivered = Counter(line.process for line in ledger if line.is_delivered)
    answered = Counter(
        recorded.epoch
        for recorded in events
        if isinstance(recorded.event, AttemptAnswered)
    )
    for process, its in enumerate(past, 1):
        lost = delivered[process] - answered[process]
        if lost < 0 or (lost and its.end != CRASH):
            raise Broken(
                "no answer is forgotten",
                f"process {process} ({its.end}) took {delivered[process]} answers and "
                f"recorded {answered[process]}",
            )


def limits(scenario: Scenario, provider: Provider, past: Sequence[Past]) -> None:
    """Limits set by hand, by the provider's count, in each process's time.

    What passed the gate in 60 s arrives in less where the log was slow for a moment, so
    the minute is looked at without that moment.
    """
    by_lane: dict[str, list[Line]] = defaultdict(list)
    for line in provider.ledger:
        by_lane[line.asked[2]].append(line)
    for lane in scenario.lanes:
        for process, lines in groupby(by_lane[lane.model], lambda x: x.process):
            mine = list(lines)
            most = max(line.in_flight for line in mine)
            if most > provider.most_slots[lane.model]:
                raise Broken(
                    "limits set by hand are never passed",
                    f"{most} calls of {lane.model} at a time, "
                    f"{provider.most_slots[lane.model]} allowed",
                )
            minute_s = MINUTE_S - past[process - 1].gate_s
            ones = [(line.at_s, 1.0) for line in mine]
            _window(f"requests of {lane.model}", ones, lane.limits.rpm, minute_s)
            tokens = [(line.at_s, float(line.tokens)) for line in mine]
            _window(f"tokens of {lane.model}", tokens, lane.limits.tpm, minute_s)


def _window(
    what: str,
    spent: Sequence[tuple[float, float]],
    per_minute: float | None,
    minute_s: float,
) -> None:
    """Look at every minute that ends with a request."""
    if per_minute is None:
        return
    total, first = 0.0, 0
    for at_s, amount in spent:
        total += amount
        while spent[first][0] <= at_s - minute_s:
            total -= spent[first][1]
            first += 1
        if total > per_minute:
            raise Broken(
                "limits set by hand are never passed",
                f"{total:.0f} {what} in the minute before {at_s:.2f} s, "
                f"{per_minute:.0f} allowed",
            )


def waits(ledger: Iterable[Line], past: Sequence[Past]) -> None:
    """Who was asked for more than a brief wait sends nothing there meanwhile."""
    waiting: dict[tuple[int, str], list[Line]] = defaultdict(list)
    for line in ledger:
        there = line.process, line.endpoint
        gate_s = past[line.process - 1].gate_s
        for told in waiting[there]:
            assert told.wait_s is not None
            resume_s = told.told_at_s + told.wait_s
            if told.told_at_s + gate_s < line.at_s < resume_s - ROUNDING_S:
                raise Broken(
                    "a wait that was asked for is kept",
                    f"{line.endpoint} asked for {told.wait_s} s at "
                    f"{told.told_at_s:.4f} s, next request at {line.at_s:.4f} s",
                )
        if line.wait_s is not None and line.wait_s > BRIEF_S:
            waiting[there].append(line)


def returns(ledger: Iterable[Line]) -> None:
    """A task that was asked to wait, however briefly, comes no earlier itself."""
    told: dict[tuple[int, int], Line] = {}
    for line in ledger:
        last = told.get((line.process, line.task))
        if last is not None and last.wait_s is not None:
            due_s = last.told_at_s + last.wait_s
            if line.at_s < due_s - ROUNDING_S:
                raise Broken(
                    "a wait that was asked for is kept",
                    f"task {line.task} was to wait {last.wait_s} s from "
                    f"{last.told_at_s:.4f} s and came at {line.at_s:.4f} s",
                )
        told[line.process, line.task] = line


def answers(
    scenario: Scenario,
    provider: Provider,
    rows: Iterable[TaskRow],
    texts: dict[int, str],
) -> None:
    """The final answers are those of a run that nothing befell."""
    rows = list(rows)
    found = {
        (row.stage, row.key, row.model, row.replicate): Final(
            state=row.state,
            text=texts[row.task] if row.state is TaskState.COMPLETED else None,
            reason=row.reason,
            error=row.error if row.state is TaskState.FAILED else None,
        )
        for row in rows
    }
    if len(found) != len(rows):
        raise Broken("the answers are those of an undisturbed run", "a task is double")
    if scenario.is_mild:
        wanted = expected(scenario)
        if found != wanted:
            different = [
                f"{asked}: {found.get(asked)}, not {wanted.get(asked)}"
                for asked in sorted(found.keys() | wanted.keys())
                if found.get(asked) != wanted.get(asked)
            ]
            raise Broken("the answers are those of an undisturbed run", different[0])
        return
    for asked, final in found.items():
        said = {provider.says.reply(asked, turn).text for turn in range(3)}
        if final.text is not None and final.text not in said:
            raise Broken("the answers are those of an undisturbed run", f"{asked}")
