"""Ends a run of two models as soon as its answers decide which of them is better.

The decision rule is found by entry point (group `siftlog.decisions`), like jobs; the
engine does not know its statistics.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Literal, TypeAlias, cast

from runner.engine.background import run_alongside
from runner.engine.driver import Driver
from runner.errors import UsageError
from runner.installed import entry_points
from runner.job import Answer, Answers, Dataset, Job
from runner.score.scoring import answers
from runner.scorecard import Comparable
from runner.workload import Workload
from store.clock import Clock
from store.database import open_reader
from store.events import RunDrained, RunFinished
from store.log.interface import Log
from store.read.status import run_started, status
from store.results import ComparisonDecided, StoppingRule
from store.runs import RunFolder
from store.scoring import task_families
from store.tables import visible_seq

GROUP = "siftlog.decisions"
NAME = "sequential"

InterimVerdict: TypeAlias = Literal["better", "worse", "close", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimResult:
    """Comparison of B with A on finished documents; fixed once decided."""

    verdict: InterimVerdict
    clusters: int  #: compared documents
    cluster: str  #: name of such a document, such as "paper"
    difference: float | None  #: B minus A, mean over these documents
    lo: float  #: bounds of the mean difference, valid at any number of checks
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedItems:
    """The answered items from the first planned one on, without a gap."""

    keys: Sequence[str]  #: of the first stage, in the plan's order
    is_whole: bool  #: there are no others


Decide: TypeAlias = Callable[
    [Comparable, Comparable, FinishedItems, StoppingRule], InterimResult
]
"""Compares B with A, given as (a, b, finished, stopping).

Raises `UsageError` if the metric cannot be watched.
"""


def load_decide() -> Decide:
    """Load the installed decision rule.

    Raises:
        UsageError: none is installed.
    """
    for point in entry_points(group=GROUP, name=NAME):
        return cast("Decide", point.load())
    raise UsageError(
        "Nothing that decides between models is installed; run without "
        "--stop-when-decided."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimScores:
    """Results of the finished part of a run, item by item."""

    comparable: Mapping[str, Comparable]  #: by model
    finished: FinishedItems
    seq: int  #: the log's last event that was read


def interim_scores(
    job: Job, dataset: Dataset, reader: sqlite3.Connection
) -> InterimScores:
    """Score the finished part of a run, without writing anything."""
    # in this order: tasks may still be planned in between, and none before
    is_planned = status(reader).planning_exhausted
    through_seq = visible_seq(reader)
    keys, before = _finished(reader, through_seq)
    whole = answers(reader, run_started(reader), through_seq)
    card = job.score(dataset, whole if before is None else _Cut(whole, before))
    return InterimScores(
        comparable=card.comparable,
        finished=FinishedItems(keys=keys, is_whole=is_planned and before is None),
        seq=through_seq,
    )


def check(
    work: Workload, models: tuple[str, ...], stopping: StoppingRule, decide: Decide
) -> None:
    """Check that a metric can be watched, before any call.

    Raises:
        UsageError: it cannot; the message names those that can.
    """
    comparable = work.job.score(work.dataset, _NoAnswers(models=models)).comparable
    a, b = (comparable.get(model, {}) for model in models)
    decide(a, b, FinishedItems(keys=(), is_whole=False), stopping)


def _finished(
    reader: sqlite3.Connection, through_seq: int
) -> tuple[tuple[str, ...], int | None]:
    """Return the keys of the finished items, and the first task that is not."""
    keys: dict[str, None] = {}
    for root, rows in groupby(task_families(reader, through_seq), attrgetter("root")):
        family = list(rows)
        key = family[0].key
        if any(row.state.is_open for row in family):
            # another model, or an earlier stage, may have finished with the item
            keys.pop(key, None)
            return tuple(keys), root
        keys[key] = None
    return tuple(keys), None


@dataclass(frozen=True, slots=True)
class _Cut:
    """Answers up to a first-stage task; a `runner.job.Answers`."""

    answers: Answers
    before: int

    @property
    def models(self) -> tuple[str, ...]:
        return self.answers.models

    @property
    def replicates(self) -> int:
        return self.answers.replicates

    @property
    def imported(self) -> bool:
        return self.answers.imported

    def families(self) -> Iterator[tuple[Answer, ...]]:
        return takewhile(
            lambda family: family[0].task.number < self.before, self.answers.families()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoAnswers:
    """The answers of a run that has none; a `runner.job.Answers`."""

    models: tuple[str, ...]
    replicates: int = 1
    imported: bool = False

    def families(self) -> Iterator[tuple[Answer, ...]]:
        return iter(())


BY = "decision"
"""Sender of the drain when a run has enough answers."""
POLL_S = 2.0
"""Minimum interval between checks."""
REST = 19
"""Pause between checks in multiples of a check's time: 5 % of a core."""
_ALL = 1_000_000

VERDICTS = {"better": "better than", "worse": "worse than", "close": "as good as"}
"""Verdicts on B against A, in words."""


def sentence(decision: ComparisonDecided) -> str:
    """Describe the decision in a sentence without a full stop."""
    margin = decision.stopping.margin
    apart = f", apart by less than {margin:g}" if decision.verdict == "close" else ""
    return (
        f"{decision.b} is {VERDICTS[decision.verdict]} {decision.a} in "
        f"{decision.stopping.metric}{apart}: {decision.difference:+.3g} "
        f"[{decision.lo:.3g}, {decision.hi:.3g}] after {decision.clusters:,} "
        f"{decision.cluster}s, wrong with a chance of at most "
        f"{decision.stopping.alpha:g}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """Inputs of the checks of a run of two models."""

    stopping: StoppingRule
    decide: Decide


class Decider:
    """Ends a run as soon as its answers decide which model is better."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        log: Log,
        work: Workload,
        driver: Driver,
        clock: Clock,
        notify: Callable[[str], None],
        looking: DecisionContext,
    ) -> None:
        """Prepare to watch a run that is about to start.

        Args:
            folder: the run's.
            log: receives the decision.
            work: the run's workload.
            driver: drained after a decision.
            clock: schedules the checks.
            notify: called with messages for the user.
            looking: the method and the rule.
        """
        self._folder = folder
        self._log = log
        self._work = work
        self._driver = driver
        self._clock = clock
        self._notify = notify
        self._looking: DecisionContext | None = looking
        self._thread = ThreadPoolExecutor(max_workers=1)
        #: loaded by this thread: the engine's dataset may belong to its own
        self._dataset: Dataset = None
        self.decided: ComparisonDecided | None = None

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[None]:
        """Check periodically while the block runs."""
        await self._take_up()
        if self._looking is None:
            yield
            return
        with self._thread:
            async with run_alongside(self._driver.guard(self._watch)):
                yield

    async def poll(self) -> None:
        """Check once, and record a decision unless there is one."""
        looking = self._looking
        if looking is None or self.decided is not None:
            return
        loop = asyncio.get_running_loop()
        # from here on a reader sees every answer recorded so far
        await self._log.last_seq()
        try:
            decision = await loop.run_in_executor(self._thread, self._seen, looking)
        except UsageError as error:
            # the answers are still useful
            self._looking = None
            self._notify(f"The run continues to its end: {error}")
            return
        if decision is None or self.decided is not None:
            return
        self.decided = decision
        await self._log.append(decision)
        self._notify(f"Decided: {sentence(decision)}.")

    def _seen(self, looking: DecisionContext) -> ComparisonDecided | None:
        """Return the decision by the log's current answers; runs in a thread."""
        job = self._work.job
        if self._dataset is None:
            self._dataset = job.load(self._work.settings)
        with open_reader(self._folder.log) as reader:
            models = run_started(reader).models["subject"]
            seen = interim_scores(job, self._dataset, reader)
        a, b = (seen.comparable.get(model, {}) for model in models)
        interim = looking.decide(a, b, seen.finished, looking.stopping)
        if interim.verdict == "undecided" or interim.difference is None:
            return None
        return ComparisonDecided(
            stopping=looking.stopping,
            a=models[0],
            b=models[1],
            verdict=interim.verdict,
            clusters=interim.clusters,
            cluster=interim.cluster,
            difference=interim.difference,
            lo=interim.lo,
            hi=interim.hi,
            seq=seen.seq,
        )

    async def _take_up(self) -> None:
        """Apply an earlier decision.

        A user who resumes a run stopped by it wants the rest as well.
        """
        for recorded in await self._log.events(
            limit=_ALL, kinds=["comparison_decided", "run_drained", "run_finished"]
        ):
            match recorded.event:
                case ComparisonDecided() as decision:
                    self.decided = decision
                case RunDrained(by=by) if by == BY:
                    self._looking = None
                case RunFinished() if self.decided is not None:
                    self._looking = None
                case _:
                    pass
        if self._looking is None:
            self.decided = None

    async def _watch(self) -> None:
        last_ended, pause_s = -1, POLL_S
        while self._looking is not None and self.decided is None:
            await self._clock.sleep_until(self._clock.monotonic() + pause_s)
            began, pause_s = self._clock.monotonic(), POLL_S
            ended = self._driver.statistics().tasks_ended
            if ended == last_ended:
                continue
            last_ended = ended
            await self.poll()
            pause_s = max(POLL_S, REST * (self._clock.monotonic() - began))
        if self.decided is not None:
            self._driver.drain()
