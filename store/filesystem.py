"""Makes files that survive a power cut, and recognises network file systems.

SQLite's write-ahead log needs shared memory and reliable locks; between machines there
is neither. Some network file systems refuse such a log, others accept it and damage it
later, so they are recognised by name instead of by a trial. There is no override: paid
answers would be lost, and a local log whose segments are shipped serves the same
purpose.

Concerns folders only; must not depend on a run.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path, PurePosixPath
from typing import Final

_NO_SYNC: Final = {
    errno.EINVAL,
    errno.EBADF,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
}
"""Errors of file systems that cannot sync a folder (shares of CIFS, some of FUSE): the
name of a file is then as safe there as it gets."""


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and sync each name; it may exist."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Write *content* to *path*, whole or not at all, and sync it with its name.

    Several processes may do so at a time; the last one wins.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def identity_of(file: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none."""
    try:
        stat = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_dev, stat.st_ino


MOUNTINFO = Path("/proc/self/mountinfo")
"""The kernel's table of mounts (proc_pid_mountinfo(5)); Linux only."""

NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "davfs"),
        *("lustre", "gpfs", "beegfs", "fhgfs", "panfs", "wekafs", "pvfs2", "orangefs"),
        *("ceph", "glusterfs", "quobyte"),
    )
)
"""File systems that several machines write, by their kernel names. `9p` and `virtiofs`
are not among them: they join a guest to its own host, and are the root of some
sandboxes; whether they can hold a log is found by a trial."""

LOCAL_FUSE = frozenset(
    (
        *("bindfs", "cryfs", "encfs", "exfat-fuse", "ext2fs", "fuse-overlayfs"),
        *("fuse2fs", "fuseext2", "gocryptfs", "mergerfs", "ntfs-3g", "securefs"),
        *("squashfuse", "unionfs", "unionfs-fuse", "zfs-fuse"),
    )
)
"""Programs that serve a disk of this machine through FUSE. Of the others (`fuse.sshfs`,
`fuse.s3fs`, ...) most reach over a network; `fuseblk` is a disk by its name."""

_OCTAL = re.compile(r"\\([0-7]{3})")


def kind_at(folder: PurePosixPath, mountinfo: str) -> str | None:
    """Return the kernel's name of the file system of *folder*.

    Args:
        folder: an absolute path without links in it.
        mountinfo: the table; malformed lines are skipped.

    Returns:
        Such as "ext4" or "fuse.sshfs"; None if the table does not show it.
    """
    kind, depth = None, 0
    for line in mountinfo.split("\n"):  # names may contain other line separators
        mount, _, source = line.partition(" - ")
        mount_fields, kinds = mount.split(" "), source.split(" ")
        if len(mount_fields) < 6 or not kinds[0]:  # noqa: PLR2004 - fields before the options
            continue
        point = PurePosixPath(_OCTAL.sub(_character, mount_fields[4]))
        # a mount hides those before it at the same point
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = kinds[0], len(point.parts)
    return kind


def _character(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 8))


def is_network(kind: str) -> bool:
    """Return whether several machines may write a file system of this *kind*."""
    family, _, program = kind.partition(".")
    if family == "fuse" and program:
        return program not in LOCAL_FUSE
    return kind in NETWORK


def network_problem(folder: Path) -> str | None:
    """Return a sentence on why *folder* cannot hold a log; None if it can."""
    try:
        table = os.fsdecode(MOUNTINFO.read_bytes())
    except OSError:
        return None  # another system, or a sandbox: the trial of a WAL must do
    kind = kind_at(PurePosixPath(folder.resolve()), table)
    if kind is None or not is_network(kind):
        return None
    return (
        f"{folder} is on a network file system ({kind}), where a log "
        "can be damaged while it is written: keep it on a local disk "
        "with --local-dir $SLURM_TMPDIR (or $TMPDIR), and copy it here "
        "with --ship DIR"
    )
