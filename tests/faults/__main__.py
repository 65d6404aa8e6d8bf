"""Plants one fault after the other in the product and runs the tests that should fail.

    python -m tests.faults                         every fault of faults.toml
    python -m tests.faults --only 'money-*' --json
    python -m tests.faults --tree ../other         another checkout of the product
    python -m tests.faults --clean                 the same tests with nothing planted

The exit code is 0 where the tests fail for every fault, else 1. Results are in
`tests/faults/RESULTS.md`.

Faults are planted in a temporary copy of the tree, which goes with the process. A
result is one of

- found: a test fails;
- timeout: the tests do not end;
- survived: the tests pass;
- stale: the snippet is not in the product, or more than once;
- broken: pytest could not run the tests, which says nothing about the fault.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("faults.toml")
PRODUCT = ("store", "runner", "jobs", "tui")
SOURCES = (".py", ".sql")
PASSED = ("found", "timeout")
"""Results that show a fault."""
TIMEOUT_S = 240.0
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "*_cache", "*.tar.xz", "runs")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_FIRST_MTIME = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A mistake that a maintainer could make."""

    name: str
    room: str
    wrong: str  #: what the user would see
    old: str  #: a snippet that is in the product once
    new: str
    tests: tuple[str, ...]  #: paths for pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the tests make of a fault."""

    name: str
    room: str
    result: str
    seconds: float = 0.0
    test: str = ""  #: the first one that fails


def read_faults(table: Path = TABLE) -> list[Fault]:
    """The faults of a table, in its order."""
    rows = tomllib.loads(table.read_text(encoding="utf-8"))["fault"]
    return [Fault(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def sources(tree: Path) -> dict[Path, str]:
    """The text of each source file of the product."""
    return {
        path: path.read_text(encoding="utf-8")
        for folder in PRODUCT
        for path in sorted((tree / folder).rglob("*"))
        if path.suffix in SOURCES
    }


def file_of(fault: Fault, texts: Mapping[Path, str]) -> Path | None:
    """The file that holds a fault's snippet; None unless it is there exactly once."""
    files = [p for p, text in texts.items() for _ in range(text.count(fault.old))]
    return files[0] if len(files) == 1 else None


class ScratchTree:
    """A copy of a checkout, in which faults are planted and tests run."""

    def __init__(self, tree: Path, folder: Path) -> None:
        """Copy *tree* into *folder*."""
        self.root = folder / tree.name
        shutil.copytree(tree, self.root, ignore=_NOT_COPIED)
        for link in (self.root / ".venv", folder / "shared"):
            target = (tree if link.name == ".venv" else tree.parent) / link.name
            if target.exists():
                link.symlink_to(target)
        self.texts = sources(self.root)
        self._mtimes = count(_FIRST_MTIME)

    @contextmanager
    def planted(self, fault: Fault, path: Path) -> Iterator[None]:
        """Replace the snippet in *path* for as long as the block runs."""
        text = self.texts[path]
        self._write(path, text.replace(fault.old, fault.new))
        try:
            yield
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # bytecode counts as current by second and size: no two versions share both
        at = next(self._mtimes)
        os.utime(path, (at, at))

    def test(
        self, paths: Sequence[str], *, timeout_s: float, is_first_enough: bool = True
    ) -> tuple[str, str]:
        """Run tests; the result, and the first one that fails."""
        python = self.root / ".venv" / "bin" / "python"
        command = [
            str(python if python.exists() else sys.executable),
            *("-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"),
            *(("-x",) if is_first_enough else ()),
            "--tb=no",
            *paths,
        ]
        # processes that tests start import this copy too, whatever is installed
        environment = {**os.environ, "PYTHONPATH": str(self.root)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the copy is thrown away
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timeout", ""
        failed = _FAILED.search(output)
        name = failed[1] if failed else ""
        if "Timeout >" in output or "+ Timeout +" in output:
            return "timeout", name
        if process.returncode == 0:
            return "survived", ""
        # 1: tests failed; 2: a module of tests could not be imported
        is_found = process.returncode == 1 or (process.returncode == 2 and failed)
        if is_found:
            return "found", name
        return "broken", output.strip().rpartition("\n")[2]


def try_faults(
    scratch: ScratchTree, faults: Sequence[Fault], timeout_s: float
) -> Iterator[Outcome]:
    """Plant each fault, run its tests, and remove it again."""
    for fault in faults:
        path = file_of(fault, scratch.texts)
        if path is None:
            yield Outcome(name=fault.name, room=fault.room, result="stale")
            continue
        began = time.perf_counter()
        with scratch.planted(fault, path):
            result, test = scratch.test(fault.tests, timeout_s=timeout_s)
        took = round(time.perf_counter() - began, 1)
        yield Outcome(
            name=fault.name, room=fault.room, result=result, seconds=took, test=test
        )


def summary(outcomes: Sequence[Outcome]) -> str:
    """Counts by room and in all."""
    lines = []
    for room in (*dict.fromkeys(outcome.room for outcome in outcomes), "all"):
        of_room = [o for o in outcomes if room in (o.room, "all")]
        results = Counter(outcome.result for outcome in of_room)
        counts = ", ".join(f"{n} {result}" for result, n in results.most_common())
        lines.append(f"{room:8} {len(of_room):4}: {counts}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Read the command line, try the faults, print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="names; repeatable"
    )
    parser.add_argument("--tree", type=Path, default=ROOT, help="code to spoil")
    parser.add_argument("--table", type=Path, default=TABLE, help="other faults")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds")
    parser.add_argument("--json", action="store_true", help="JSON lines")
    parser.add_argument("--clean", action="store_true", help="plant nothing")
    options = parser.parse_args(arguments)
    faults = [
        fault
        for fault in read_faults(options.table)
        if not options.only or any(fnmatchcase(fault.name, g) for g in options.only)
    ]
    with tempfile.TemporaryDirectory(prefix="siftlog-faults-") as folder:
        scratch = ScratchTree(options.tree.resolve(), Path(folder))
        if options.clean:
            paths = list(dict.fromkeys(p for fault in faults for p in fault.tests))
            result, test = scratch.test(
                paths, timeout_s=len(paths) * options.timeout, is_first_enough=False
            )
            print("the tests pass" if result == "survived" else f"{result}: {test}")
            return 0 if result == "survived" else 1
        outcomes = []
        for outcome in try_faults(scratch, faults, options.timeout):
            outcomes.append(outcome)
            line = f"{outcome.result:8} {outcome.seconds:6.1f} s  {outcome.name}"
            text = json.dumps(asdict(outcome)) if options.json else line
            print(text if options.json else f"{text}  {outcome.test}", flush=True)
    print(summary(outcomes), file=sys.stderr if options.json else sys.stdout)
    return 0 if all(outcome.result in PASSED for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
