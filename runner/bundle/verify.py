"""Checks a bundle and recomputes its scorecard offline: `siftlog verify`."""

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
from runner.bundle.certified import wrong_certificates
from runner.bundle.frame import FRAME
from runner.bundle.manifest import (
    INPUTS,
    LABELS,
    LOG,
    NAME,
    REBUILT,
    Manifest,
    RedactedManifest,
    decoded,
    differences,
    encoded,
    environment,
    member_of,
    moved,
    scorecard_of,
)
from runner.bundle.recomputed import metrics_of_frame, recomputed_scorecard
from runner.bundle.redacted_verify import RedactionReport, checked, has_frame
from runner.certificates import checked_certificate
from runner.errors import RunnerError, UsageError
from runner.fingerprint import hashes_by_setting, input_hashes
from runner.job import JOB_FILE, Job
from runner.registry import job_of, load_job
from runner.reply_labels import scoring_inputs
from runner.score.repeat import chosen
from runner.score.scoring import replayed
from runner.workload import fitting
from store.database import open_reader
from store.errors import StoreError
from store.events import Input, RunStarted
from store.labels.folder import label_logs, verify_labels
from store.read.status import run_started, scorings
from store.runs import CERTIFICATES, certificates_in
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
"""Audit events of starting programs, which might open sockets."""


def go_offline() -> None:
    """Refuse every socket and every program from now on with a PermissionError."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    del arguments
    if event.startswith("socket.") or event in _PROGRAMS:
        raise PermissionError(errno.EPERM, f"{event} while a scorecard is recomputed")


PROGRESS_S: Final = 0.5
"""Interval of progress messages."""

_CODE = "from runner.bundle.verify import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """Result of a recomputation; `rebuilt.json` exists if it succeeded."""

    changed: tuple[str, ...] = ()  #: settings whose files differ from the scored ones
    error: str = ""  #: why there is no scorecard
    certificates: tuple[str, ...] = ()  #: what differs in certificates, a line each
    metrics: int = 0  #: of a redacted bundle, that came out the same from its frame
    different: tuple[tuple[str, str], ...] = ()  #: model and path of those that did not


def rebuild(
    folder: Path, scoring: int, job: str, progress: Callable[[str], None]
) -> RebuildResult:
    """Recompute a scoring of an unpacked bundle.

    A separate process does it, which gives up sockets before it loads the job.

    Args:
        folder: with the bundle's members.
        scoring: its number.
        job: the Python file of the job, as `FILE.py` or `FILE.py:NAME`; "": the one
            that the log names.
        progress: called at intervals.
    """
    # -P: do not import a folder named runner in the current directory
    words = (sys.executable, "-P", "-c", _CODE, str(folder), str(scoring), job)
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
    """Wait for a process and return its output."""
    while True:
        progress("the scorecard is being recomputed")
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=PROGRESS_S)


def main() -> None:
    """Run the recomputation in the process: arguments in, one JSON object out."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a job may print
    go_offline()
    folder, scoring, job = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with answer:
        answer.write(msgspec.json.encode(_outcome(folder, scoring, job)))


def _outcome(folder: Path, scoring: int, file: str) -> RebuildResult:
    frame = folder / member_of(scoring, FRAME)
    try:
        with open_reader(folder / LOG) as reader:
            job = _job(run_started(reader), file, is_redacted=frame.is_file())
        if frame.is_file():
            return _evaluated(folder, scoring, job, frame.read_bytes())
        return _rebuilt(folder, scoring, job)
    except (RunnerError, StoreError) as error:
        return RebuildResult(error=str(error))


def _job(started: RunStarted, file: str, *, is_redacted: bool) -> Job:
    """Return the job of a bundled run.

    Raises:
        RunnerError: it is not installed, or its file is missing or another one.
    """
    is_file = any(recorded.setting == JOB_FILE for recorded in started.inputs)
    if not file and is_redacted and is_file:
        raise UsageError(
            f"{started.job} is a job of a Python file: name it with --job FILE.py"
        )
    if not file:
        return job_of(started, may_differ=False)
    job = load_job(file)
    if job.name != started.job:
        raise UsageError(
            f"{file} has the job {job.name}, and the bundle is of {started.job}: name "
            "its file."
        )
    return job


def _rebuilt(folder: Path, number: int, job: Job) -> RebuildResult:
    with open_reader(folder / LOG) as reader:
        recorded = chosen(run_started(reader).run_id, scorings(reader), number)
        settings = moved(fitting(job, json.loads(recorded.settings)), folder)
        inputs = input_hashes(scoring_inputs(job, settings))
        if changed := changed_settings(recorded.inputs, inputs):
            return RebuildResult(changed=changed)
        scoring = replayed(job, reader, settings, inputs, through_seq=recorded.seq)
    (folder / REBUILT).write_bytes(scoring.content)
    problems = (
        f"{certificate.name}: {problem}"
        for path in certificates_in(folder)
        for certificate in (checked_certificate(path, is_bundled=True),)
        for problem in certificate.problems
    )
    return RebuildResult(certificates=tuple(problems))


def _evaluated(folder: Path, number: int, job: Job, frame: bytes) -> RebuildResult:
    """Compute the metrics of a redacted bundle from its frame."""
    scorecard = json.loads((folder / scorecard_of(number)).read_bytes())
    recomputed = recomputed_scorecard(scorecard, metrics_of_frame(job, frame))
    (folder / REBUILT).write_bytes(recomputed.content)
    return RebuildResult(
        metrics=recomputed.metrics,
        different=recomputed.different,
        certificates=tuple(wrong_certificates(folder)),
    )


def changed_settings(then: Sequence[Input], now: Sequence[Input]) -> tuple[str, ...]:
    """Return settings whose files differ between the two."""
    before, after = hashes_by_setting(then), hashes_by_setting(now)
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name) != after.get(name))


LATE: Final = (
    "The time limit was reached before the rest was checked: raise it "
    "with --time-limit SECONDS if you trust the file's source."
)

_STEPS: Final = 100_000
"""Steps of SQLite's virtual machine between two time checks: about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """Result of a check of a bundle."""

    manifest: Manifest | None  #: None: unreadable
    log: VerifyReport | None  #: None: not reached
    is_rebuilt: bool  #: the recomputed scorecard is equal, byte for byte
    differs: tuple[str, ...]  #: changed versions, if recomputed
    redaction: RedactionReport | None = None  #: of a redacted bundle
    faults: tuple[LogFault, ...]

    @property
    def is_sound(self) -> bool:
        """Whether there are no faults."""
        return not self.faults


def check(
    path: Path,
    progress: Callable[[str], None],
    within: Path | None = None,
    *,
    job: str = "",
    is_late: Callable[[], bool] = lambda: False,
    use: Callable[[Path, Manifest], None] = lambda _folder, _manifest: None,
) -> BundleReport:
    """Unpack a bundle into a temporary folder, and recompute its scorecard.

    Args:
        path: the file; any file may be given.
        progress: receives one-line progress messages.
        within: parent of the temporary folder; None: the system's default.
        job: the Python file of the job; "": the one that the log names.
        is_late: whether the time limit has passed.
        use: called with the folder of a sound bundle, which has the log and the
            recomputed scorecard, before it is deleted.

    Raises:
        RunnerError: it is of a later siftlog, *job* is not its job, there is no disk
            space to unpack it, or the time limit has passed.
    """

    def report_progress(line: str) -> None:
        if is_late():
            raise RunnerError(LATE)
        progress(line)

    run = _Check(
        path,
        report_progress,
        within=within or Path(gettempdir()),
        job=job,
        is_late=is_late,
        use=use,
    )
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
        redaction=run.redaction,
        faults=tuple(run.faults),
    )


class _Check:
    """The steps of a check, and their results so far."""

    def __init__(
        self,
        path: Path,
        progress: Callable[[str], None],
        *,
        within: Path,
        job: str,
        is_late: Callable[[], bool],
        use: Callable[[Path, Manifest], None],
    ) -> None:
        self._path = path
        self._is_late = is_late
        self._use = use
        self._progress = progress
        self._within = within
        self._job = job
        self.manifest: Manifest | None = None
        self.log: VerifyReport | None = None
        self.is_sealed = self.is_rebuilt = False
        self.differs: tuple[str, ...] = ()
        self.redaction: RedactionReport | None = None
        self.faults: list[LogFault] = []

    def all(self) -> None:
        """Run all steps, as long as the next one is possible."""
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
            if not self.faults:
                self.faults += self._of_labels(folder / LABELS)
            if self.is_sealed and not self.faults:
                self.faults += (
                    self._of_redacted(manifest, folder)
                    if isinstance(manifest, RedactedManifest)
                    else self._of_scorecard(manifest, folder)
                )
            if self.is_sealed and not self.faults:
                self._use(folder, manifest)

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
        """Check the chain, and that the log is the one in the manifest."""
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
                        message="is not the last one named in bundle.json",
                    )
                digests = {
                    scoring.number: scoring.digest for scoring in scorings(reader)
                }
        except StoreError as error:
            problem, _, _ = str(error).partition(": ")  # without advice on runs
            message = problem.removeprefix(f"{path} ")
            yield LogFault(what="file", where=LOG, message=message)
            return
        if digests.get(manifest.scoring) != manifest.digest:
            yield LogFault(
                what="scoring",
                where=f"scoring {manifest.scoring}",
                message="is another one in the log",
            )

    def _of_labels(self, folder: Path) -> Iterator[LogFault]:
        """Check the label logs."""
        try:
            for path in label_logs(folder):
                check_schema(path)
            reports = verify_labels(folder, self._progress)
        except StoreError as error:
            yield LogFault(what="file", where=LABELS, message=str(error))
            return
        for report in reports:
            where = f"{LABELS}/{report.log.name}"
            for problem in report.problems:
                yield LogFault(what="labels", where=where, message=problem)

    def _of_redacted(
        self, manifest: RedactedManifest, folder: Path
    ) -> Iterator[LogFault]:
        """Check what is there instead of texts, and compute the metrics again."""
        self.redaction = RedactionReport(by_frame=has_frame(manifest))
        self._progress("the recorded values are being checked")
        if self.log is not None and self.log.blobs:
            yield LogFault(
                what="blob",
                where=LOG,
                message="holds parts of requests, which a redacted bundle never does",
            )
        if self.redaction.by_frame:
            yield from self._of_frame(manifest, folder, self.redaction)
        yield from checked(folder, manifest, self.redaction)
        self.is_rebuilt = (
            self.redaction.by_frame
            and self.redaction.recomputed == self.redaction.metrics
        )

    def _of_frame(
        self, manifest: RedactedManifest, folder: Path, redaction: RedactionReport
    ) -> Iterator[LogFault]:
        then = manifest.environment
        self.differs = differences(then, environment(then.packages))
        rebuilt = rebuild(folder, manifest.scoring, self._job, self._progress)
        if rebuilt.error and self._job:
            raise UsageError(rebuilt.error)
        redaction.unavailable = rebuilt.error
        redaction.recomputed = rebuilt.metrics
        for model, path in rebuilt.different:
            yield LogFault(
                what="values",
                where=f"{member_of(manifest.scoring, FRAME)}, {path} of {model}",
                message="gives another number than the scorecard",
            )
        yield from _wrong_certificates(rebuilt)

    def _of_scorecard(self, manifest: Manifest, folder: Path) -> Iterator[LogFault]:
        """Check the stored scorecard, then the recomputed one."""
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
        rebuilt = rebuild(folder, manifest.scoring, self._job, self._progress)
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
                message=f"cannot be recomputed: {rebuilt.error}",
            )
        if rebuilt.changed or rebuilt.error:
            return
        yield from _wrong_certificates(rebuilt)
        again = (folder / REBUILT).read_bytes()
        self.is_rebuilt = again == stored
        if not self.is_rebuilt:
            yield LogFault(
                what="scorecard",
                where=f"{scorecard_name}, line {_first_difference(stored, again)}",
                message=_unlike(self.differs),
            )


def _wrong_certificates(rebuilt: RebuildResult) -> Iterator[LogFault]:
    for line in rebuilt.certificates:
        where, _, problem = line.partition(": ")
        yield LogFault(
            what="certificate", where=f"{CERTIFICATES}/{where}", message=problem
        )


def _first_difference(stored: bytes, again: bytes) -> int:
    """Return the number of the first line that differs."""
    pairs = zip_longest(stored.split(b"\n"), again.split(b"\n"))
    return next(number for number, (a, b) in enumerate(pairs, 1) if a != b)


def _unlike(differs: tuple[str, ...]) -> str:
    """Explain a scorecard that came out differently."""
    sentence = "came out differently"
    if not differs:
        return (
            f"{sentence}, though all versions are the same: the job's "
            "code has changed, or the run has continued since"
        )
    more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""  # noqa: PLR2004 - a sentence holds three
    return f"{sentence}, where versions differ: {'; '.join(differs[:3])}{more}"


def require_room(needed: int, folder: Path, free: int) -> None:
    """Refuse to start what would fill the disk.

    Raises:
        RunnerError: *needed* bytes are more than are *free*.
    """
    if needed > free:
        raise RunnerError(
            f"Unpacked, the bundle takes {needed / 1e9:,.1f} GB, and {folder} has "
            f"{free / 1e9:,.1f} GB left: name another folder in TMPDIR."
        )
