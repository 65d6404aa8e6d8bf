"""Aliases that a reader of one real paper accepted, for tests on real data.

The names belong to the real data, so only their digests are here; the names
themselves are read from its files.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from tests.jobs.property_extraction.real_predictions import FREE

ALIASES: Mapping[str, tuple[str, ...]] = {
    "8c9778ec381e": ("74db93bb9e29",),
    "1a70c3e37fc3": ("8716ddf0625d",),
    "3c23456bcf32": ("7c6d92565b81",),
    "29a2bba4ab88": ("9d436c7ef779",),
    "139ebbd46866": ("c4d3ed03d410",),
    "312c7383822f": ("c4d3ed03d410",),
    "df43359a9b8d": ("daaec1835d99",),
    "13f214bcca29": ("63066d75f960",),
    "2d9172abf064": ("63066d75f960",),
    "8af7e0be482a": ("20b2de1e975b", "62211156df5c"),
    "764a092ca00a": ("c92c7728f054", "46b7e1482c97"),
    "fa9cbffa6dfe": ("c92c7728f054", "46b7e1482c97"),
    "1f64482ba9e2": ("e2e3e8ae9e42", "0dadcb318c92"),
    "a00ce6c1e0c7": ("9355d96a7ca5", "7940d186d841"),
    "406a9f645a68": ("9355d96a7ca5", "7940d186d841"),
    "a34b559802b4": ("224fed566d37", "b5d430bfd1ee"),
    "caccb7124657": ("224fed566d37", "b5d430bfd1ee"),
    "649ae7aa081a": ("db299464fd24", "d04bae155aa1"),
    "663af81d7af5": ("4a28ca777d16", "94b82450cbc3"),
}
"""Each predicted name with the names of the truth that it covers: the first one is the
single target, and all of them are the target set."""


def digest(name: str) -> str:
    """What stands here for a name."""
    return sha256(name.encode()).hexdigest()[:12]


def reviewed_aliases(folder: Path) -> dict[str, tuple[str, ...]]:
    """The aliases by their names, from the folder of the real data."""
    cells = (cell for name in (FREE, "gt.csv") for cell in _cells(folder / name))
    names = {digest(cell): cell for cell in cells}
    return {
        names[name]: tuple(names[target] for target in targets)
        for name, targets in ALIASES.items()
    }


def _cells(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            yield from row
