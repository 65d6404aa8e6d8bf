"""The recorded runs, read by every command and by the monitor.

They were finished, killed, split, are old or damaged. Each group of runs has a folder
of its own with copies of their logs, so that commands which merge or score do not meet.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.golden.cases import Case, Step, steps

ARCHIVE = Path(__file__).with_name("runs.tar.xz")
FOLDER = Path("/tmp/siftlog-golden")  # noqa: S108 - it is in every log that is recorded
"""Where the runs were recorded; their inputs are put there again."""
RUNS = (
    "done", "failed", "batched", "stopped", "spent", "cached-1", "cached-2", "imported",
    "killed", "resumed", "steered", "cancelled",
)  # fmt: skip
"""Runs with a log of their own that this code may score."""
SPLIT = ("wide", "half")
OLD = ("old-log-1", "old-log-1-batches", "old-log-1-decided", "old-log-1-parameters")
DAMAGED = ("flipped", "shortened")
LATER_S = 172_800.0
"""Two days: ages are shown, and what was live is no more."""


@cache
def recorded() -> dict[str, bytes]:
    """Files of the archive by path."""
    if not ARCHIVE.exists():
        return {}
    with tarfile.open(ARCHIVE) as archive:
        return {
            member.name: file.read()
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }


def _files(*prefixes: str) -> dict[str, bytes]:
    return {k: v for k, v in recorded().items() if k.startswith(prefixes)}


def put_inputs() -> None:
    """Lay the inputs of the recorded runs where their logs say that they are.

    Several checks at a time may do so: what is put there is the same, and it stays.
    """
    inputs = _files("data/")
    if not inputs or (FOLDER / "data").exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=FOLDER))
    for name, data in inputs.items():
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    with suppress(OSError):  # another check was there first
        (draft / "data").rename(FOLDER / "data")
    shutil.rmtree(draft)


def run_cases() -> Iterator[Case]:
    """Cases that read the recorded runs."""
    if not recorded():
        return
    for run in RUNS:
        yield _read(run)
    for run in SPLIT:
        yield _split(run)
    yield from (_old(run) for run in (*OLD, "older"))
    yield from (_damaged(run) for run in DAMAGED)
    yield _together()
    yield _elsewhere()


def _looks(run: str) -> tuple[str, ...]:
    return (
        f"status {run}",
        f"status {run} --json",
        f"status {run} --check",
        f"tasks {run}",
        f"tasks {run} --json",
        f"tasks {run} --csv --filter state:completed --limit 20",
        f"tasks {run} --filter 'latency>100ms attempts>1'",
        f"events {run}",
        f"events {run} --json",
        f"events {run} --after 60 --kind attempt_failed --kind task_completed",
        f"scores {run}",
        f"scores {run} --json",
        f"commands {run}",
        f"commands {run} --json",
        f"limits {run}",
        f"limits {run} --json",
        f"budget {run}",
        f"budget {run} --json",
        f"models {run}",
        f"models {run} --json",
        f"prompts {run}",
        f"verify {run}",
        f"verify {run} --json",
        f"merge {run} --check",
        f"watch {run} --plain",
        *(f"status {run} --at {at}" for at in ("1", "40", "200", "-1s", "-10s")),
        f"status {run} --at 100 --json",
    )


def _read(run: str) -> Case:
    what_if = "--concurrency 4 --rpm 600"
    return Case(
        name=f"runs/{run}",
        files=_files(f"runs/{run}/"),
        steps=steps(
            *_looks(run),
            Step(line=f"status {run}", after_s=LATER_S),
            Step(line="runs", after_s=LATER_S),
            f"score {run} --no-report --no-record",
            f"score {run} --no-report --no-record --at 120",
            f"score {run} --no-report",
            f"explain {run} PMC0000001",
            f"estimate --from {run}",
            f"estimate --from {run} {what_if} --json",
            f"export {run}",
            f"export {run} tasks answers --format csv --no-prompts",
            f"export {run} tasks answers --format parquet --json",
            f"retry {run} --reason refused --dry-run",
            f"limits {run} --rpm 5 --dry-run",
            f"budget {run} --add 1 --dry-run --json",
            f"cancel {run} --dry-run",
            f"pause {run} --dry-run",
            f"retry {run} --filter state:failed --no-wait",
            f"budget {run} --add 1.25 --no-wait --json",
            f"commands {run}",
            f"report {run}",
        ),
        collect=(f"runs/{run}/exports/**/*",),
    )


def _split(run: str) -> Case:
    return Case(
        name=f"runs/{run}",
        files=_files(f"runs/{run}"),
        steps=steps(
            f"merge {run}",
            f"merge {run} --check --json",
            *_looks(run),
            f"score {run} --no-report --no-record",
            f"export {run} tasks answers --format csv",
            "runs",
            "runs --json",
        ),
        collect=(f"runs/{run}/exports/**/*",),
    )


def _old(run: str) -> Case:
    return Case(
        name=f"runs/{run}",
        files=_files(f"runs/{run}/"),
        steps=steps(*_looks(run), f"export {run} --format csv"),
        collect=(f"runs/{run}/exports/**/*",),
    )


def _damaged(run: str) -> Case:
    return Case(
        name=f"runs/{run}",
        files=_files(f"runs/{run}/"),
        steps=steps(
            *_looks(run),
            f"resume {run}",
            f"export {run}",
            f"bundle {run} --no-report",
            f"score {run} --no-report --no-record",
        ),
    )


def _together() -> Case:
    """Many runs in one folder: lists, comparisons, histories."""
    wanted = (
        "done",
        "failed",
        "killed",
        "resumed",
        "steered",
        "cancelled",
        "old-log-1",
    )
    return Case(
        name="runs/together",
        files=_files(*(f"runs/{run}/" for run in wanted)),
        steps=steps(
            "runs",
            "runs --json",
            "status last",
            "status d",
            "history paper-investigation",
            "history paper-investigation --json",
            "compare done resumed",
            "compare done@1 done@2",
            "compare done --metric avg_paper_score --json",
            "diff done",
            "diff done 1 2 --json",
            "explain done PMC0000001 PMC0000003",
            "watch --plain",
        ),
    )


def _elsewhere() -> Case:
    """What is no run folder: a bundle, a cache, logs that shards shipped."""
    return Case(
        name="runs/elsewhere",
        files=_files("done.bundle", "cache/", "place/", "runs/far"),
        steps=steps(
            "verify done.bundle",
            "verify done.bundle --json",
            "cache list --cache-dir cache",
            "cache list --cache-dir cache --json",
            "cache prune --cache-dir cache --older-than 30d",
            Step(line="cache list --cache-dir cache", after_s=LATER_S),
            "cache prune --cache-dir cache --model nonsense",
            "cache prune --cache-dir cache --max-size 1KB",
            "status far --ship place",
            "status far --ship place --json",
            "status far --ship place --check",
            "merge far --ship place",
            "merge far --ship place --json",
            "status far",
            "tasks far --limit 5",
        ),
    )


# The monitor: screens as text, in a large and a small window. The application is the
# one that `siftlog watch` starts: only textual's own `App.run` is replaced, by one
# without a terminal.

WALK = (
    "=run tab tab =models t =tasks j enter =task tab =reply escape escape "
    "e =events escape m =metrics tab =retries escape c =choices escape a =requests "
    "escape i =config escape question_mark =help"
)
"""The way through all screens of a run: keys, and `=NAME` where one is written down."""
WATCHED = ("done", "killed", "steered", "wide")
DRIVER = {
    "TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver",
    "TEXTUAL_ANIMATIONS": "none",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
}


def screen_cases() -> Iterator[Case]:
    """A case for each run, and one for the list of runs."""
    if not recorded():
        return
    for run in WATCHED:
        files = {k: v for k, v in recorded().items() if k.startswith(f"runs/{run}")}
        yield Case(
            name=f"screens/{run}",
            files=files,
            steps=[_step(f"watch {run} --read-only", WALK)],
        )
    names = tuple(f"runs/{run}/" for run in ("done", "killed", "steered", "spent"))
    yield Case(
        name="screens/all",
        files={k: v for k, v in recorded().items() if k.startswith(names)},
        steps=[
            _step("watch --read-only", "=runs down enter =run"),
            _step("watch --ascii", "=runs"),
            _step("watch done --ascii", "=run question_mark =help"),
            _step("watch killed", "P =question escape b =question"),
            _step("watch done --replay max", "=end"),
            _step("watch killed --replay max --at 60", "=end"),
        ],
    )


def _step(line: str, keys: str) -> Step:
    return Step(line=line, variables=DRIVER, keys=keys)
