"""Sets of screening that tests build with the shipped command."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from jobs.screening.inputs import SAMPLE
from tests.commands import Done, command
from tests.csv_files import rows, write_csv


def prepare(*words: object) -> Done:
    """`siftlog prepare screening`, which must go well."""
    done = command("prepare", "screening", *words)
    assert done.code == 0, done.err
    return done


def some_records(folder: Path, keep: Callable[[int, dict[str, str]], bool]) -> Path:
    """A copy of the sample's set in *folder*, with some of its records only.

    Args:
        folder: where `set` is made.
        keep: gets the place of a record in the set, and its row.
    """
    made, name = folder / "set", "validation_set.csv"
    shutil.copytree(SAMPLE / "set", made)
    every = rows(made / name)
    kept = [row for place, row in enumerate(every) if keep(place, row)]
    write_csv(made / name, tuple(every[0]), kept)
    manifest = json.loads((made / "manifest.json").read_text())
    digest = hashlib.sha256((made / name).read_bytes()).hexdigest()
    manifest["files"][name] = digest
    (made / "manifest.json").write_text(json.dumps(manifest))
    return made
