"""Damage to the log of a killed process: said, and nothing is paid for again.

A real process is killed with SIGKILL in the middle of a run, and its folder copied.
Each copy is damaged in one way: bits flipped, blocks blank, files cut short or deleted;
the database, its WAL, or both. Then `verify` and `resume` are asked. A damage is silent
where acknowledged events are gone and yet both find nothing. What was acknowledged is
known from outside: the endpoint's ledger has every request that left, and no request
leaves before its start is acknowledged.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner.cli.arguments import job_settings
from runner.cli.main import exit_code
from runner.registry import load_job
from runner.simulate.options import RequestOutcome
from runner.workload import resolve
from store.database import open_reader
from store.errors import StoreError
from store.events import RecordedEvent, RunResumed
from store.log.integrity import read_head
from store.read.tasks import events
from store.runs import RunFolder
from store.tables import payload
from store.verify import verify
from tests.corpus import write_corpus
from tests.crash.books import Books
from tests.crash.damage import Damage, damages
from tests.gates import Gate, gated
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, start

JOB = "paper-investigation"
PROVE = "SIFTLOG_PROVE" in os.environ
PAPERS = 60 if PROVE else 24
#: Share of the requests before each kill: from the first WAL to after checkpoints.
KILLS = (0.02, 0.07, 0.15, 0.3, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93)
KILLS = KILLS if PROVE else (0.07, 0.7)
DAMAGES = 500 if PROVE else 30
SETTLED_S = 0.3
CALLS = ("--model=mine", "--concurrency=8", "--price=1,1")


@dataclass(slots=True, kw_only=True)
class Killed:
    """A run whose process was killed, and what is known of it."""

    folder: Path  #: as the kill left it; to be copied, never opened
    events: list[tuple[RecordedEvent, bytes | None]]
    acknowledged: int  #: of them
    answers: Counter[str]  #: recorded answers, by the body of their request


@dataclass(slots=True)
class Tally:
    """What damages of one kind came to."""

    done: int = 0
    lost: int = 0  #: acknowledged events were gone
    refused: int = 0  #: resume went no further
    unsound: int = 0  #: verify said so
    silent: int = 0
    again: int = 0  #: recorded answers that were paid for again


@dataclass(slots=True)
class Table:
    """All of them, by file and kind."""

    rows: dict[str, Tally] = field(default_factory=dict)

    def of(self, damage: Damage) -> Tally:
        return self.rows.setdefault(f"{damage.target}, {damage.how}", Tally())

    def total(self, name: str) -> int:
        return sum(getattr(tally, name) for tally in self.rows.values())

    def __str__(self) -> str:
        names = Tally.__dataclass_fields__
        head = f"{'damage':24}" + "".join(f"{name:>9}" for name in names)
        lines = [
            f"{kind:24}" + "".join(f"{getattr(tally, name):9}" for name in names)
            for kind, tally in sorted(self.rows.items())
        ]
        sums = f"{'all':24}" + "".join(f"{self.total(name):9}" for name in names)
        return "\n".join((head, *lines, sums))


class Yard:
    """Runs that are killed, and the endpoint that counts what is paid."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.corpus = write_corpus(cwd / "corpus", PAPERS)
        self.ledger = cwd / "ledger.jsonl"
        self._read = 0
        self.needed: Counter[str] = Counter()

    def served(self) -> Counter[str]:
        """Answers that the endpoint gave since the last call, by body."""
        lines = list(read_ledger(self.ledger))
        new, self._read = lines[self._read :], len(lines)
        return Counter(n.request for n in new if n.outcome is RequestOutcome.ANSWERED)

    def calm(self, url: str) -> None:
        """Run once undisturbed: how often each request is needed."""
        words = ("run", JOB, *self.corpus, *CALLS, f"--base-url={url}")
        siftlog(*words, "--run-id=calm", "--no-score", cwd=self.cwd)
        self.needed = self.served()

    def kill(self, gate: Gate, share: float, *, looks: bool) -> Killed:
        """Kill a run once some of its requests have passed.

        Args:
            gate: before the endpoint; lets requests pass.
            share: of all that it needs.
            looks: whether a reader holds on to an early moment meanwhile, so that the
                WAL is never reset and is only copied back in part.
        """
        self.served()  # what was paid before is none of its concern
        passes = round(share * self.needed.total())
        run = f"killed-{passes}"
        gate.let(passes // 2)
        words = ("run", JOB, *self.corpus, *CALLS, f"--base-url={gate.url}")
        process = start(*words, f"--run-id={run}", cwd=self.cwd)
        gate.wait(process)
        folder = RunFolder(self.cwd / "runs" / run)
        with ExitStack() as stack:
            if looks:
                reader = stack.enter_context(open_reader(folder.log))
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM event").fetchall()
            gate.let(passes - passes // 2)
            gate.wait(process)
            if looks:
                reader.execute("ROLLBACK")
            time.sleep(SETTLED_S)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        time.sleep(SETTLED_S)
        left = self.cwd / "left" / run
        shutil.copytree(folder.path, left)
        sizes = {each.name: each.stat().st_size for each in left.glob("log.db*")}
        print(run, sizes)
        return self._known(left, folder)

    def _known(self, left: Path, folder: RunFolder) -> Killed:
        job = load_job(JOB)
        settings = resolve(
            job, typed=job_settings(self.corpus, []), environment={}, file={}
        )
        ledger = self.cwd / "own.jsonl"
        lines = self.ledger.read_bytes().splitlines(keepends=True)[self._read :]
        ledger.write_bytes(b"".join(lines))
        books = Books(folder, ledger, job, job.load(settings))
        books.read()
        books.check()  # the ledger and the undamaged log say the same
        self.served()
        head = read_head(left / "log.db")
        assert head is not None
        with open_reader(folder.log) as reader:
            assert verify(reader).is_sound
        recorded = _events(folder.log)
        # every request that left had been acknowledged, and so was known outside
        starts = [r.seq for r, _ in recorded if r.kind == "attempt_started"]
        assert starts[-1] <= head.seq <= len(recorded)
        return Killed(
            folder=left,
            events=recorded,
            acknowledged=head.seq,
            answers=+books.answered,
        )

    def again(self, killed: Killed) -> int:
        """Recorded answers that were paid for once more since the last call."""
        paid = self.served() + killed.answers
        return (paid - self.needed).total()


def _events(log: Path) -> list[tuple[RecordedEvent, bytes | None]]:
    with open_reader(log) as reader:
        return [(r, payload(reader, r.seq)) for r in events(reader, limit=1_000_000)]


def _has_lost(killed: Killed, log: Path) -> bool:
    """Whether acknowledged events cannot be read any more, or are others."""
    known = killed.events[: killed.acknowledged]
    try:
        return _events(log)[: len(known)] != known
    except StoreError:
        return True


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Yard, str, Gate]]:
    yard = Yard(tmp_path_factory.mktemp("yard"))
    server = ("--job", JOB, "--seed=5", "--latency-ms=2", "--ledger", yard.ledger)
    with simulated(*server, cwd=yard.cwd) as url, gated(url, passes=0) as gate:
        yard.calm(url)
        yield yard, url, gate


def _copy(killed: Killed, to: Path) -> RunFolder:
    folder = RunFolder(to / "runs" / killed.folder.name)
    shutil.rmtree(to / "runs", ignore_errors=True)
    shutil.copytree(killed.folder, folder.path)
    return folder


def _cut(killed: Killed, to: Path) -> RunFolder:
    """A copy whose WAL is cut where acknowledged events are lost, but not all.

    The end of a WAL may be left over from before it was begun anew: then a cut there
    costs nothing.
    """
    for share in (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001):
        folder = _copy(killed, to)
        wal = folder.log.with_name("log.db-wal")
        os.truncate(wal, round(wal.stat().st_size * share))
        if _has_lost(killed, folder.log) and _events(folder.log):
            return folder
    raise AssertionError("no cut loses some of the events")


def _resume(folder: RunFolder, url: str, *more: str) -> int:
    place = f"--runs-dir={folder.path.parent}"
    words = ("resume", folder.run_id, place, f"--base-url={url}", "--no-score")
    return exit_code([*words, *more])


def _verify(folder: RunFolder) -> int:
    return exit_code(["verify", folder.run_id, f"--runs-dir={folder.path.parent}"])


@pytest.mark.timeout(3600 if PROVE else 300)
def test_no_damage_after_a_kill_is_silent_and_none_is_paid_for_again(
    yard: tuple[Yard, str, Gate], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, url, gate = yard
    table = Table()
    for number, share in enumerate(KILLS):
        killed = there.kill(gate, share, looks=number % 3 == 1)
        for damage in damages(DAMAGES // len(KILLS), seed=number):
            folder = _copy(killed, tmp_path)
            if not damage.do(folder.log):
                continue
            tally = table.of(damage)
            tally.done += 1
            has_lost = _has_lost(killed, folder.log)
            verified = _verify(folder)
            resumed = _resume(folder, url)
            said = capsys.readouterr()
            again = there.again(killed)
            is_silent = has_lost and verified == 0 and resumed in {0, 3}
            tally.lost += has_lost
            tally.unsound += verified != 0
            tally.refused += resumed == 1
            tally.silent += is_silent
            tally.again += again
            if is_silent or again:
                print(share, damage, verified, resumed, again, said.err)
            # what lost nothing goes on, whatever happened to unused bytes of its files
            assert has_lost or verified or resumed == 0, (share, damage, said.err)
    with capsys.disabled():
        print(f"\n{table}")
    assert table.total("done") >= DAMAGES * 9 // 10
    assert table.total("lost") > DAMAGES // 4
    assert table.total("silent") == 0
    assert table.total("again") == 0


def test_a_loss_that_is_accepted_is_recorded_and_the_end_is_proven_again(
    yard: tuple[Yard, str, Gate], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, url, gate = yard
    killed = there.kill(gate, 0.5, looks=False)
    folder = _cut(killed, tmp_path)
    before = sorted((p.name, p.stat().st_size) for p in folder.path.glob("log.db-wal"))
    assert _resume(folder, url) == 1
    said = capsys.readouterr().err
    kept = len(_events(folder.log))
    assert f"ends with event {kept}, but {killed.acknowledged} were acknowl" in said
    assert "log.db-wal is damaged or cut short" in said
    assert there.again(killed) == 0
    # refused, it touched nothing: what is left of the WAL may still be of use
    after = sorted((p.name, p.stat().st_size) for p in folder.path.glob("log.db-wal"))
    assert before == after
    assert _verify(folder) == 6
    assert _resume(folder, url, "--accept-loss") == 0
    resumed = [r.event for r, _ in _events(folder.log) if r.kind == "run_resumed"]
    (event,) = resumed
    assert isinstance(event, RunResumed)
    assert event.lost == killed.acknowledged - kept > 0
    capsys.readouterr()
    assert _verify(folder) == 0
    assert "acknowledged events are in log.db" in capsys.readouterr().out
