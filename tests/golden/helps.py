"""What every command says of itself, and what can be listed without a run."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden.cases import JOBS, Case, steps

COMMANDS = (
    "run", "generate", "resume", "import", "estimate", "prepare", "simulate", "score",
    "scores", "explain", "runs", "status", "tasks", "events", "pause", "drain",
    "cancel", "retry", "commands", "limits", "budget", "export", "bundle", "merge",
    "verify", "cache", "cache list", "cache prune", "prompts", "models", "jobs",
    "doctor", "compare", "diff", "history", "report", "run-all", "serve", "watch",
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
