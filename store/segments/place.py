"""Where segments are kept: a folder, or whatever fsspec has an address for.

A place holds files under names with slashes. They are made once and never changed, so
that who reads one has it all. In a folder a file appears whole or not at all, and
survives a power cut once `put_new` has returned. An object store does the same by its
own nature; whether it can refuse to overwrite in one step, or is asked beforehand,
depends on its package. Nothing depends on that here: a segment's name says which events
of which log it holds, and two who write it write the same events.
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

#: What a file system says that knows no second name of a file (FAT, some of FUSE).
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def address_of(location: str) -> str:
    """A folder or a URL as a person names it, to be remembered: found from anywhere."""
    return location if "://" in location else str(Path(location).absolute())


class Place(ABC):
    """Files that are made once: what is asked of it, wherever it is.

    Two of one address are equal: what was read from one is what the other has.
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
        """The place at a folder's path or at a URL; it need not be there yet.

        Raises:
            StoreError: no package for such URLs is installed, or there is none.
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
        """Keep *data* under *name*; False: there is such a file, which stays.

        Raises:
            PlaceAway: it cannot be kept now.
        """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """What is kept under *name*; None: nothing is.

        Raises:
            PlaceAway: it cannot be read now.
        """

    @abstractmethod
    def names(self, under: str) -> list[str]:
        """All names that begin with *under* and a slash, sorted.

        Raises:
            PlaceAway: it cannot be looked at now.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Keep *name* no longer; harmless where nothing is kept under it.

        Raises:
            PlaceAway: it cannot be removed now.
        """

    def prove(self) -> None:
        """See that it takes a file, and gives it up again.

        A listing does not tell: some places are listed as empty while they cannot be
        reached, and not everybody who may look may write.

        Raises:
            PlaceAway: it does not.
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
        # of its own name: another process may be writing the same file
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
"""Protocols of object stores. Making the folder of an object there would make a bucket
whose name was mistyped, which nobody looks into later."""


def _options(protocol: str) -> dict[str, Any]:
    """What a protocol's file system is opened with.

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
            # each of fsspec's file systems raises what its own client does
            raise self._away(error) from error


def _without_password(address: str) -> str:
    password = urlsplit(address).password
    return address if not password else address.replace(f":{password}@", ":...@", 1)
