"""The places, beside a run's own folder, that its logs are carried to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from store.errors import CorruptLog
from store.union.source import Source


def places_in(file: Path) -> list[str]:
    """Folders and URLs, in the order in which they were named; none without a file.

    Raises:
        CorruptLog: the file holds something else.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[str])
    except (FileNotFoundError, PermissionError):
        return []  # a folder that may not be entered is told by who opens its log
    except msgspec.DecodeError as error:
        raise CorruptLog(
            f"{file} is no list of places ({error}): delete it, and name them again "
            "with siftlog merge RUN --ship PLACE"
        ) from error


def add_place(file: Path, address: str) -> None:
    """Look in a further place from now on."""
    known = places_in(file)
    if address not in known:
        file.parent.mkdir(parents=True, exist_ok=True)
        # whole or not at all: other shards read it, and name the same place
        made = file.with_name(f".{file.name}.{os.getpid()}")
        made.write_bytes(msgspec.json.encode([*known, address]))
        made.replace(file)


def sources_in(file: Path, tell: Callable[[str], None] | None = None) -> list[Source]:
    """The logs in all of the places.

    Args:
        file: the list of them.
        tell: hears of whatever cannot be read, and is passed over.

    Raises:
        PlaceAway: one of them cannot be read.
        CorruptLog: *file* cannot.
    """
    addresses = places_in(file)
    if not addresses:
        return []
    from store.segments.place import Place  # noqa: PLC0415 - most runs have none,
    from store.segments.source import sources  # noqa: PLC0415 - and status is quick
    from store.verify import silent  # noqa: PLC0415

    return [
        source
        for address in addresses
        for source in sources(Place.of(address), tell or silent)
    ]
