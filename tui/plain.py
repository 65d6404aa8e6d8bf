"""Shows a run as plain lines: for pipes, logs, screen readers and braille displays.

A line every half minute and with every change of state, in ASCII, times in UTC, without
control characters. Neither textual nor rich is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from store.clock import Clock
from store.errors import StoreError
from store.printable import printable
from store.read.forecast import (
    budget_text,
    progress_text,
    rate_text,
    share_text,
    time_left_text,
)
from tui.render.format import utc
from tui.render.sentences import sentence, spent
from tui.sources.run_snapshot import LATELY, ReadProblem, RunSnapshot, SnapshotSource

EVERY_S = 30.0
POLL_S = 1.0


async def follow(
    source: SnapshotSource, clock: Clock, say: Callable[[str], None]
) -> None:
    """Report a run until no process works on it.

    Raises:
        StoreError: its log is missing or unreadable.
    """
    teller = PlainReporter()
    while True:
        snapshot = source.poll()
        if isinstance(snapshot, ReadProblem):
            raise StoreError(snapshot.sentence)
        for line in teller.lines(snapshot, clock.monotonic()):
            say(line)
        if snapshot.is_ended:
            return
        await clock.sleep_until(clock.monotonic() + POLL_S)


class PlainReporter:
    """Decides when to report again."""

    def __init__(self) -> None:
        self._state: str | None = None
        self._last_line_s = 0.0

    def lines(self, snapshot: RunSnapshot, now: float) -> Iterator[str]:
        """Yield the lines due at *now*, in seconds of a monotonic clock."""
        if snapshot.state != self._state or now - self._last_line_s >= EVERY_S:
            self._state, self._last_line_s = snapshot.state, now
            yield line_of(snapshot)


def line_of(snapshot: RunSnapshot) -> str:
    """Describe a run as one line of ASCII."""
    status = snapshot.status
    tasks = status.tasks
    progress, forecast = snapshot.present.progress, snapshot.forecast
    left = None if forecast is None else forecast.seconds
    budget = None if forecast is None else forecast.budget_seconds
    failed = sum(row.n for row in snapshot.lately or ())
    counts = {
        "failed": tasks.failed,
        "unparsed": tasks.unparsed,
        "running": tasks.running,
        "waiting": tasks.waiting,
    }
    parts = [
        f"{share_text(progress.share)}, {progress_text(progress)}",
        *(f"{n:,} {label}" for label, n in counts.items() if n),
        *([f"{failed:,} failures in {LATELY} min"] if failed else []),
        *([] if snapshot.rate is None else [rate_text(snapshot.rate)]),
        *(
            []
            if forecast is None or left is None
            else [f"left {time_left_text(left, paused=forecast.paused_tasks)}"]
        ),
        *([] if budget is None else [budget_text(budget)]),
        f"cost {spent(snapshot)}",
        *filter(None, [sentence(snapshot)]),
    ]
    line = (
        f"{utc(snapshot.now_us)} {status.run_id} {snapshot.state}: {'; '.join(parts)}"
    )
    return ascii_of(line)


def ascii_of(text: str) -> str:
    """Return one ASCII line; other characters are escaped."""
    safe = printable(text).replace("\n", " ")
    return safe.encode("ascii", "backslashreplace").decode("ascii")
