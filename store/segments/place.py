"""Stores segments: in a folder, or at any fsspec URL.

A place holds files under names with slashes. They are created once and never changed,
so a reader always sees complete files. In a folder a file appears complete or not at
all, and survives a power cut once `put_new` has returned. Object stores guarantee the
same; whether one can refuse to overwrite atomically, or needs a check first, depends on
its package. Either is safe here: a segment's name determines its events, so two writers
of a name write the same events.
"""

from __future__ import annotations

import contextlib
import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from store.errors import PlaceAway, StoreError
from store.filesystem import make_folder, sync_folder

_TMP = ".tmp"

#: Error numbers of file systems without hard links (FAT, some of FUSE).
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def address_of(location: str) -> str:
    """A folder or a URL as a person names it, to be remembered: found from anywhere."""
    return location if "://" in location else str(Path(location).absolute())


class Place(ABC):
    """A store of files that are created once.

    Places with equal addresses are equal, because they hold the same files.
    """

    def __init__(self, address: str) -> None:
        self._full_address = address
        self.address = _without_password(address)  #: as messages show it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self._full_address == other._full_address

    def __hash__(self) -> int:
        return hash(self._full_address)

    @staticmethod
    def of(address: str) -> Place:
        """Return the place at a folder's path or URL, which may not exist yet.

        Raises:
            StoreError: no package for such URLs is installed or known.
        """
        if "://" not in address:
            return _Folder(Path(address))
        url = urlsplit(address)
        if url.scheme not in {"file", "local"}:
            return _Remote(address)
        if url.netloc not in {"", "localhost"}:
            raise StoreError(
                f"{address} names a folder of another machine: write file:///PATH for "
                "one of this, or the folder itself"
            )
        return _Folder(Path(unquote(url.path)))

    @abstractmethod
    def put_new(self, name: str, data: bytes) -> bool:
        """Store *data* under *name*; return False if the file exists, which stays.

        Raises:
            PlaceAway: it cannot be stored now.
        """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return the data under *name*; None if there is none.

        Raises:
            PlaceAway: it cannot be read now.
        """

    @abstractmethod
    def names(self, under: str) -> list[str]:
        """Return all names below *under*, sorted.

        Raises:
            PlaceAway: it cannot be listed now.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Delete *name*; harmless if it does not exist.

        Raises:
            PlaceAway: it cannot be removed now.
        """

    def prove(self) -> None:
        """Check that a file can be written and deleted.

        A listing is no proof: some unreachable places are listed as empty, and read
        access does not imply write access.

        Raises:
            PlaceAway: the check failed.
        """
        name = f"trial-{os.urandom(8).hex()}"
        self.put_new(name, b"")
        self.remove(name)

    def _away(self, error: Exception) -> PlaceAway:
        reason = " ".join(str(error).split()) or type(error).__name__
        return PlaceAway(
            f"{self.address} cannot be used ({reason}): check that it "
            "exists, is writable and has free space"
        )


class _Folder(Place):
    """A folder of this machine, or one that it shares with others."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self._root = root

    def put_new(self, name: str, data: bytes) -> bool:
        path = self._root / name
        # with a unique name: another process may be writing the same file
        token = f"{os.getpid()}-{os.urandom(4).hex()}"
        unfinished = path.with_name(f".{path.name}.{token}{_TMP}")
        with self._translated():
            make_folder(path.parent)
            try:
                with unfinished.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                try:
                    _name(unfinished, path)
                except FileExistsError:
                    return False
            finally:
                unfinished.unlink(missing_ok=True)
            sync_folder(path.parent)
        return True

    def get(self, name: str) -> bytes | None:
        with self._translated():
            try:
                return (self._root / name).read_bytes()
            except FileNotFoundError:
                return None

    def names(self, under: str) -> list[str]:
        with self._translated():
            return sorted(
                str((folder / file).relative_to(self._root))
                for folder, _, files in _walk(self._root / under)
                for file in files
                if not file.endswith(_TMP)
            )

    def remove(self, name: str) -> None:
        with self._translated():
            (self._root / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._away(error) from error


def _walk(root: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for folder, folders, files in os.walk(root, onerror=refuse):
        yield Path(folder), folders, files


def _name(unfinished: Path, path: Path) -> None:
    """Give a finished file its name.

    Raises:
        FileExistsError: the name is taken.
    """
    try:
        os.link(unfinished, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(path) from error
        unfinished.rename(path)


_WITHOUT_FOLDERS: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "obs"}
)
"""Protocols of object stores. Creating an object's folder there would create a bucket
if its name was mistyped, and the data would be lost from sight."""


def _options(protocol: str) -> dict[str, Any]:
    """Options of a protocol's file system.

    s3fs tries five times, and the client that it uses five times each time: a dead
    endpoint took 24.6 s to fail. One of the two is enough.
    """
    if protocol not in {"s3", "s3a"}:
        return {}
    from fsspec.config import conf  # noqa: PLC0415 - as in `_Remote`

    by_hand = conf.get(protocol, {}).get("config_kwargs", {})
    retries = {"total_max_attempts": 1, "mode": "standard"}
    return {"config_kwargs": {"retries": retries, "connect_timeout": 5, **by_hand}}


class _Remote(Place):
    """A place behind fsspec, which is loaded for the first of them."""

    def __init__(self, address: str) -> None:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - takes longer than status

        super().__init__(address)
        try:
            protocol = address.partition("://")[0].lower()
            located: tuple[Any, str] = url_to_fs(address, **_options(protocol))
        except (ImportError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise StoreError(
                f"{self.address} cannot be used ({reason}): install that "
                "package, or name a folder"
            ) from error
        self._files, self._root = located[0], located[1].rstrip("/")
        self._has_folders = protocol not in _WITHOUT_FOLDERS

    def put_new(self, name: str, data: bytes) -> bool:
        with self._translated():
            path = self._path(name)
            try:
                if self._has_folders:
                    self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
                self._files.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
        return True

    def get(self, name: str) -> bytes | None:
        with self._translated():
            try:
                data: bytes = self._files.cat_file(self._path(name))
            except FileNotFoundError:
                return None
        return data

    def names(self, under: str) -> list[str]:
        with self._translated():
            # listings are remembered, and others write here
            self._files.invalidate_cache()
            paths: list[str] = self._files.find(self._path(under))
        return sorted(path[len(self._root) + 1 :] for path in paths)

    def remove(self, name: str) -> None:
        with self._translated(), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # each fsspec file system raises the errors of its own client
            raise self._away(error) from error


def _without_password(address: str) -> str:
    password = urlsplit(address).password
    return address if not password else address.replace(f":{password}@", ":...@", 1)
