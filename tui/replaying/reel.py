"""A run's past, moved from moment to moment: the prefix that is shown, and some before.

Going back needs an earlier prefix: the nearest of some that were kept on the way, moved
on from there. Whoever shows something then begins anew (`generation`), since what was
seen has not been yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from store.connect import Reader
from store.errors import NotALog
from store.events import Unknown, kind_of
from store.moment import Moment, absences, moment_of
from store.prefix import Prefix
from store.runs import RunFolder
from store.views import events, last_seq
from tui.replaying.playhead import Span

STEP = 20_000
"""Events folded in one commit at most: a tenth of a second or two."""
KEPT = 8
"""Prefixes kept of a long log, so that going back costs an eighth of all at most."""
SPARSE = 20_000
"""Events between two of them at least: a tenth of a second or two to fold."""
TURNS = (
    "run_resumed",
    "run_paused",
    "run_drained",
    "run_cancelled",
    "run_finished",
    "comparison_decided",
    "scoring_recorded",
)
"""Kinds of events that one may want to see a run at."""
MOST_TURNS = 100


class Reel:
    """One run's log at a moment that can be moved.

    It belongs to one thread, but for what it says of itself and `open_reader`.
    """

    def __init__(self, folder: RunFolder) -> None:
        """At the first event; nothing after the event that is the last by now is seen.

        Raises:
            StoreError: the log cannot be read, or there is no room for a copy.
        """
        with ExitStack() as opened:
            log = opened.enter_context(folder.open_reader())
            self.last = last_seq(log)  #: event that it ends with
            if not self.last:
                raise NotALog(
                    "nothing was recorded yet: there is nothing to replay, but siftlog "
                    "watch shows what comes"
                )
            self.moment = moment_of(log, 1)  #: that is shown
            self.span = Span(
                begin_us=self.moment.at_us,
                end_us=moment_of(log, self.last).at_us,
                absences=absences(log),
            )
            #: numbers, times and kinds of some events
            self.turns = tuple(
                (row.seq, row.ts_us, kind_of(type(row.event)))
                for row in events(log, limit=MOST_TURNS, kinds=TURNS)
                if not isinstance(row.event, Unknown)
            )
            self._prefix = opened.enter_context(Prefix(folder.log))
            self._prefix.move_to(self.moment)
            self._room = Path(opened.enter_context(_room()))
            self._opened = opened.pop_all()
        self._path = folder.log
        self._log = log
        self._spacing = max(SPARSE, self.last // KEPT)
        self._saved: dict[int, Path] = {}
        self._old: Prefix | None = None
        self.still = Lock()  #: while it is held, the log stays as its moment says
        self.generation = 0  #: one more whenever time has gone back

    def open_reader(self) -> Reader:
        """A connection that sees the log as it was at the moment that is shown."""
        return self._prefix.open_reader()

    def find(self, wanted: Callable[[Reader], Moment]) -> Moment:
        """The moment that *wanted* finds in the whole log."""
        return wanted(self._log)

    def move_to(self, goal: Moment, is_wanted: Callable[[int], bool]) -> bool:
        """Show another moment, and on the way to a later one those between.

        Args:
            goal: where to.
            is_wanted: asked now and then; once it says no, this stops where it is.

        Returns:
            Whether it has come there.

        Raises:
            CorruptLog: an event is damaged.
        """
        move = self._rewind if goal.seq < self._prefix.seq else self._go_on
        return move(goal, is_wanted)

    def _go_on(self, goal: Moment, is_wanted: Callable[[int], bool]) -> bool:
        while True:
            is_far = goal.seq - self._prefix.seq > STEP
            step = moment_of(self._log, self._prefix.seq + STEP) if is_far else goal
            if not self._prefix.move_to(
                step, is_wanted=is_wanted, commit_in=self._shown(step)
            ):
                return False
            if step.seq - max(self._saved, default=0) >= self._spacing:
                file = self._saved[step.seq] = self._room / f"{step.seq}.db"
                self._prefix.save(file)
            if not is_far:
                return True

    def _rewind(self, goal: Moment, is_wanted: Callable[[int], bool]) -> bool:
        """Take another prefix, once it is there."""
        before = max((seq for seq in self._saved if seq <= goal.seq), default=None)
        saved = None if before is None else self._saved[before]
        prefix = Prefix(self._path, saved=saved)
        is_there = False
        try:
            is_there = prefix.move_to(goal, is_wanted=is_wanted)
        finally:
            if not is_there:
                prefix.close()
        if is_there:
            if self._old is not None:
                self._old.close()
            with self._shown(goal):
                # screens may look at the one before until they begin anew
                self._old, self._prefix = self._prefix, prefix
                self.generation += 1
        return is_there

    @contextmanager
    def _shown(self, moment: Moment) -> Iterator[None]:
        """What is done inside and the moment are seen together, or neither is."""
        with self.still:
            yield
            self.moment = moment

    def close(self) -> None:
        """Let go of the log, and remove the copies."""
        for each in (self._prefix, self._old):
            if each is not None:
                each.close()
        self._opened.close()


def _room() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="siftlog-")
