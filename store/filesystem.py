"""Makes files that survive a power cut, and recognises network file systems.

SQLite's write-ahead log needs memory shared by all who have it open, and locks that
hold; between machines there is neither. Some network file systems refuse such a log,
others take it and damage it later, so that they are told by name and not by a trial.
There is no switch to do so all the same: what is lost is answers that were paid for,
and a log on local disk whose segments are shipped serves the same purpose.

Must not hold what depends on a run: this is about folders alone.
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
"""The kernel's table of what is mounted where (proc_pid_mountinfo(5)); Linux has it."""

NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "davfs"),
        *("lustre", "gpfs", "beegfs", "fhgfs", "panfs", "wekafs", "pvfs2", "orangefs"),
        *("ceph", "glusterfs", "quobyte"),
    )
)
"""File systems that several machines write, as the kernel calls them. `9p` and
`virtiofs` are not among them: they join a guest to its own host, and are the root of
some sandboxes; whether they can keep a log, a trial tells."""

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
    """The file system that *folder* lies on, as the kernel calls it.

    Args:
        folder: an absolute path without links in it.
        mountinfo: the table; lines that are none of its kind are passed over.

    Returns:
        Such as "ext4" or "fuse.sshfs"; None where the table does not tell.
    """
    kind, depth = None, 0
    for line in mountinfo.split("\n"):  # names may hold any other end of a line
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
    """Whether several machines may write a file system of this *kind*."""
    family, _, program = kind.partition(".")
    if family == "fuse" and program:
        return program not in LOCAL_FUSE
    return kind in NETWORK


def network_problem(folder: Path) -> str | None:
    """Why no log may be written in *folder*, as a sentence; None where one may."""
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
