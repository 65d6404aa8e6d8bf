"""Bundles that were changed by somebody who knows how they are made."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from runner.bundle import archive
from runner.bundle.manifest import LOG, NAME, BundleMember, Manifest, decoded, encoded

Members = dict[str, bytes]


def contents(path: Path) -> Members:
    """Every member of a bundle."""
    with ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def manifest_of(members: Members) -> Manifest:
    manifest = decoded(members[NAME])
    assert isinstance(manifest, Manifest)
    return manifest


def told(members: Members, **changed: object) -> None:
    """Have the manifest tell the hashes of what is there, and what else is given."""
    listed = tuple(
        BundleMember(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in sorted(members.items())
        if name != NAME
    )
    manifest = replace(manifest_of(members), members=listed, **changed)
    members[NAME] = encoded(manifest)


def packed(path: Path, members: Members) -> Path:
    """Write and seal them."""
    archive.write(
        path,
        ((name, len(data), iter((data,))) for name, data in members.items()),
        method=ZIP_DEFLATED,
    )
    return path


def forged(source: Path, target: Path, change: Callable[[Members], None]) -> Path:
    """The bundle *source*, changed, with hashes and seal that are right again."""
    members = contents(source)
    change(members)
    told(members)
    return packed(target, members)


def log_changed(folder: Path, *statements: str) -> Callable[[Members], None]:
    """Runs *statements* on the log, whose triggers stop nobody who drops them."""

    def change(members: Members) -> None:
        path = folder / "forged.db"
        path.write_bytes(members[LOG])
        with closing(sqlite3.connect(path)) as log, log:
            for (trigger,) in log.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall():
                log.execute(f"DROP TRIGGER {trigger}")
            for statement in statements:
                log.execute(statement)
        members[LOG] = path.read_bytes()
        path.unlink()

    return change
