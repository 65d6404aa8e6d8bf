"""Makes all outputs of the product anew: runs the cases, then reads what they left.

An output is a text with a name, such as `samples/screening/03 scores s1`: what one
command printed with its exit code, or the content of a file that it wrote. Normalised
here, because they cannot be fixed from outside:

- the folders of the execution and of the tree, replaced by `<work>` and `<tree>`:
  messages quote absolute paths;
- the frames of a traceback: they name files and lines of the code;
- binary files are read by content: tables of Parquet and SQLite as text, a PNG as its
  size (its SVG twin is compared in full), archives as the names of their members.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.golden.cases import Case, titled
from tests.golden.runs import put_inputs
from tests.golden.samples import realdata_folder

WORKER = Path(__file__).with_name("worker.py")
LENGTH = 40
"""Characters of the path of every working folder: some lines are wrapped by width."""
_PASSED = ("PATH", "LANG", "TMPDIR", "PYTHONHASHSEED", "SIFTLOG_REALDATA")
_FRAMES = re.compile(r"(Traceback \(most recent call last\):\n)(?: .*\n)+")
_AGE = re.compile(r"(computed )\d+( s ago) *")
"""The age of a result on a screen, and the blanks up to the frame."""
_TEXT = "$ siftlog {line}\n{out}--- stderr\n{err}--- exit {code}"


class TakingFailed(Exception):
    """The outputs could not be made: what the worker printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A checkout of the product, with its virtual environment."""

    root: Path

    @property
    def python(self) -> Path:
        """Its interpreter; this one's where it has no environment of its own."""
        own = self.root / ".venv" / "bin" / "python"
        return own if own.exists() else Path(sys.executable)

    def sample(self, job: str) -> Path:
        """The folder with the sample that ships with a job."""
        return self.root / "jobs" / job.replace("-", "_") / "sample"


def take(tree: Tree, cases: Iterable[Case], *, width: int = 3) -> dict[str, str]:
    """Make the outputs of *cases* with the code of *tree*.

    Raises:
        TakingFailed: the worker did not get to its end.
    """
    with tempfile.TemporaryDirectory(prefix="siftlog-golden-") as temporary:
        work = _padded(Path(temporary))
        listed = list(cases)
        put_inputs()
        for case in listed:
            case.lay_out(work, tree.sample)
        _run(tree, listed, work, width)
        outputs: dict[str, str] = {}
        for case in listed:
            outputs.update(_collected(case, work))
        if os.environ.get("SIFTLOG_GOLDEN_KEEP"):
            shutil.copytree(work, os.environ["SIFTLOG_GOLDEN_KEEP"])
    places = {str(work): "<work>", str(tree.root): "<tree>"}
    if data := realdata_folder(tree.root):
        places = {str(data): "<realdata>"} | places
    return {name: _normal(text, places) for name, text in sorted(outputs.items())}


def _padded(folder: Path) -> Path:
    work = folder / ("w" * max(1, LENGTH - len(str(folder)) - 1))
    work.mkdir()
    return work


def _run(tree: Tree, cases: Iterable[Case], work: Path, width: int) -> None:
    home = work / "home"
    home.mkdir()
    variables = {name: os.environ[name] for name in _PASSED if name in os.environ}
    variables |= {
        "COLUMNS": "80",
        "LINES": "24",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(home),
        "LOGNAME": "somebody",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # no network at import
        "MPLCONFIGDIR": str(home / "matplotlib"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "SOURCE_DATE_EPOCH": "1772359200",
        "PYTHONSAFEPATH": "1",
    }
    order = [{"folder": case.name, "steps": case.step_fields()} for case in cases]
    tasks = work / "tasks.json"
    tasks.write_text(json.dumps({"cases": order, "work": str(work), "width": width}))
    done = subprocess.run(
        [tree.python, WORKER, tasks],
        env=variables,
        cwd=home,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode or not (work / "took.json").exists():
        raise TakingFailed(done.stdout)
    if os.environ.get("SIFTLOG_GOLDEN_TIMES"):
        print(done.stdout, end="", file=sys.stderr)
        for cpu, wall, name in json.loads((work / "took.json").read_text())[:40]:
            print(f"{cpu:6.2f} s CPU {wall:6.2f} s  {name}", file=sys.stderr)


def _collected(case: Case, work: Path) -> Iterator[tuple[str, str]]:
    taken = work / "taken" / case.name
    for number, (step, title) in enumerate(titled(case.steps), 1):
        texts = {
            kind: (taken / f"{number:02}.{kind}").read_text("utf-8", "backslashreplace")
            for kind in ("out", "err", "code")
        }
        if step.is_compared:
            yield f"{case.name}/{title}", _TEXT.format(line=step.line, **texts)
    folder = work / "cases" / case.name
    seen = set()
    for pattern in case.collect:
        for path in sorted(folder.glob(pattern)):
            name = path.relative_to(folder).as_posix()
            is_left_out = any(
                fnmatch.fnmatchcase(name, each) for each in case.leave_out
            )
            if path.is_file() and name not in seen and not is_left_out:
                seen.add(name)
                yield f"{case.name}/files/{name}", content(path)


def _normal(text: str, places: Mapping[str, str]) -> str:
    for path, word in places.items():
        text = text.replace(path, word)
    return _AGE.sub(r"\1N\2 ", _FRAMES.sub(r"\1", text))


# Files as texts


def content(path: Path) -> str:
    """A file's content as text that can be compared and shown."""
    data = path.read_bytes()
    if data.startswith(b"\x89PNG"):
        return "PNG {}x{}\n".format(*struct.unpack(">II", data[16:24]))
    if data.startswith(b"SQLite format 3"):
        return _of_database(path)
    if data.startswith(b"PAR1"):
        return _of_parquet(path)
    if data.startswith(b"PK\x03\x04"):
        return "".join(f"{name}\n" for name in sorted(zipfile.ZipFile(path).namelist()))
    return data.decode("utf-8", "backslashreplace")


def _of_database(path: Path) -> str:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as conn:
        conn.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        return "".join(f"{line}\n" for line in conn.iterdump())


def _of_parquet(path: Path) -> str:
    import pyarrow.parquet  # noqa: PLC0415 - slow to import

    table = pyarrow.parquet.read_table(path)
    rows: list[Mapping[str, object]] = table.to_pylist()
    fields = "".join(f"{field.name}: {field.type}\n" for field in table.schema)
    return fields + "".join(f"{json.dumps(row, default=str)}\n" for row in rows)
