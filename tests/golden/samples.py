"""The shipped samples of the five jobs, run offline and looked at by every command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.golden.cases import JOBS, Case, Step, steps

REPLIES = {
    "evidence-retrieval": "rowan-8b",
    "property-extraction": "teasel-70b",
    "review-benchmark": "hazel-70b",
    "screening": "alder-9b",
}
"""Recorded replies that a model is made of; paper-investigation imports its own."""
CHANGES = {
    "evidence-retrieval": ("--set profile=published-cv", "--set tau=0.4"),
    "paper-investigation": ("--profile clinpgx-qa", "--variant-link whole"),
    "property-extraction": ("--profile published", "--units ignore"),
    "review-benchmark": ("--threshold 2", "--matching single-pass"),
    "screening": ("--unclear include", "--threshold 0.4"),
}
"""Other settings that a run is scored under."""
METRICS = {
    "evidence-retrieval": "brier",
    "paper-investigation": "avg_paper_score",
    "property-extraction": "f1",
    "review-benchmark": "macro.recall",
    "screening": "all.micro.sensitivity",
}
PART = 40
"""Items explained by one command."""


def sample_cases(tree_samples: dict[str, Path]) -> Iterator[Case]:
    """Two runs of each job with all commands that read them."""
    for job in JOBS:
        items = list(items_of(job, tree_samples[job]))
        yield _baseline(job, items)
        yield _replies(job, items)
        yield _exported(job)


def _explained(run: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    for first in range(0, len(listed), PART):
        quoted = " ".join(f"'{item}'" for item in listed[first : first + PART])
        yield f"explain {run} {quoted}"


def _baseline(job: str, items: list[str]) -> Case:
    one, other = CHANGES[job]
    metric = METRICS[job]
    lines = [
        f"run {job} --run-id a --concurrency 4",
        f"run {job} --run-id j --concurrency 4 --no-report --json",
        "status a",
        "status a --json",
        "runs --json",
        "tasks a",
        "tasks a --json --limit 50",
        f"score a {one} --no-report",
        f"score a {other} --no-report --json",
        "scores a",
        "scores a --json",
        "diff a",
        "diff a 1 2 --json",
        f"diff a 1 3 --metric {metric} --top 3",
        "diff a 1 3 --html diff.html",
        "score a --no-record --no-report --format markdown",
        "score a --no-record --no-report --format latex --table metrics",
        f"score a --no-record --no-report --fail-under {metric}=0.99",
        f"history {job}",
        f"history {job} --json",
        "report a",
        "prompts a",
        "prompts a --json",
        *_explained("a", items),
        f"explain a '{items[0]}' --json",
    ]
    return Case(
        name=f"samples/{job}/baseline",
        steps=steps(*lines),
        collect=("runs/a/scores/**/*", "diff.html"),
    )


def _replies(job: str, items: list[str]) -> Case:
    metric = METRICS[job]
    files = {}
    if job in REPLIES:
        name = REPLIES[job]
        files[f"{name}.jsonl"] = f"@sample/{job}/replies/{name}.jsonl"
        begin = [
            (
                f"run {job} --run-id a --model recorded:{name}.jsonl "
                "--model baseline/lexical --concurrency 4"
            )
        ]
    else:
        names = ("larch-70b", "moss-3b")
        files = {f"{n}.jsonl": f"@sample/{job}/replies/{n}.jsonl" for n in names}
        files["bench.jsonl"] = f"@sample/{job}/variant_bench.jsonl"
        files["questions"] = f"@sample/{job}/questions"
        files["papers"] = f"@sample/{job}/papers"
        begin = [
            (
                f"import {job} larch-70b.jsonl moss-3b.jsonl --run-id a "
                "--bench bench.jsonl --questions questions --papers papers"
            )
        ]
    lines = [
        *begin,
        "status a",
        # conclusions of two models are planned in the order in which reviews end
        "tasks a --csv --filter -stage:conclude",
        "tasks a --filter state:failed",
        "scores a --json",
        "compare a",
        f"compare a --metric {metric} --items {metric} --json",
        (
            f"compare a --metric {metric} --items {metric} --out items.csv "
            "--csv all.csv --b 200 --format markdown"
        ),
        f"history {job} --against last",
        "models a",
        "report a --json",
        *_explained("a", items),
    ]
    return Case(
        name=f"samples/{job}/replies",
        steps=steps(*lines),
        files=files,
        collect=("runs/a/scores/**/*", "items.csv", "all.csv"),
        leave_out=("runs/*/verdicts.db",) if job == "review-benchmark" else (),
    )


def _exported(job: str) -> Case:
    return Case(
        name=f"samples/{job}/exported",
        steps=steps(
            f"run {job} --run-id a --concurrency 1 --no-report",
            "export a tasks answers scores --format csv",
            "export a tasks answers scores --format parquet --json",
            "export a tasks answers scores",
            "export a --dry-run",
            Step(
                line="verify a", is_compared=False
            ),  # how many commits depends on speed
            Step(line="bundle a --no-report --out a.bundle", is_compared=False),
        ),
        collect=("runs/a/exports/**/*", "a.bundle"),
    )


def items_of(job: str, sample: Path) -> Iterator[str]:
    """All items of a sample that `explain` knows."""
    match job:
        case "paper-investigation":
            lines = (sample / "variant_bench.jsonl").read_text("utf-8").splitlines()
            yield from (json.loads(line)["pmcid"] for line in lines if line.strip())
        case "property-extraction":
            yield from sorted(path.stem for path in (sample / "papers").iterdir())
        case "review-benchmark":
            truth = sorted((sample / "truth").iterdir())
            yield from (path.stem.removeprefix("cochrane_") for path in truth)
        case "evidence-retrieval":
            criteria = json.loads((sample / "criteria.json").read_text("utf-8"))
            ids = [each["id"] for each in criteria["criteria"]]
            posts = (sample / "posts.csv").read_text("utf-8").splitlines()[1:]
            names = [line.split(",")[0] for line in posts if line.startswith("post_")]
            yield from (f"{post}/{each}" for post in names for each in ids)
        case "screening":
            rows = (sample / "set" / "validation_set.csv").read_text("utf-8")
            header, *lines = rows.splitlines()
            columns = header.split(",")
            review, paper = columns.index("review_pmid"), columns.index("paper_pmid")
            for line in lines:
                cells = line.split(",")
                yield f"{cells[review]}:{cells[paper]}"
