"""A run's tasks out of thin air, and an app that shows nothing but them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from store.clock import Clock
from store.errors import StoreError
from store.events import AttemptAnswered, AttemptFailed
from store.query import Query
from store.read.tasks import AttemptRow, TaskListStep, TaskOrder
from store.runs import RunFolder
from store.task import TaskRow, TaskState
from store.verdicts import Score, StoredVerdict
from tests.replacing import replace
from tests.store.memory_log import FakeClock
from tests.tui.fake_events import FakeEvents
from tests.tui.sights import FakeConfig, FakeListing, FakeSource
from tui.render.colours import COLOUR_THEMES, DARK, state_variables
from tui.render.glyphs import UNICODE, Glyphs
from tui.run_screens import MonitorSources, WatchedRun
from tui.sources.filters import FilterMemory
from tui.sources.run_snapshot import ReadProblem
from tui.sources.task_texts import NO_TEXT, AttemptText, TextKind
from tui.sources.tasks import (
    AttemptLine,
    Names,
    TaskDetail,
    TaskEventLine,
    TaskLine,
    TaskScoring,
    TaskSource,
    attempt_lines,
)
from tui.terminal.typed_keys import KeyOrderApp

STATES = (
    TaskState.COMPLETED,
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.RUNNING,
    TaskState.WAITING,
    TaskState.COMPLETED,
    TaskState.QUEUED,
    TaskState.SKIPPED,
)
NOW_US = 1_767_225_600_000_000


def row(number: int, **changed: object) -> TaskRow:
    """A task as its number has it."""
    state = STATES[number % len(STATES)]
    fields: dict[str, object] = {
        "task": number,
        "stage": ("extract", "judge", "score")[number % 3],
        "key": f"PMC{7_000_000 + number}/claim:{number % 7}",
        "model": ("openai/m-large", "openai/m-small")[number % 2],
        "replicate": 1,
        "root": number,
        "state": state,
        "attempts": number % 4 if state.is_open else 1 + number % 4,
        "abandoned": 0,
        "tries": 1,
        "reply_seq": None,
        "not_before_us": 1,
        "error": "RateLimited" if state is TaskState.FAILED else None,
        "reason": "truncated" if number % 16 == 0 else None,
        "latency_ms": 100.0 * (number % 90) if number % 8 < 3 else None,
        "cost_usd": 0.0001 * (number % 70) if number % 8 < 3 else None,
        "context": None,
        "group": None,
        "updated_seq": number,
    }
    return TaskRow(**(fields | changed))  # type: ignore[arg-type]


class FakeTasks:
    """A source of *count* tasks; `changes` replaces some of their facts."""

    def __init__(self, count: int = 1_000, *, is_slow: bool = False) -> None:
        self.count = count
        self.seq = count
        self.changes: dict[int, dict[str, object]] = {}
        self.texts: dict[int, str] = {}
        self.wrong_numbers: frozenset[int] = frozenset()
        self.rejected: frozenset[int] = frozenset()  #: with a reply rejected, once
        self.titles: dict[int, str] = {}
        self.item_text: str | None = None
        self.attempts: tuple[AttemptLine, ...] = ()  #: of every task; empty: two
        self.trouble: StoreError | None = None
        self.asked: list[tuple[int, ...]] = []
        self.read: list[int] = []
        self.listed: list[tuple[Query, TaskOrder]] = []
        self.is_closed = False
        self.is_slow = is_slow

    @property
    def run_id(self) -> str:
        return "1120-a"

    def _fits(self, query: Query, number: int) -> bool:
        """Of the language this knows `state:`, `err:`, rejected replies and texts."""
        found = self.line(number).row
        for term in query.terms:
            if term.fragment == "state":
                holds = found.state == term.parameters[0]
            elif term.fragment == "rejected":
                holds = number in self.rejected or (
                    found.state is TaskState.COMPLETED and found.reason is not None
                )
            elif term.fragment == "err":
                holds = number in self.rejected or found.error == term.parameters[0]
            else:
                holds = str(term.parameters[0]).strip("%") in found.key
            if holds == term.is_negated:
                return False
        return True

    async def list_tasks(
        self, query: Query, order: TaskOrder, after: tuple[int, int] | None, limit: int
    ) -> TaskListStep:
        if self.trouble is not None:
            raise self.trouble
        self.listed.append((query, order))
        if not query.terms and order is TaskOrder.NUMBER:
            return TaskListStep(
                numbers=range(1, self.count + 1), after=None, seq=self.seq
            )
        begin = 1 if after is None else after[1] + 1
        numbers = array("q")
        for number in range(begin, self.count + 1):
            if self._fits(query, number):
                numbers.append(number)
                if len(numbers) == limit:
                    return TaskListStep(
                        numbers=numbers, after=(0, number), seq=self.seq
                    )
        if order is TaskOrder.NEWEST:
            numbers = array("q", reversed(numbers))
        return TaskListStep(numbers=numbers, after=None, seq=self.seq)

    def line(self, number: int) -> TaskLine:
        changed = self.changes.get(number, {})
        return TaskLine(
            row=row(number, **changed),
            updated_us=NOW_US - 1_000_000 * number,
            score=Score(verdicts=4, judged=3, right=2, value=f"value of {number}")
            if number % 5 == 1
            else None,
            title=self.titles.get(number, ""),
            head=f'{{"claim": {number}}}' if number % 8 < 2 else "",
        )

    async def lines(self, numbers: Sequence[int]) -> Mapping[int, TaskLine]:
        if self.trouble is not None:
            raise self.trouble
        self.asked.append(tuple(numbers))
        return {} if self.is_slow else {n: self.line(n) for n in numbers}

    async def changed(self, query: Query, since: int) -> Sequence[int]:
        numbers = range(since + 1, self.count + 1)
        found = {n for n in (*numbers, *self.changes) if self._fits(query, n)}
        return sorted(found)

    async def wrong(self) -> Sequence[int]:
        return [n for n in range(1, self.count + 1) if n in self.wrong_numbers]

    async def last_seq(self) -> int:
        return self.seq

    async def names(self) -> Names:
        return Names(
            total=self.count,
            stages=("extract", "judge", "score"),
            models=("openai/m-large", "openai/m-small"),
            errors=("RateLimited",),
            parse_failures=("truncated",),
        )

    async def detail(self, task: int) -> TaskDetail | None:
        if not 0 < task <= self.count:
            return None
        failed = AttemptFailed(
            task=task,
            attempt=1,
            error="RateLimited",
            latency_ms=320.0,
            message="429 Too Many Requests",
            status=429,
            retry_after_s=20.0,
            retry_in_s=24.0,
        )
        answered = AttemptAnswered(
            task=task,
            attempt=2,
            form="chat",
            status=200,
            latency_ms=6_200.0,
            finish_reason="stop",
            tokens_in=2_340,
            tokens_out=1_024,
            cost_usd=0.0069,
        )
        first = AttemptRow(
            attempt=1,
            started_us=NOW_US,
            ended_us=NOW_US + 320_000,
            started_seq=11,
            ended_seq=12,
            outcome=failed,
        )
        second = replace(
            first,
            attempt=2,
            started_us=NOW_US + 25_000_000,
            started_seq=13,
            ended_seq=14,
            outcome=answered,
        )
        verdict = StoredVerdict(
            task=task, value="(c)", expected="(b)", correct=False, rule="last letter"
        )
        lines = attempt_lines(TaskState.COMPLETED, NOW_US - 3_000_000, (first, second))
        return TaskDetail(
            line=self.line(task),
            attempts=self.attempts or tuple(lines),
            happenings=(
                TaskEventLine(
                    seq=11, at_us=NOW_US, kind="attempt_started", facts="a 1"
                ),
            ),
            scored=(
                scored(2, verdict),
                scored(1, replace(verdict, value="?", correct=None)),
            ),
            scorings=2,
        )

    async def text(self, attempt: AttemptRow, kind: TextKind, sign: str) -> AttemptText:
        is_prompt = kind is TextKind.PROMPT
        seq = attempt.started_seq if is_prompt else attempt.ended_seq
        if seq is None:
            return NO_TEXT
        self.read.append(seq)
        if self.trouble is not None:
            raise self.trouble
        text = self.texts.get(seq, f"The {kind.value} of event {seq}.")
        about = "temperature 0 · max tokens 2,048" if is_prompt else ""
        if kind is TextKind.ITEM and self.item_text is not None:
            return AttemptText(text=self.item_text)
        if kind is TextKind.PARSED:
            return AttemptText(text="", about=f"{sign} no JSON")
        return AttemptText(text=text, about=about)

    def close(self) -> None:
        self.is_closed = True


def scored(number: int, *verdicts: StoredVerdict) -> TaskScoring:
    """What a scoring says of a task."""
    return TaskScoring(
        number=number,
        scorer="qa 1.2",
        code="0123456789abcdef",
        seq=40 * number,
        verdicts=verdicts,
    )


def watching(
    source: TaskSource,
    *,
    glyphs: Glyphs = UNICODE,
    clock: Clock | None = None,
    filters: FilterMemory | None = None,
) -> WatchedRun:
    """A run whose tasks are those of *source*, and that has nothing else."""
    return WatchedRun(
        folder=RunFolder(Path("runs") / source.run_id),
        sources=MonitorSources(
            listing=FakeListing(),
            run=lambda _: FakeSource([ReadProblem(sentence="not to be looked at")]),
            tasks=lambda _: source,
            events=lambda _: FakeEvents(100),
            config=lambda _: FakeConfig(),
            clock=clock or FakeClock(),
            filters=filters or FilterMemory(),
        ),
        glyphs=glyphs,
    )


MOST_ROUNDS = 10


async def settled(pilot: Pilot[None]) -> None:
    """Wait until all that was asked has been answered and shown."""
    for again in range(MOST_ROUNDS):
        # a key is a worker too, and what it opens begins its reads after it
        if again > 1 and all(worker.is_finished for worker in pilot.app.workers):
            return
        with suppress(WorkerCancelled):  # a question that another one replaced
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()


class TasksApp(KeyOrderApp):
    """An app around one screen, with the themes of the monitor."""

    def __init__(self, screen: Screen[None], theme: str = DARK.name) -> None:
        super().__init__()
        for palette in COLOUR_THEMES:
            self.register_theme(palette.theme())
        self.theme = theme
        self._first = screen

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(state_variables(self.current_theme))

    def on_mount(self) -> None:
        self.push_screen(self._first)
