"""Locates runs on disk: their folders, names and other places.

`runs/<run-id>/` holds everything of a run; `log.db` in it *is* the run; the rest can be
rebuilt or is only diagnostic output.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from store.database import LogReader, is_held, open_reader
from store.errors import AmbiguousRun, CorruptLog, NoSuchRun, NotALog, StoreError
from store.log.integrity import LogEnd, check_absent, compare_end
from store.nearest import did_you_mean
from store.tables import created_us, last_seq, visible_seq
from store.union.source import UnionSource

if TYPE_CHECKING:
    from store.union.merging import RefreshResult


def places_in(file: Path) -> list[str]:
    """Return folders and URLs in the order they were added; none without a file.

    Raises:
        CorruptLog: the file holds something else.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[str])
    except (FileNotFoundError, PermissionError):
        return []  # an inaccessible folder is reported when its log is opened
    except msgspec.DecodeError as error:
        raise CorruptLog(
            f"{file} is no list of places ({error}): delete it, and name them again "
            "with siftlog merge RUN --ship PLACE"
        ) from error


def add_place(file: Path, address: str) -> None:
    """Add another place."""
    addresses = places_in(file)
    if address not in addresses:
        file.parent.mkdir(parents=True, exist_ok=True)
        # whole or not at all: other shards read it, and name the same place
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_bytes(msgspec.json.encode([*addresses, address]))
        draft.replace(file)


def sources_in(
    file: Path, notify: Callable[[str], None] | None = None
) -> list[UnionSource]:
    """Return the logs in all places.

    Args:
        file: the list of them.
        notify: called for each unreadable file, which is skipped.

    Raises:
        PlaceAway: one of them cannot be read.
        CorruptLog: *file* cannot.
    """
    addresses = places_in(file)
    if not addresses:
        return []
    from store.errors import ignore_progress  # noqa: PLC0415
    from store.segments.place import Place  # noqa: PLC0415 - most runs have none,
    from store.segments.source import sources  # noqa: PLC0415 - and status is quick

    return [
        source
        for address in addresses
        for source in sources(Place.of(address), notify or ignore_progress)
    ]


#: Ids become folder names and command lines: no quoting, no path traversal.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
#: A shard's log.
_SHARD = re.compile(r"log\.([0-9]+)-([0-9]+)\.db")
#: The name of the most recently created run.
CERTIFICATES = "certificates"
"""Folder of certificates, in the folder of a run."""

LAST = "last"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of one run or of a shard of it."""

    path: Path
    part: str = ""  #: of a shard: suffix of its file names

    @staticmethod
    def is_valid_id(name: str) -> bool:
        """Return whether a run may have this name."""
        return _ID.fullmatch(name) is not None and name != LAST

    @property
    def run_id(self) -> str:
        """The run's id: the folder's name."""
        return self.path.name

    def shard(self, index: int, count: int) -> RunFolder:
        """Return the paths of shard *index* of *count*, which has its own log."""
        return RunFolder(self.path, f".{index}-{count}")

    @property
    def whole(self) -> RunFolder:
        """The run that a shard is of; itself where it is no shard."""
        return RunFolder(self.path)

    def shards(self) -> tuple[RunFolder, ...]:
        """Return the shards whose logs are in the folder, by their number."""
        shard_ids = {
            (int(name[2]), int(name[1]))
            for path in self.path.glob("log.*.db")
            if (name := _SHARD.fullmatch(path.name)) is not None
        }
        return tuple(self.shard(index, count) for count, index in sorted(shard_ids))

    @property
    def log(self) -> Path:
        """The event log; of a run that is split, the union of its shards' logs."""
        return self.path / f"log{self.part}.db"

    def written_logs(self) -> list[Path]:
        """Return the logs written here, including missing ones with a sidecar.

        For a split run: the logs of its shards, not their union.
        """
        if self.part:
            return [self.log]
        noted = {sidecar.with_suffix(".db") for sidecar in self.path.glob("log*.heads")}
        return sorted(noted | {shard.log for shard in self.shards()}) or [self.log]

    def ends(self) -> list[LogEnd]:
        """Compare the ends of its logs with the acknowledged events.

        Raises:
            EventsLost: a log with acknowledged events cannot be read at all.
            StoreError: a log cannot be read.
        """
        ends = []
        for log in self.written_logs():
            try:
                ends.append(compare_end(log))
            except (NotALog, NoSuchRun):
                if log == self.log:
                    raise
                continue  # a shard that is just being made
        return ends

    def check_ends(self, *, accept_loss: bool) -> list[LogEnd]:
        """Do the same before anything is sent for its open tasks.

        Args:
            accept_loss: continue although acknowledged events are missing.

        Raises:
            EventsLost: they are missing, and that was not accepted.
            StoreError: a log cannot be read.
        """
        ends = self.ends()
        for end in ends:
            if not accept_loss:
                end.refuse_loss()
        return ends

    @property
    def lock(self) -> Path:
        """The lock held by the writer."""
        return self.path / f"log{self.part}.lock"

    @property
    def driver_lock(self) -> Path:
        """The lock held by the process that places the shards of a run."""
        return self.path / "placing.lock"

    @property
    def control(self) -> Path:
        """Commands from other processes; only `store.control` reads and writes it."""
        return self.path / "control.jsonl"

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.path / "run.toml"

    @property
    def diagnostics(self) -> Path:
        """Output of a detached run."""
        return self.path / f"run{self.part}.log"

    @property
    def titles(self) -> Path:
        """Titles of the items, if the job knows any."""
        return self.path / "titles.db"

    @property
    def scores(self) -> Path:
        """A folder for each scoring, by its number."""
        return self.path / "scores"

    @property
    def labels(self) -> Path:
        """The label logs of people who labelled this run's items."""
        return self.path / "labels"

    @property
    def exports(self) -> Path:
        """Files made for other programs."""
        return self.path / "exports"

    @property
    def places(self) -> Path:
        """Other places of the run's logs, as a JSON list of folders and URLs."""
        return self.path / "places.json"

    def refresh(
        self, notify: Callable[[str], None] | None = None
    ) -> RefreshResult | None:
        """Bring what readers see of the run up to date, unless it is being written.

        Projections that a killed process left behind are written, and the union of a
        split run is updated.

        Args:
            notify: called for each unreadable file in another place.

        Raises:
            StoreError: its logs are not of one run, or cannot be read.
        """
        for folder in self.shards() or (self,):
            folder.catch_up()
        shards = [shard.log for shard in self.shards()]
        others = sources_in(self.places, notify)
        if not shards and not others:
            return None
        # most runs are not split, and status is quick
        from store.union.merging import refresh  # noqa: PLC0415

        return refresh(self.log, shards, others)

    def has_other_logs(self) -> bool:
        """Return whether its log is the union of others."""
        return bool(self.shards()) or self.places.exists()

    def catch_up(self) -> None:
        """Write the projections that a killed process left behind."""
        try:
            if is_held(self.lock):
                return
            with self.open_reader() as reader:
                is_behind = visible_seq(reader) < last_seq(reader)
        except (StoreError, OSError):
            return  # its next reader reports the error
        if is_behind:
            # only after a kill, and status is quick
            from store.log.opening import catch_up  # noqa: PLC0415

            catch_up(self.log)

    def open_reader(self) -> LogReader:
        """Open a read-only connection to its log.

        Raises:
            StoreError: it does not exist, or it cannot be read.
        """
        return open_reader(self.log)

    def is_alive(self) -> bool:
        """Return whether a process of this machine works on it.

        The process that places its shards counts, wherever these write.
        """
        is_driven = not self.part and is_held(self.driver_lock)
        return is_driven or self.is_written()

    def is_written(self) -> bool:
        """Return whether a process of this machine writes the log or one of a shard."""
        shards = () if self.part else self.shards()
        # a holder of the union's lock merges or scores, and makes no calls
        return any(is_held(folder.lock) for folder in shards or (self,))


def certificates_in(run: Path) -> list[Path]:
    """The certificates in the folder of a run, in the order in which they were made."""
    paths = (run / CERTIFICATES).glob("[0-9]*/certificate.json")
    return sorted(paths, key=lambda path: (len(path.parent.name), path.parent.name))


def list_runs(runs_dir: Path) -> list[RunFolder]:
    """The runs in a folder, by name; none where it is missing, or may not be read.

    Hidden folders are drafts, or runs that are being deleted.
    """
    try:
        paths = sorted(runs_dir.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    visible = (RunFolder(path) for path in paths if not path.name.startswith("."))
    return [folder for folder in visible if _holds_log(folder)]


def _holds_log(folder: RunFolder) -> bool:
    """Return whether it holds a log; an inaccessible folder counts as empty."""
    try:
        return folder.log.is_file() or bool(folder.shards()) or folder.places.is_file()
    except PermissionError:
        return False


def resolve(runs_dir: Path, name: str) -> RunFolder:
    """Find a run by its id, a prefix of the id, a folder, or `last`.

    The union of a split run is updated.

    Raises:
        NoSuchRun: no run has the name.
        AmbiguousRun: several runs have the prefix.
        NotALog: the folder exists but holds no run.
    """
    folder = find_run(runs_dir, name)
    folder.refresh()
    return folder


def find_run(runs_dir: Path, name: str) -> RunFolder:
    """Do the same without reading its log, which may be damaged."""
    runs = list_runs(runs_dir)
    if name == LAST:
        return _latest(runs, runs_dir)
    path = Path(name)
    for folder in (RunFolder(runs_dir / name), RunFolder(path.absolute())):
        if _holds_log(folder):
            return folder
    beginning = [folder for folder in runs if name and folder.run_id.startswith(name)]
    if len(beginning) == 1:
        return beginning[0]
    if beginning:
        raise AmbiguousRun(
            f"{name!r} is a prefix of {len(beginning)} runs, such as "
            f"{beginning[0].run_id} and {beginning[1].run_id}: use a "
            "longer one"
        )
    for folder in (RunFolder(runs_dir / name), RunFolder(path.absolute())):
        check_absent(folder.log)
    if path.is_dir() or (runs_dir / name).is_dir():
        raise NotALog(
            f"the folder {name!r} holds no run (no log.db in it): list the runs with "
            "'siftlog runs'"
        )
    raise NoSuchRun(
        f"no run in {runs_dir} has the id or prefix {name!r}: "
        + did_you_mean(
            name, [folder.run_id for folder in runs], "list runs with 'siftlog runs'"
        )
    )


def _latest(runs: list[RunFolder], runs_dir: Path) -> RunFolder:
    """Return the run with the newest log; skip unreadable folders."""
    dated_runs: list[tuple[int, str, RunFolder]] = []
    for folder in runs:
        try:
            if not folder.log.exists():
                folder.refresh()
            with open_reader(folder.log) as reader:
                dated_runs.append((created_us(reader), folder.run_id, folder))
        except StoreError:
            continue
    if not dated_runs:
        raise NoSuchRun(
            f"there is no run in {runs_dir} yet: start one with 'siftlog run'"
        )
    return max(dated_runs)[2]
