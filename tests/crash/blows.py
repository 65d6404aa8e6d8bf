"""How a run is hit from outside, and the toll of it."""

from __future__ import annotations

import random
import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from store.clock import SystemClock
from tests.crash.books import HANGS_S, Books
from tests.gates import Gate
from tests.processes import Process

CLOCK = SystemClock()
SETTLED_S = 0.25
"""By then the endpoint has noticed that a killed client is gone."""
LINE_BYTES = 300
"""Of a line of the ledger, or a little more."""
DEADLY = -signal.SIGKILL
INTERRUPTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """What a process is sent, and what may come of it."""

    signals: tuple[signal.Signals, ...]
    codes: tuple[int, ...] = (INTERRUPTED,)  #: how the process may end
    leaves_unknown: bool = False  #: calls in flight may be given up
    pauses: bool = False  #: the run is paused before, and nothing is in flight
    options: tuple[str, ...] = ()  #: of the process that is hit


BLOWS: Mapping[str, Blow] = {
    "SIGKILL": Blow(signals=(signal.SIGKILL,), codes=(DEADLY,), leaves_unknown=True),
    "SIGKILL, paused": Blow(signals=(signal.SIGKILL,), codes=(DEADLY,), pauses=True),
    "SIGINT": Blow(signals=(signal.SIGINT,)),
    "SIGTERM": Blow(signals=(signal.SIGTERM,)),
    "SIGUSR1": Blow(signals=(signal.SIGUSR1,)),
    # two of a kind may arrive as one; a drain may be over before the second arrives
    "drain, then stop": Blow(
        signals=(signal.SIGTERM, signal.SIGINT),
        codes=(INTERRUPTED, -signal.SIGINT),
        leaves_unknown=True,
    ),
    "drain, little grace": Blow(
        signals=(signal.SIGTERM,), leaves_unknown=True, options=("--grace-s=0.03",)
    ),
}


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the blows of one kind found."""

    in_flight: list[int] = field(default_factory=list)  #: when the process had ended
    lost: list[int] = field(default_factory=list)  #: served, and not in the log

    def row(self, name: str) -> str:
        flying, lost = self.in_flight, self.lost
        return (
            f"{name:20} {len(flying):5} {sum(map(bool, flying)):9} "
            f"{statistics.median(flying):7g} {max(flying):4} {sum(flying):8} "
            f"{statistics.median(lost):7g} {max(lost):4}"
        )


HEAD = (
    f"{'hit by':20} {'times':>5} {'in flight':>9} {'median':>7} {'max':>4} "
    f"{'unknown':>8} {'lost':>7} {'max':>4}"
)


class Toll:
    """Hits one process after another, and compares the books after each."""

    def __init__(
        self,
        books: Books,
        ledger: Path,
        gate: Gate,
        *,
        slots: int,
        share: int,
        seed: int,
    ) -> None:
        self._books = books
        self._ledger = ledger
        self._gate = gate
        self._slots = slots
        self._share = share  #: requests that pass before a blow, at most
        self._chance = random.Random(seed)
        self._lost = 0
        self.tallies: dict[str, Tally] = {}

    @property
    def blows(self) -> int:
        """How often a process was hit."""
        return sum(len(tally.in_flight) for tally in self.tallies.values())

    @property
    def unknown(self) -> int:
        """Attempts whose outcome is not known, over all blows."""
        return sum(sum(tally.in_flight) for tally in self.tallies.values())

    def hit(self, process: Process, name: str) -> bool:
        """Hit *process* at a random moment; False where it had ended before."""
        blow = BLOWS[name]
        self._gate.let(self._share)
        if not self._wait_for_calls(process):
            return False
        if blow.pauses:
            self._books.pause()
            self._gate.open()
            self._books.settle()
        time.sleep(self._chance.uniform(0, 0.15))
        if blow.leaves_unknown:
            self._keep_one_in_flight(process)
        for number in blow.signals:
            process.send_signal(number)
            time.sleep(self._chance.uniform(0, 0.03))
        self._gate.open()
        code = process.wait(timeout=120)
        ended_ms = CLOCK.now_us() // 1000
        assert code in {0, *blow.codes}, f"{name}: exit code {code}"
        if code == 0:
            return False
        self._gate.let(0)
        time.sleep(SETTLED_S)
        self._take(name, blow, ended_ms)
        return True

    def _wait_for_calls(self, process: Process) -> bool:
        """Until some calls were served to *process*, or it has ended."""
        size = self._size()
        most = min(30, self._share // 2)
        enough = size + LINE_BYTES * self._chance.randint(1, most)
        deadline = CLOCK.monotonic() + HANGS_S
        while process.poll() is None:
            if self._size() >= enough:
                return True
            assert CLOCK.monotonic() < deadline, "the run hangs"
            time.sleep(0.002)
        return False

    def _keep_one_in_flight(self, process: Process) -> None:
        """See to it that there is something to be lost, and stays."""
        self._gate.let(0)
        while process.poll() is None and not self._gate.is_keeping:
            time.sleep(0.002)

    def _size(self) -> int:
        return self._ledger.stat().st_size if self._ledger.exists() else 0

    def _take(self, name: str, blow: Blow, ended_ms: int) -> None:
        books = self._books
        before = set(books.in_flight)
        books.read()
        books.check()
        assert not before & set(books.in_flight), "an unknown call was never given up"
        flying = len(books.in_flight)
        assert flying <= self._slots, "more calls are unknown than there are slots"
        assert blow.leaves_unknown or flying == 0, f"{name} left calls unknown"
        lost = books.lost(until_ms=ended_ms)
        tally = self.tallies.setdefault(name, Tally())
        tally.in_flight.append(flying)
        tally.lost.append(lost - self._lost)
        self._lost = lost

    def __str__(self) -> str:
        rows = [tally.row(name) for name, tally in self.tallies.items()]
        return "\n".join((HEAD, *rows))


def shuffled(counts: Mapping[str, int], seed: int) -> Sequence[str]:
    """Names of blows, each as often as it says, in an order drawn by chance."""
    names = [name for name, count in counts.items() for _ in range(count)]
    random.Random(seed).shuffle(names)
    return names
