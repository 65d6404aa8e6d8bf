"""The shipped command, run inside the test's own process: one import for all sets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

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
