"""Looks at a run of two models while it goes on, and ends it once it is decided.

What a look finds follows from the answers in the log alone. When one looks makes no
difference to it, nor does a crash in between: what was decided after so many documents
is found to have been so by every later look. So looks are taken when there is time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from runner.deciding import Decide
from runner.engine.beside import beside
from runner.engine.driver import Driver
from runner.errors import UsageError
from runner.job import Dataset
from runner.records.front import front
from runner.work import Work
from store.clock import Clock
from store.database import open_reader
from store.events import RunDrained, RunFinished
from store.log.interface import Log
from store.read.status import run_started
from store.results import ComparisonDecided, StoppingRule
from store.runs import RunFolder

BY = "decision"
"""Who drains a run that has answered enough."""
POLL_S = 2.0
"""Between two looks, at least."""
REST = 19
"""Times as long as a look took until the next one: they take a twentieth of a core."""
_ALL = 1_000_000

VERDICTS = {"better": "better than", "worse": "worse than", "close": "as good as"}
"""What a verdict says of B and A."""


def sentence(found: ComparisonDecided) -> str:
    """What was decided, for people; without a full stop."""
    margin = found.stopping.margin
    apart = f", apart by less than {margin:g}" if found.verdict == "close" else ""
    return (
        f"{found.b} is {VERDICTS[found.verdict]} {found.a} in {found.stopping.metric}"
        f"{apart}: {found.difference:+.3g} [{found.lo:.3g}, {found.hi:.3g}] after "
        f"{found.clusters:,} {found.cluster}s, wrong with a chance of at most "
        f"{found.stopping.alpha:g}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """What a run of two models is looked at with."""

    stopping: StoppingRule
    decide: Decide


class Decider:
    """Ends a run as soon as its answers say which of its models is better."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        log: Log,
        work: Work,
        driver: Driver,
        clock: Clock,
        tell: Callable[[str], None],
        looking: Looking | None,
    ) -> None:
        """Watch a run that is about to go on.

        Args:
            folder: the run's.
            log: where the decision goes.
            work: what the run is about.
            driver: what is drained.
            clock: says when to look.
            tell: takes a sentence for whoever started the process.
            looking: None: the run answers all that is planned.
        """
        self._folder = folder
        self._log = log
        self._work = work
        self._driver = driver
        self._clock = clock
        self._tell = tell
        self._looking = looking
        self._thread = ThreadPoolExecutor(max_workers=1)
        #: the thread's own: what the engine has loaded may belong to its thread
        self._dataset: Dataset = None
        self.decided: ComparisonDecided | None = None

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[None]:
        """Look while the body runs, from time to time."""
        await self._take_up()
        if self._looking is None:
            yield
            return
        with self._thread:
            async with beside(self._driver.guard(self._watch)):
                yield

    async def look(self) -> None:
        """Look once, and record what is decided; nothing where it has been before."""
        looking = self._looking
        if looking is None or self.decided is not None:
            return
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._thread, self._seen, looking)
        except UsageError as error:
            # the answers are worth having all the same
            self._looking = None
            self._tell(f"The run goes on to its end: {error}")
            return
        if found is None or self.decided is not None:
            return
        self.decided = found
        await self._log.append(found)
        self._tell(f"Decided: {sentence(found)}.")

    def _seen(self, looking: Looking) -> ComparisonDecided | None:
        """What the log decides by now; read in a thread of its own."""
        job = self._work.job
        if self._dataset is None:
            self._dataset = job.load(self._work.settings)
        with open_reader(self._folder.log) as reader:
            models = run_started(reader).models["subject"]
            seen = front(job, self._dataset, reader)
        a, b = (seen.comparable.get(model, {}) for model in models)
        found = looking.decide(a, b, seen.finished, looking.stopping)
        if found.standing == "undecided" or found.difference is None:
            return None
        return ComparisonDecided(
            stopping=looking.stopping,
            a=models[0],
            b=models[1],
            verdict=found.standing,
            clusters=found.clusters,
            cluster=found.cluster,
            difference=found.difference,
            lo=found.lo,
            hi=found.hi,
            seq=seen.seq,
        )

    async def _take_up(self) -> None:
        """Go by what was decided before.

        Whoever resumes a run that had stopped there wants the rest as well.
        """
        for recorded in await self._log.events(
            limit=_ALL, kinds=["comparison_decided", "run_drained", "run_finished"]
        ):
            match recorded.event:
                case ComparisonDecided() as found:
                    self.decided = found
                case RunDrained(by=by) if by == BY:
                    self._looking = None
                case RunFinished() if self.decided is not None:
                    self._looking = None
                case _:
                    pass
        if self._looking is None:
            self.decided = None

    async def _watch(self) -> None:
        looked_at, pause_s = -1, POLL_S
        while self._looking is not None and self.decided is None:
            await self._clock.sleep_until(self._clock.monotonic() + pause_s)
            began, pause_s = self._clock.monotonic(), POLL_S
            ended = self._driver.statistics().tasks_ended
            if ended == looked_at:
                continue
            looked_at = ended
            await self.look()
            pause_s = max(POLL_S, REST * (self._clock.monotonic() - began))
        if self.decided is not None:
            self._driver.drain()
