"""Planted changes of code: regress finds those that change anything, and their class.

With SIFTLOG_PROVE all changes of `planted.toml` on all golden runs, else some on a few.
The runs are those of the archive as today's code would have recorded them: events with
fingerprints of the code, and scorings of today.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runner.fingerprint import code_fingerprint
from runner.registry import load_job
from runner.score.scoring import score_run
from runner.workload import validated
from store.clock import SystemClock
from store.code_fingerprint import CodeFingerprint
from store.database import open_reader
from store.encoding import unpack
from store.events import (
    Blob,
    Entry,
    Event,
    RunResumed,
    RunStarted,
    ScoringRecorded,
)
from store.log.sqlite import SqliteLog
from store.read.status import run_started, scorings
from store.runs import RunFolder, list_runs
from store.tables import last_seq, payload, recorded
from tests.commands import siftlog
from tests.golden.runs import RUNS, SPLIT, put_inputs
from tests.golden.runs import recorded as archive

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("planted_worker.py")
PROVE = "SIFTLOG_PROVE" in os.environ
GOLDEN = (*RUNS, *SPLIT) if PROVE else ("cached-1",)
PACKAGES = ("jobs", "runner", "store")
ADDED = "added"
"""The run with added stages, which the archive has none of."""
FIELDS = """
[fields.stated]
ask = "Is the answer stated?"
type = "one-of"
options = ["yes", "no"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedChange:
    """A change of one file of the product, or of a package that it uses."""

    file: str
    new: str
    cause: str
    changes: bool  #: whether anything recorded becomes another one
    old: str = ""
    package: str = ""

    @property
    def name(self) -> str:
        """It in a line."""
        return f"{self.file}: {self.new.strip()[:60]}"

    def plant(self, folder: Path) -> list[Path]:
        """Make a tree with the change; return what comes first on the import path."""
        if self.package:
            return [self._package(folder / "packages"), ROOT]
        for package in PACKAGES:
            shutil.copytree(
                ROOT / package,
                folder / package,
                copy_function=os.link,
            )
        target = folder / self.file
        text = target.read_text("utf-8")
        target.unlink()  # the tree has it too
        target.write_text(text.replace(self.old, self.new, 1), "utf-8")
        return [folder]

    @property
    def is_plantable(self) -> bool:
        """Whether the file still has what the change replaces."""
        return bool(self.package) or self.old in (ROOT / self.file).read_text("utf-8")

    def _package(self, folder: Path) -> Path:
        """Link a package but for one file, and give it another version."""
        top, *inner = Path(self.file).parts
        spec = find_spec(top)
        assert spec is not None
        assert spec.origin is not None
        source, target = Path(spec.origin).parent, folder / top
        for name in inner:
            target.mkdir(parents=True)
            for path in source.iterdir():
                if path.name != name:
                    (target / path.name).symlink_to(path)
            source, target = source / name, target / name
        target.write_text(source.read_text("utf-8") + self.new, "utf-8")
        metadata = folder / f"{self.package}-999.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {self.package}\nVersion: 999\n")
        return folder


CHANGES = [
    PlantedChange(**values)
    for values in tomllib.loads(
        Path(__file__).with_name("planted.toml").read_text("utf-8")
    )["change"]
]


def _some() -> list[PlantedChange]:
    """The first change of each class, and some that change nothing."""
    first: dict[tuple[bool, str], PlantedChange] = {}
    for change in CHANGES:
        first.setdefault((not change.changes, change.cause), change)
    return [first[key] for key in sorted(first)][:8]


async def _record_again(source: Path, target: Path, code: CodeFingerprint) -> None:
    """Write the events of a log into a new one, with the fingerprint of *code*."""
    with open_reader(source) as reader:
        blobs = tuple(
            Blob(sha256=bytes(sha256), data=unpack(enc, data, size))
            for sha256, enc, size, data in reader.execute(
                "SELECT sha256, enc, size, data FROM blob"
            )
        )
        run_id = run_started(reader).run_id
        async with await SqliteLog.create(
            target, run_id=run_id, config_sha256=b"", clock=SystemClock(), owner="test"
        ) as log:
            for each in recorded(reader, 0, last_seq(reader), None):
                event = each.event
                assert isinstance(event, Event)
                if isinstance(event, RunStarted | RunResumed | ScoringRecorded):
                    event = msgspec.structs.replace(event, code=code)
                await log.append(
                    Entry(event=event, payload=payload(reader, each.seq), blobs=blobs)
                )
                blobs = ()


async def _score_again(folder: RunFolder) -> None:
    """Repeat each scoring with today's code, and record it."""
    with open_reader(folder.log) as reader:
        before = scorings(reader)
    job = load_job("paper-investigation")
    for scoring in before:
        await score_run(
            job,
            folder,
            validated(job, json.loads(scoring.settings)),
            clock=SystemClock(),
            record=True,
            report=False,
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden runs, recorded again."""
    put_inputs()
    folder = tmp_path_factory.mktemp("planted")
    code = code_fingerprint(load_job("paper-investigation"))
    for name, data in archive().items():
        top, _, rest = name.partition("/")
        if top == "runs" and rest.split("/")[0] in GOLDEN:
            path = folder / "archive" / rest
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for run in list_runs(folder / "archive"):
        target = RunFolder(folder / "runs" / run.run_id)
        shutil.copytree(
            run.path,
            target.path,
            ignore=shutil.ignore_patterns("log*", "verdicts.db"),
        )
        for log in run.shards() or (run,):
            new = RunFolder(target.path, log.part).log
            asyncio.run(_record_again(log.log, new, code))
        if not run.shards():
            asyncio.run(_score_again(target))
    _add_stages(folder)
    return folder / "runs"


def _add_stages(folder: Path) -> None:
    """Make a run that got a judge and a scan after its end."""
    plain = ("--runs-dir", folder / "runs", "--no-report")
    sample = ("paper-investigation", "--limit", 2, "--run-id", ADDED)
    siftlog("run", *sample, *plain, "--no-score", cwd=folder)
    for name, about in (
        ("support", 'judges = "question"'),
        ("design", 'scans = "extract"'),
    ):
        file = folder / f"{name}.toml"
        file.write_text(f'name = "{name}"\n{about}\n{FIELDS}')
        siftlog("add-stage", ADDED, file, *plain, cwd=folder)


Found = Mapping[str, Mapping[str, Any]]
"""What the worker prints, by run."""


def _worked(runs: Path, places: Sequence[Path]) -> Found:
    done = subprocess.run(
        [sys.executable, WORKER, runs],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))},
        cwd=runs,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: Found = json.loads(done.stdout)
    return found


def _failures(change: PlantedChange, before: Found, after: Found) -> Iterator[str]:
    """What regress did not find, found wrongly, or put in another class."""
    changed = [run for run in before if before[run]["own"] != after[run]["own"]]
    if PROVE and bool(changed) is not change.changes:
        yield f"{change.name}: changes {changed or 'nothing'}"
    for run, report in after.items():
        if report["differs"] is not (run in changed) or report["problem"]:
            yield f"{change.name}: {run} {report}, before {before[run]['own']}"
        if report["differs"] and report["causes"] != [change.cause]:
            yield f"{change.name}: {run} is put down to {report['causes']}"


@pytest.mark.timeout(3600 if PROVE else 300)
def test_regress_finds_each_planted_change_and_its_class(
    runs: Path, tmp_path: Path
) -> None:
    before = _worked(runs, [ROOT])
    assert not {run: each for run, each in before.items() if each["differs"]}
    planted = CHANGES if PROVE else _some()

    def check(at: int) -> tuple[int, list[str]]:
        folder = tmp_path / str(at)
        after = _worked(runs, planted[at].plant(folder))
        shutil.rmtree(folder)
        found = sum(report["differs"] for report in after.values())
        if PROVE:
            print(f"{planted[at].cause:10} {found:3} runs  {planted[at].name}")
        return found, list(_failures(planted[at], before, after))

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(check, range(len(planted))))
    failures = [line for _, lines in results for line in lines]
    assert not failures, "\n".join(failures)
    assert {change.cause for change in planted} == {
        *("job", "kit", "metrics", "engine", "dependency")
    }
    changing = [n for c, (n, _) in zip(planted, results, strict=True) if c.changes]
    assert len(changing) >= 5
    assert all(changing)


def test_every_change_can_be_planted() -> None:
    """If one cannot be planted any more, correct its `old` in `planted.toml`."""
    assert [change.name for change in CHANGES if not change.is_plantable] == []
    assert len(CHANGES) == len({change.name for change in CHANGES}) == 55
