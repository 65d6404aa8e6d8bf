"""Whether a bundle is what it says: `siftlog verify BUNDLE`.

Nothing is believed that can be computed. The bytes are those that were sealed, members
those of the manifest, events those that were committed, inputs those that were scored;
and the scorecard comes out again, byte for byte, with no network to ask.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final
from zipfile import ZipFile

from runner.bundle import archive, unpacking
from runner.bundle.environment import differences, environment
from runner.bundle.manifest import (
    INPUTS,
    LOG,
    NAME,
    Manifest,
    decoded,
    encoded,
    scorecard_of,
)
from runner.bundle.rebuilding import REBUILT, rebuild
from runner.bundle.unpacking import Refused
from runner.errors import RunnerError
from store.database import open_reader
from store.errors import StoreError
from store.read.status import run_started, scorings
from store.tables import head
from store.verify import LogFault, VerifyReport, check_schema, verify

LATE: Final = (
    "The time for the check is over, and nothing is known of the rest: give it more "
    "with --time-limit SECONDS, if you trust where the file is from."
)

_STEPS: Final = 100_000
"""Of SQLite's virtual machine between two looks at the clock: about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
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
) -> Checked:
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

    def going_on(line: str) -> None:
        if is_late():
            raise RunnerError(LATE)
        progress(line)

    run = _Check(path, going_on, within or Path(gettempdir()), is_late)
    try:
        run.all()
    except Refused as refused:
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
    return Checked(
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
            raise Refused("its end", "is not that of a bundle, or of a whole one")
        self.is_sealed = archive.is_sealed(self._path)
        with (
            unpacking.opened(self._path) as opened,
            TemporaryDirectory(prefix="siftlog-", dir=self._within) as name,
        ):
            folder = Path(name)
            self.manifest = manifest = self._read(opened)
            unpacked = sum(info.file_size for info in opened.infolist())
            require_room(unpacked, self._within, shutil.disk_usage(folder).free)
            self.faults += unpacking.unpack(opened, manifest, folder, self._progress)
            if (folder / LOG).exists():
                self.faults += self._of_log(manifest, folder / LOG)
            if self.is_sealed and not self.faults:
                self.faults += self._of_scorecard(manifest, folder)

    def _read(self, opened: ZipFile) -> Manifest:
        content = unpacking.manifest_bytes(opened)
        try:
            manifest = decoded(content)
        except ValueError as error:
            raise Refused(NAME, f"cannot be read ({error})") from error
        if isinstance(manifest, int):
            raise RunnerError(
                f"{self._path} is a bundle of form {manifest}, which a later siftlog "
                "has made: upgrade siftlog."
            )
        if encoded(manifest) != content:
            raise Refused(NAME, "is not written as siftlog writes it")
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
                said = (manifest.run, manifest.job, manifest.events, manifest.head)
                first = run_started(reader)
                if said != (first.run_id, first.job, self.log.events, head(reader)):
                    yield LogFault(
                        what="chain",
                        where=f"event {self.log.events}",
                        message="is not the last one that bundle.json tells of",
                    )
                digests = {each.number: each.digest for each in scorings(reader)}
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
        where = scorecard_of(manifest.scoring)
        stored = (folder / where).read_bytes()
        if hashlib.sha256(stored).hexdigest() != manifest.digest:
            yield LogFault(
                what="scorecard",
                where=where,
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
                where=where,
                message=f"cannot be made again: {rebuilt.error}",
            )
        if rebuilt.changed or rebuilt.error:
            return
        again = (folder / REBUILT).read_bytes()
        self.is_rebuilt = again == stored
        if not self.is_rebuilt:
            yield LogFault(
                what="scorecard",
                where=f"{where}, line {_first_difference(stored, again)}",
                message=_unlike(self.differs),
            )


def _first_difference(stored: bytes, again: bytes) -> int:
    """Number of the first line that is another one."""
    pairs = zip_longest(stored.split(b"\n"), again.split(b"\n"))
    return next(number for number, (a, b) in enumerate(pairs, 1) if a != b)


def _unlike(differs: tuple[str, ...]) -> str:
    """What to say of a scorecard that came out otherwise."""
    said = "came out otherwise"
    if not differs:
        return (
            f"{said}, though all versions are the same: the job's code has changed, or "
            "the run has gone on since"
        )
    more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""  # noqa: PLR2004 - a sentence holds three
    return f"{said}, where versions differ: {'; '.join(differs[:3])}{more}"


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
