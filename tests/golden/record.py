"""Records the runs that are read: `python -m tests.golden.record`, once.

What is committed in `runs.tar.xz` was written by the code of the day on which it was
recorded, against simulated endpoints and with the shipped samples; it is not made anew
with every change, for the point is that later code reads it. All runs are made in one
folder with a fixed path, under a clock that shows another day and with the name of a
machine that does not exist: `sitecustomize`, below, is imported by every process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.golden.runs import ARCHIVE, FOLDER
from tests.golden.taking import WORKER, Tree

ROOT = Path(__file__).resolve().parents[2]
BEGAN_S = 3_600.0
"""Seconds by which all runs begin before the moment at which they are read."""
SITE = """\
import importlib.util, os
spec = importlib.util.spec_from_file_location("worker", os.environ["GOLDEN_WORKER"])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
worker.pretend(float(os.environ["GOLDEN_OFFSET_S"]))
"""
TWO = "--model large --model small --price 0.15,0.60"
PAPERS = (
    "paper-investigation --bench data/variant_bench.jsonl --papers data/papers "
    "--questions data/questions --sentence-bench data/sentence_bench.jsonl --no-report"
)
REPLAY = Path(__file__).parents[1] / "replay" / "golden"
DOWNGRADE = (
    "DROP TABLE lane",
    "DROP TABLE failure",
    "ALTER TABLE error_class DROP COLUMN final",
    "UPDATE projection SET code_ver = 3",
)
"""Makes the projections of a log those of an older version."""


class Recorder:
    """Runs the product's command in the folder of the runs."""

    def __init__(self, tree: Tree) -> None:
        self._siftlog = tree.python.with_name("siftlog")
        site = FOLDER / "site"
        site.mkdir(parents=True, exist_ok=True)
        (site / "sitecustomize.py").write_text(SITE)
        offset = _epoch() - BEGAN_S - time.time()  # noqa: TID251 - of this machine
        self._variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(FOLDER / "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "80",
            "PYTHONPATH": str(site),
            "GOLDEN_WORKER": str(WORKER),
            "GOLDEN_OFFSET_S": str(offset),
        }

    def do(self, line: str, *codes: int) -> str:
        """Run a command to its end, which must have one of the exit codes."""
        done = subprocess.run(
            [self._siftlog, *line.split()],
            cwd=FOLDER,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        print(f"{done.returncode}  {line[:100]}", flush=True)
        if done.returncode not in (codes or (0,)):
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout

    def start(self, line: str) -> subprocess.Popen[str]:
        """Start a command in a process group of its own."""
        print(f"&  {line[:100]}", flush=True)
        return subprocess.Popen(
            [self._siftlog, *line.split()],
            cwd=FOLDER,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    @contextmanager
    def endpoint(self, options: str) -> Iterator[str]:
        """A simulated endpoint; its address as options of a run."""
        served = self.start(f"simulate --job paper-investigation {options}")
        assert served.stdout is not None
        try:
            yield f"--base-url {served.stdout.readline().strip()}"
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait()

    def wait_for(self, run: str, completed: int) -> None:
        """Return once a run has completed so many tasks."""
        while True:
            try:
                state = json.loads(self._status(run))
                if state["tasks"]["completed"] >= completed:
                    return
            except json.JSONDecodeError:
                pass
            time.sleep(0.2)

    def _status(self, run: str) -> str:
        return subprocess.run(
            [self._siftlog, "status", run, "--json"],
            cwd=FOLDER,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
        ).stdout


def _epoch() -> float:
    text = WORKER.read_text("utf-8")
    return float(text.split("EPOCH = ")[1].split("\n")[0].replace("_", ""))


def finished(r: Recorder) -> None:
    """Runs that come to an end: with faults, failures, replicates, other jobs."""
    faults = "--latency-ms 30 --jitter-ms 40 --rate-429 0.05 --rate-5xx 0.03"
    with r.endpoint(f"{faults} --rate-malformed 0.03 --limit-headers --rps 60") as at:
        r.do(f"run {PAPERS} --run-id done {TWO} {at} --budget 5 --concurrency 8", 0, 3)
        r.do("score done --variant-link whole --no-report")
        r.do("bundle done --no-report --out done.bundle")
    with r.endpoint("--rate-refuse 0.4 --rate-5xx 0.3 --latency-ms 5") as at:
        r.do(
            f"run {PAPERS} --run-id failed {TWO} {at} --deadline-s 3 --limit 4 "
            "--replicates 2 --stop-if off --reask 1",
            0,
            3,
        )
    with r.endpoint("--latency-ms 5 --batch-seconds 2") as at:
        r.do(
            f"run {PAPERS} --run-id batched --limit 3 {TWO} {at} --batch "
            "--batch-poll-s 1 --batch-requests 20",
            0,
            3,
        )
    with r.endpoint("--latency-ms 1 --rate-malformed 1") as at:
        r.do(f"run {PAPERS} --run-id stopped {TWO} {at} --deadline-s 20", 0, 1, 3, 5)
    with r.endpoint("--latency-ms 5") as at:
        r.do(f"run {PAPERS} --run-id spent {TWO} {at} --budget 0.002", 4, 5)
        cached = f"--limit 3 --model large --price 1,2 {at} --cache --cache-dir cache"
        r.do(f"run {PAPERS} --run-id cached-1 {cached}")
        r.do(f"run {PAPERS} --run-id cached-2 {cached}")
    r.do(
        "import paper-investigation --run-id imported --profile clinpgx-qa --no-report "
        "data/records/alder-7b_paper_investigation_responses.jsonl"
    )


def interrupted(r: Recorder) -> None:
    """Runs that were killed, resumed, steered from outside, drained and cancelled."""
    slow = "--latency-ms 2500 --jitter-ms 1500"
    with r.endpoint(slow) as at:
        run = f"run {PAPERS} {TWO} {at} --concurrency 6 --budget 5"
        for name in ("killed", "resumed"):
            process = r.start(f"{run} --run-id {name}")
            r.wait_for(name, 30)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        r.do("resume resumed --no-report", 0, 3)
        process = r.start(f"{run} --run-id steered")
        r.wait_for("steered", 8)
        for line in (
            "pause steered --model small",
            "limits steered --model large --rpm 2000 --concurrency 6",
            "budget steered --add 1.5",
            "resume steered --model small",
            "limits steered --rpm none",
            "pause steered",
        ):
            r.do(line)
        time.sleep(4)
        r.do("resume steered")
        r.wait_for("steered", 30)
        r.do("drain steered")
        process.wait()
        for line in ("budget steered --add 2", "limits steered --concurrency 3"):
            r.do(line)
        process = r.start(f"{run} --run-id cancelled")
        r.wait_for("cancelled", 10)
        r.do("cancel cancelled --yes --now")
        process.wait()
        r.do("retry cancelled --reason cancelled")


def split(r: Recorder) -> None:
    """Runs in shards: one that is whole, one of which a shard never came."""
    with r.endpoint("--latency-ms 20") as at:
        run = f"run {PAPERS} {TWO} {at} --concurrency 4"
        for shard in ("0/2", "1/2"):
            r.do(f"{run} --run-id wide --shard {shard}", 0, 3)
        r.do("merge wide")
        r.do(f"{run} --run-id half --shard 1/3", 0, 3)
        r.do(f"{run} --run-id far --shard 0/2 --local-dir node --ship place", 0, 3)


def altered(runs: Path) -> None:
    """Copies with logs of older versions, and damaged ones."""
    for source in sorted(REPLAY.glob("*.sql")):
        folder = runs / f"old-{source.stem}"
        folder.mkdir()
        with (
            closing(sqlite3.connect(runs / "done" / "log.db")) as made,
            closing(sqlite3.connect(folder / "log.db")) as conn,
        ):
            (application,) = made.execute("PRAGMA application_id").fetchone()
            conn.execute(f"PRAGMA application_id = {application}")
            conn.executescript(source.read_text("utf-8"))
    small = runs / "cached-1"
    for name in ("older", "flipped", "shortened"):
        shutil.copytree(small, runs / name)
    with closing(sqlite3.connect(runs / "older" / "log.db")) as conn:
        for statement in DOWNGRADE:
            conn.execute(statement)
        conn.commit()
    log = runs / "flipped" / "log.db"
    data = bytearray(log.read_bytes())
    at = data.rindex(b'"request_sha256":"') + 20
    data[at] ^= 1
    log.write_bytes(data)
    with closing(sqlite3.connect(runs / "shortened" / "log.db")) as conn:
        conn.execute("DROP TRIGGER IF EXISTS event_no_delete")
        conn.execute("DELETE FROM event WHERE seq > (SELECT max(seq) - 3 FROM event)")
        conn.commit()


def pack() -> None:
    """Write the archive, with the same bytes for the same content."""
    for log in FOLDER.rglob("log.db"):
        with closing(sqlite3.connect(log)) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name in ("data", "runs", "cache", "place", "done.bundle"):
            for path in sorted([FOLDER / name, *(FOLDER / name).rglob("*")]):
                if path.is_file() and path.suffix not in {".db-shm", ".db-wal", ".png"}:
                    member = tarfile.TarInfo(path.relative_to(FOLDER).as_posix())
                    member.size = path.stat().st_size
                    with path.open("rb") as file:
                        archive.addfile(member, file)


def main() -> None:
    """Record all runs, and pack them."""
    tree = Tree(root=ROOT)
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    recorder = Recorder(tree)
    shutil.copytree(tree.sample("paper-investigation"), FOLDER / "data")
    finished(recorder)
    interrupted(recorder)
    split(recorder)
    altered(FOLDER / "runs")
    pack()
    shutil.rmtree(FOLDER)
    print(f"{ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
