"""The shipped command, run inside the test's own process: one import for all sets."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from jobs.screening.inputs import SAMPLE
from runner.cli.main import exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def command(*words: object) -> Done:
    """Run one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code([str(word) for word in words])
    return Done(code=code, out=out.getvalue(), err=err.getvalue())


def prepare(*words: object) -> Done:
    """`siftlog prepare screening`, which must go well."""
    done = command("prepare", "screening", *words)
    assert done.code == 0, done.err
    return done


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file's rows."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


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


def write_csv(path: Path, columns: Sequence[str], lines: Iterable[object]) -> Path:
    """A CSV file of *lines*: sequences of cells, or mappings by column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for line in lines:
            writer.writerow(
                [line.get(name, "") for name in columns]
                if isinstance(line, Mapping)
                else line
            )
    return path
