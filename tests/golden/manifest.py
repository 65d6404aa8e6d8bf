"""What was taken before: a list of names, sizes and hashes, and the texts behind it.

`manifest.txt` has one line an output, sorted by name; `outputs.tar.xz` has their texts,
so that a difference can be shown. An output without a text in the archive, such as what
real data gave, is compared by its hash alone.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

HERE = Path(__file__).parent
MANIFEST = HERE / "manifest.txt"
ARCHIVE = HERE / "outputs.tar.xz"
HASH_ONLY = "realdata/"
"""Outputs whose text may not be part of the repository."""
_LINES = 40
_WIDTH = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One output as it was taken."""

    sha256: str
    size: int  #: bytes of UTF-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An output that is not as it was."""

    name: str
    kind: str  #: "changed", "missing" or "new"


def entry_of(text: str) -> Entry:
    """The entry of an output."""
    data = text.encode("utf-8", "surrogateescape")
    return Entry(sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def read_manifest(path: Path = MANIFEST) -> dict[str, Entry]:
    """Entries by name; none where nothing was taken yet."""
    if not path.exists():
        return {}
    entries = {}
    for line in path.read_text("utf-8").splitlines():
        sha256, size, name = line.split(" ", 2)
        entries[name] = Entry(sha256=sha256, size=int(size))
    return entries


def write_manifest(entries: Mapping[str, Entry], path: Path = MANIFEST) -> None:
    """Write entries, one a line, sorted by name."""
    lines = (f"{e.sha256} {e.size} {name}\n" for name, e in sorted(entries.items()))
    path.write_text("".join(lines), "utf-8")


def read_texts(path: Path = ARCHIVE) -> dict[str, str]:
    """Texts by name."""
    if not path.exists():
        return {}
    with tarfile.open(path) as archive:
        return {
            member.name: file.read().decode("utf-8", "surrogateescape")
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }


def write_texts(texts: Mapping[str, str], path: Path = ARCHIVE) -> None:
    """Write the texts that may be stored; equal texts give an equal file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with tarfile.open(draft, "w:xz", preset=6) as archive:
        for name, text in sorted(texts.items(), key=_by_kind):
            if not name.startswith(HASH_ONLY):
                data = text.encode("utf-8", "surrogateescape")
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    draft.replace(path)


def _by_kind(item: tuple[str, str]) -> tuple[str, str]:
    """Files of the same name after one another: they compress together."""
    name = item[0]
    return name.rpartition("/")[2], name


def is_wanted(name: str, patterns: Iterable[str]) -> bool:
    """Whether an output is among those that were named; all are without a pattern."""
    listed = list(patterns)
    return not listed or any(fnmatch.fnmatchcase(name, each) for each in listed)


def differences(
    before: Mapping[str, Entry], after: Mapping[str, str]
) -> Iterator[Difference]:
    """Outputs that are not as they were, sorted by name."""
    for name in sorted({*before, *after}):
        if name not in after:
            yield Difference(name=name, kind="missing")
        elif name not in before:
            yield Difference(name=name, kind="new")
        elif entry_of(after[name]) != before[name]:
            yield Difference(name=name, kind="changed")


def shown(name: str, before: str | None, after: str | None) -> str:
    """A short unified diff of one output."""
    if before is None:
        return f"--- {name}: its text is not stored; compare two trees with --against\n"
    lines = difflib.unified_diff(
        before.splitlines(),
        (after or "").splitlines(),
        f"before: {name}",
        f"after: {name}",
        lineterm="",
        n=1,
    )
    return "".join(f"{line[:_WIDTH]}\n" for line in islice(lines, _LINES))
