"""What is taken: commands in a folder of their own, one after another.

The plain cases are made here: help texts and lists, and commands that are refused, from
the table `errors.toml`. Others come from samples, recorded runs and spoiled inputs.
"""

from __future__ import annotations

import shlex
import shutil
import tomllib
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


# What every command prints of itself, and what is listed without a run

COMMANDS = (
    "run", "generate", "resume", "fork", "add-stage", "import", "estimate", "prepare",
    "simulate", "score", "scores", "explain", "runs", "status", "tasks", "events",
    "pause", "drain", "cancel", "retry", "commands", "limits", "budget", "export",
    "bundle", "merge", "verify", "cache", "cache list", "cache prune", "prompts",
    "models", "jobs", "doctor", "compare", "diff", "history", "report", "run-all",
    "serve", "watch", "new", "show", "rm", "completion", "sql", "label", "labels",
    "labels list", "labels import", "labels export", "labels agreement",
    "labels adjudicate", "estimate-quality", "screen", "methods", "check", "drift",
    "regress", "disclose", "reconcile",
)  # fmt: skip


def help_cases() -> Iterator[Case]:
    """Help texts, jobs with settings and prompts, models, estimates, preparation."""
    yield Case(
        name="helps/commands",
        steps=steps(
            "--help",
            "--version",
            *(f"{command} --help" for command in COMMANDS),
            "watch --print-keymap",
        ),
    )
    for job in JOBS:
        yield Case(
            name=f"helps/{job}",
            steps=steps(
                f"jobs {job}",
                f"jobs {job} --json",
                f"prompts {job}",
                f"prompts {job} --json",
                f"estimate {job}",
                f"estimate {job} --json",
                f"estimate {job} --model some-model --price 0.15,0.60 --budget 5 "
                "--concurrency 8 --rpm 60",
                f"estimate {job} --model some-model --price 0.15,0.60 --replicates 2 "
                "--json",
                f"run {job} --dry-run",
                f"prepare {job}",
                f"explain {job}",
            ),
        )
    yield Case(
        name="helps/lists",
        steps=steps(
            "jobs",
            "jobs --json",
            "models --filter gpt-4o-mini",
            "models --filter claude-3-5 --json",
            "runs",
            "runs --json",
            "cache list --cache-dir cache",
            "cache list --cache-dir cache --json",
        ),
    )
    yield _prepared()


def _prepared() -> Case:
    """What the jobs build of data, each by its own subcommands."""
    return Case(
        name="helps/prepared",
        files={
            "papers": "@sample/review-benchmark/papers",
            "replies": "@sample/review-benchmark/extraction/replies.jsonl",
            "review.txt": "@sample/review-benchmark/extraction/review.txt",
        },
        steps=steps(
            "prepare screening --negatives near-miss,random,true-excluded --out set",
            "explain screening --set seed=7",
            "prepare paper-investigation check",
            "prepare paper-investigation check --json",
            "prepare evidence-retrieval folds --out folds.csv",
            "prepare evidence-retrieval sentences --out sentences.jsonl",
            "prepare review-benchmark coverage",
            "prepare review-benchmark coverage --json --fail-under 0.99",
            "prepare review-benchmark import --database p.db papers/papers.ris "
            "papers/papers.xml papers/papers.csv",
            "prepare review-benchmark import --database p.db papers/papers.bib "
            "papers/papers.json papers/papers.jsonl --json",
            "prepare review-benchmark pairs --out pairs.csv",
            "prepare property-extraction aliases --out aliases",
            "prepare property-extraction lint",
            "prepare property-extraction lint --json",
        ),
        collect=("set/**/*", "folds.csv", "sentences.jsonl", "aliases*", "pairs.csv"),
    )


# Commands that are refused

TABLE = Path(__file__).with_name("errors.toml")
CODED = ("@latin-1:", "@utf-16:", "@hex:")
"""Marks of a content that is not UTF-8."""


def error_cases() -> Iterator[Case]:
    """A case for each group of the table."""
    with TABLE.open("rb") as file:
        groups = tomllib.load(file)["group"]
    for group in groups:
        lines = [*group.get("setup", ()), *group["lines"]]
        files = group.get("files", {})
        yield Case(
            name=f"errors/{group['name']}",
            steps=steps(*lines),
            files={name: _content(text) for name, text in files.items()},
        )


def _content(text: str) -> str | bytes:
    for mark in CODED:
        if text.startswith(mark):
            rest = text.removeprefix(mark)
            if mark == "@hex:":
                return bytes.fromhex(rest)
            return rest.encode(mark[1:-1])
    return text
