"""Checks a bundle and makes its scorecard again without a network: `siftlog verify`."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final
from zipfile import ZipFile

import msgspec

from runner.bundle import archive
from runner.bundle.archive import InvalidArchive
from runner.bundle.manifest import (
    INPUTS,
    LOG,
    NAME,
    Manifest,
    decoded,
    differences,
    encoded,
    environment,
    moved,
    scorecard_of,
)
from runner.errors import RunnerError
from runner.fingerprint import input_hashes
from runner.registry import load_job
from runner.score.repeat import chosen
from runner.score.scoring import replayed
from runner.workload import fitting
from store.database import open_reader
from store.errors import StoreError
from store.events import Input
from store.read.status import run_started, scorings
from store.tables import head
from store.verify import LogFault, VerifyReport, check_schema, verify

_PROGRAMS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
"""Whoever starts a program might have that one open a socket."""


def go_offline() -> None:
    """From now on every socket and every program is refused with a PermissionError."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    del arguments
    if event.startswith("socket.") or event in _PROGRAMS:
        raise PermissionError(errno.EPERM, f"{event} while a scorecard is made again")


REBUILT: Final = "rebuilt.json"
"""The scorecard that was made again, beside the log."""

PROGRESS_S: Final = 0.5
"""Between two words to whoever waits."""

_CODE = "from runner.bundle.verify import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """What came of it; `rebuilt.json` is there where nothing is wrong."""

    changed: tuple[str, ...] = ()  #: settings whose files are not what was scored
    error: str = ""  #: why there is no scorecard


def rebuild(
    folder: Path, scoring: int, progress: Callable[[str], None]
) -> RebuildResult:
    """Score the bundle in *folder* as its scoring of that number was.

    A process of its own does it, which has given up sockets before it loads the job.
    *progress* is told now and then that it is still at work.
    """
    # -P: a folder called runner where this was typed is not ours
    words = (sys.executable, "-P", "-c", _CODE, str(folder), str(scoring))
    with subprocess.Popen(  # noqa: S603 - this very Python, with a path of ours
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            answer, stderr = _awaited(child, progress)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        lines = stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"its process ended with {child.returncode}"
        return RebuildResult(error=reason)
    return msgspec.json.decode(answer, type=RebuildResult)


def _awaited(
    child: subprocess.Popen[bytes], progress: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """What a process says, once it is through."""
    while True:
        progress("the scorecard is being made again")
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=PROGRESS_S)


def main() -> None:
    """What the process does: arguments in, one JSON object out."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for what a job may print
    go_offline()
    folder, scoring = Path(sys.argv[1]), int(sys.argv[2])
    with answer:
        answer.write(msgspec.json.encode(_outcome(folder, scoring)))


def _outcome(folder: Path, scoring: int) -> RebuildResult:
    try:
        return _rebuilt(folder, scoring)
    except (RunnerError, StoreError) as error:
        return RebuildResult(error=str(error))


def _rebuilt(folder: Path, number: int) -> RebuildResult:
    with open_reader(folder / LOG) as reader:
        first = run_started(reader)
        recorded = chosen(first.run_id, scorings(reader), number)
        job = load_job(first.job)
        settings = moved(fitting(job, json.loads(recorded.settings)), folder)
        inputs = input_hashes(job.inputs(settings))
        if changed := changed_settings(recorded.inputs, inputs):
            return RebuildResult(changed=changed)
        scoring = replayed(job, reader, settings, inputs, through_seq=recorded.seq)
    (folder / REBUILT).write_bytes(scoring.content)
    return RebuildResult()


def changed_settings(then: Sequence[Input], now: Sequence[Input]) -> tuple[str, ...]:
    """Settings of which one has other files than the other, or none."""
    before, after = _by_setting(then), _by_setting(now)
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name) != after.get(name))


def _by_setting(inputs: Sequence[Input]) -> dict[str, list[str]]:
    hashes: dict[str, list[str]] = {}
    for recorded_input in inputs:
        hashes.setdefault(recorded_input.setting, []).append(recorded_input.sha256)
    return hashes


LATE: Final = (
    "The time limit was reached before the rest was checked: raise it "
    "with --time-limit SECONDS if you trust the file's source."
)

_STEPS: Final = 100_000
"""Of SQLite's virtual machine between two looks at the clock: about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """What a check of a bundle found."""

    manifest: Manifest | None  #: None: it could not be read
    log: VerifyReport | None  #: None: it was not come to
    is_rebuilt: bool  #: the scorecard came out again, byte for byte
    differs: tuple[str, ...]  #: versions that are not what they were, if it was tried
    faults: tuple[LogFault, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def check(
    path: Path,
    progress: Callable[[str], None],
    within: Path | None = None,
    *,
    is_late: Callable[[], bool] = lambda: False,
) -> BundleReport:
    """Take a bundle apart in a temporary folder, and make its scorecard again.

    Args:
        path: of the file; of anything, if somebody says that it is a bundle.
        progress: is told in a line how far this is.
        within: where the temporary folder is made; None: where the system has them.
        is_late: whether the time for it is over.

    Raises:
        RunnerError: it is of a later siftlog, there is no room to unpack it, or the
            time was over.
    """

    def report_progress(line: str) -> None:
        if is_late():
            raise RunnerError(LATE)
        progress(line)

    run = _Check(path, report_progress, within or Path(gettempdir()), is_late)
    try:
        run.all()
    except InvalidArchive as refused:
        run.faults.append(refused.fault)
    if is_late():
        raise RunnerError(LATE)
    if not run.is_sealed and not run.faults:
        run.faults.append(
            LogFault(
                what="archive",
                where="between its members",
                message="a byte was changed since the bundle was made",
            )
        )
    return BundleReport(
        manifest=run.manifest,
        log=run.log,
        is_rebuilt=run.is_rebuilt,
        differs=run.differs,
        faults=tuple(run.faults),
    )


class _Check:
    """The parts of a check, and what they have seen so far."""

    def __init__(
        self,
        path: Path,
        progress: Callable[[str], None],
        within: Path,
        is_late: Callable[[], bool],
    ) -> None:
        self._path = path
        self._is_late = is_late
        self._progress = progress
        self._within = within
        self.manifest: Manifest | None = None
        self.log: VerifyReport | None = None
        self.is_sealed = self.is_rebuilt = False
        self.differs: tuple[str, ...] = ()
        self.faults: list[LogFault] = []

    def all(self) -> None:
        """Every part, as long as the next one has something to go by."""
        if not archive.has_seal(self._path):
            raise InvalidArchive(
                "its end", "is not that of a bundle, or of a whole one"
            )
        self.is_sealed = archive.is_sealed(self._path)
        with (
            archive.opened(self._path) as opened,
            TemporaryDirectory(prefix="siftlog-", dir=self._within) as name,
        ):
            folder = Path(name)
            self.manifest = manifest = self._read(opened)
            unpacked = sum(info.file_size for info in opened.infolist())
            require_room(unpacked, self._within, shutil.disk_usage(folder).free)
            self.faults += archive.unpack(opened, manifest, folder, self._progress)
            if (folder / LOG).exists():
                self.faults += self._of_log(manifest, folder / LOG)
            if self.is_sealed and not self.faults:
                self.faults += self._of_scorecard(manifest, folder)

    def _read(self, opened: ZipFile) -> Manifest:
        content = archive.manifest_bytes(opened)
        try:
            manifest = decoded(content)
        except ValueError as error:
            raise InvalidArchive(NAME, f"cannot be read ({error})") from error
        if isinstance(manifest, int):
            raise RunnerError(
                f"{self._path} is a bundle of form {manifest}, which a later siftlog "
                "has made: upgrade siftlog."
            )
        if encoded(manifest) != content:
            raise InvalidArchive(NAME, "is not written as siftlog writes it")
        return manifest

    def _of_log(self, manifest: Manifest, path: Path) -> Iterator[LogFault]:
        """The chain, and that the log is the one which the manifest speaks of."""
        try:
            check_schema(path)
            with open_reader(path) as reader:
                reader.set_progress_handler(self._is_late, _STEPS)
                self.log = verify(reader, self._progress)
                yield from self.log.faults
                if self.log.faults:
                    return
                claimed = (manifest.run, manifest.job, manifest.events, manifest.head)
                first = run_started(reader)
                if claimed != (first.run_id, first.job, self.log.events, head(reader)):
                    yield LogFault(
                        what="chain",
                        where=f"event {self.log.events}",
                        message="is not the last one that bundle.json tells of",
                    )
                digests = {
                    scoring.number: scoring.digest for scoring in scorings(reader)
                }
        except StoreError as error:
            yield LogFault(what="file", where=LOG, message=str(error))
            return
        if digests.get(manifest.scoring) != manifest.digest:
            yield LogFault(
                what="scoring",
                where=f"scoring {manifest.scoring}",
                message="is another one in the log",
            )

    def _of_scorecard(self, manifest: Manifest, folder: Path) -> Iterator[LogFault]:
        """The stored scorecard, then the one that comes out now."""
        then = manifest.environment
        self.differs = differences(then, environment(then.packages))
        scorecard_name = scorecard_of(manifest.scoring)
        stored = (folder / scorecard_name).read_bytes()
        if hashlib.sha256(stored).hexdigest() != manifest.digest:
            yield LogFault(
                what="scorecard",
                where=scorecard_name,
                message=f"is not what scoring {manifest.scoring} recorded",
            )
            return
        rebuilt = rebuild(folder, manifest.scoring, self._progress)
        for setting in rebuilt.changed:
            yield LogFault(
                what="input",
                where=f"{INPUTS}/{setting}",
                message=f"is not what scoring {manifest.scoring} has read",
            )
        if rebuilt.error:
            yield LogFault(
                what="scorecard",
                where=scorecard_name,
                message=f"cannot be made again: {rebuilt.error}",
            )
        if rebuilt.changed or rebuilt.error:
            return
        again = (folder / REBUILT).read_bytes()
        self.is_rebuilt = again == stored
        if not self.is_rebuilt:
            yield LogFault(
                what="scorecard",
                where=f"{scorecard_name}, line {_first_difference(stored, again)}",
                message=_unlike(self.differs),
            )


def _first_difference(stored: bytes, again: bytes) -> int:
    """Number of the first line that is another one."""
    pairs = zip_longest(stored.split(b"\n"), again.split(b"\n"))
    return next(number for number, (a, b) in enumerate(pairs, 1) if a != b)


def _unlike(differs: tuple[str, ...]) -> str:
    """What to say of a scorecard that came out otherwise."""
    sentence = "came out otherwise"
    if not differs:
        return (
            f"{sentence}, though all versions are the same: the job's code has "
            "changed, or the run has gone on since"
        )
    more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""  # noqa: PLR2004 - a sentence holds three
    return f"{sentence}, where versions differ: {'; '.join(differs[:3])}{more}"


def require_room(needed: int, folder: Path, free: int) -> None:
    """Refuse to begin what would fill the disk.

    Raises:
        RunnerError: *needed* bytes are more than are *free*.
    """
    if needed > free:
        raise RunnerError(
            f"Unpacked, the bundle takes {needed / 1e9:,.1f} GB, and {folder} has "
            f"{free / 1e9:,.1f} GB left: name another folder in TMPDIR."
        )
