"""A folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.errors import UsageError


@contextmanager
def replaced(target: Path, *, force: bool) -> Iterator[Path]:
    """An empty folder beside *target* that takes its place once the body is through.

    Whatever goes wrong inside, *target* is as it was before.

    Args:
        target: where the folder will be.
        force: replace one that is there; it is not merged into.

    Raises:
        UsageError: something is there and may not be replaced, or the place cannot be
            written.
    """
    if target.exists() and not force:
        raise UsageError(
            f"{target} exists already: name another --out, or use --force."
        )
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is no folder: name another --out.")
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        draft.mkdir(parents=True)
        yield draft
        if target.exists():
            target.replace(old)
        draft.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        # stopped between the two moves, by whatever
        if old.exists() and not target.exists():
            old.replace(target)
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
