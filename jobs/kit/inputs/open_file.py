"""Reads pieces of an input file by their offsets; the file stays open in between.

A run builds a request from its paper's line, and so reads from the same file once a
call: opening it each time took 6 % of a call's CPU.
"""

from __future__ import annotations

import os
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any

from jobs.kit.inputs.files import opened, unreadable
from jobs.kit.inputs.rows import object_of
from runner.json_entries import BOM


class OpenFile:
    """A file that is read by offset; closed with the last reference to this object.

    It is opened at the first read. From then on a file that is replaced at the same
    path does not matter, because the old one is still read; one that is changed in
    place is read as it is now. Reads share no position, so threads may read at once.

    A packed file (`.gz`) has no offsets of its own: it is unpacked from its beginning
    at every read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_packed = path.suffix == ".gz"

    def read(self, start: int, size: int) -> bytes:
        """Return *size* bytes from offset *start*, fewer at the end of the file.

        Raises:
            DatasetError: the file is not to be read.
        """
        if self._is_packed:
            with opened(self._path) as file:
                file.seek(start)
                return file.read(size)
        try:
            return os.pread(self._descriptor, size, start)
        except OSError as error:
            raise unreadable(self._path, error) from error

    def object_at(self, start: int, size: int) -> dict[str, Any]:
        """Read the object of a `JsonEntry` again; replace bytes that are not UTF-8.

        Raises:
            DatasetError: the file is not to be read, or was changed in place.
        """
        text = self.read(start, size).removeprefix(BOM).decode(errors="replace")
        return object_of(text, self._path.name)

    @cached_property
    def _descriptor(self) -> int:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, descriptor)
        return descriptor
