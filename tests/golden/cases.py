"""What is taken: commands in a folder of their own, one after another."""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JOBS = (
    "evidence-retrieval",
    "paper-investigation",
    "property-extraction",
    "review-benchmark",
    "screening",
)
SAMPLE = "@sample/"
LINK = "@link:"
_TITLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command, as it is typed behind `siftlog`."""

    line: str
    label: str = ""  #: its name, where the line is no good one
    stdin: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0  #: seconds on the frozen clock
    keys: str | None = None  #: of the monitor, with blanks between; None: no screen
    is_compared: bool = True  #: False: only the files that it writes are compared

    @property
    def title(self) -> str:
        """A short form that may be part of a name."""
        words = self.label or " ".join(self.line.split())[:_TITLE].strip()
        return words.replace("/", "|") or "(nothing)"


def titled(steps: Iterable[Step]) -> Iterator[tuple[Step, str]]:
    """Steps with names that are unique among them."""
    count: Counter[str] = Counter()
    for step in steps:
        count[step.title] += 1
        n = count[step.title]
        yield step, step.title if n == 1 else f"{step.title} ({n})"


def steps(*lines: str | Step) -> tuple[Step, ...]:
    """Commands by their lines."""
    return tuple(Step(line=line) if isinstance(line, str) else line for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Commands that share a folder, and what is compared besides their outputs."""

    name: str
    steps: Sequence[Step]
    #: relative path -> content, or `@sample/JOB/PATH`: a copy from a shipped sample,
    #: or `@link:PATH`: a link
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    collect: Sequence[str] = ()  #: patterns of files that the commands write
    leave_out: Sequence[str] = ()  #: patterns of those among them that are not compared

    def lay_out(self, work: Path, sample: Callable[[str], Path]) -> None:
        """Make the folder of this case with its files."""
        folder = work / "cases" / self.name
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                target.write_bytes(content)
            elif content.startswith(LINK):
                target.symlink_to(content.removeprefix(LINK))
            elif content.startswith(SAMPLE):
                job, _, path = content.removeprefix(SAMPLE).partition("/")
                source = sample(job) / path
                (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
            else:
                target.write_text(content, "utf-8")

    def step_fields(self) -> list[dict[str, Any]]:
        """The commands as plain data, for the worker."""
        return [
            {
                "argv": shlex.split(step.line),
                "stdin": step.stdin,
                "variables": dict(step.variables),
                "after_s": step.after_s,
                "keys": step.keys,
            }
            for step in self.steps
        ]
