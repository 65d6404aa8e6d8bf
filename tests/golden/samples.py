"""The shipped samples of the five jobs, and real data, looked at by every command.

Nothing of the real data may be part of the repository: of its outputs the manifest has
hashes alone. Where it is absent they are left out of a check, which says so.
"""

from __future__ import annotations

import json
import os
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
NUMBERED = ("tasks a", "tasks a --json --limit 50", "prompts a", "prompts a --json")
MANY_WAYS = "review-benchmark"
"""The job whose tasks are planned as others end, each review by itself: of several
reviews, their numbers depend on speed, and what shows them is taken of one review."""
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
        *(() if job == MANY_WAYS else NUMBERED),
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
        *_explained("a", items),
        f"explain a '{items[0]}' --json",
    ]
    return Case(
        name=f"samples/{job}/baseline",
        steps=steps(*lines),
        collect=("runs/a/scores/**/*", "diff.html"),
        leave_out=("runs/*/verdicts.db",) if job == MANY_WAYS else (),
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
        *(() if job == MANY_WAYS else ("tasks a --csv", "tasks a --filter state:done")),
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
        leave_out=(
            ("runs/*/verdicts.db", "runs/*/report.html") if job == MANY_WAYS else ()
        ),
    )


def _exported(job: str) -> Case:
    some = "--review CD990002" if job == MANY_WAYS else ""
    return Case(
        name=f"samples/{job}/exported",
        steps=steps(
            f"run {job} --run-id a --concurrency 1 --no-report {some}",
            *NUMBERED,
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


_TRIAL = """\
model = ["baseline/lexical", "baseline/other"]
budget = 2.0
concurrency = 2
[[jobs]]
job = "property-extraction"
[[jobs]]
job = "paper-investigation"
name = "papers"
settings = { limit = 4, mode = "extract", boot_b = 200 }
vary = { variant_case = ["fold", "keep"] }
"""
QUIET = "--no-report"
IMPORTS = {
    "evidence-retrieval": (
        {},
        [
            f"run evidence-retrieval --run-id a {QUIET}",
            (
                f"import evidence-retrieval --run-id b {QUIET} "
                "--per-query runs/a/scores/1/per_query.csv "
                "--rankings runs/a/scores/1/rankings.jsonl "
                "--against runs/a/scores/1/summary.json"
            ),
            (
                f"import evidence-retrieval --run-id c {QUIET} "
                "--qrels runs/a/scores/1/qrels.txt "
                "--run runs/a/scores/1/run.reranked.txt"
            ),
            "compare a b --metric 'ndcg@10'",
            "explain b post_01/A.1",
        ],
    ),
    "paper-investigation": (
        {"old.jsonl": "records/alder-7b_paper_investigation_responses.jsonl"},
        [
            (
                f"import paper-investigation old.jsonl --run-id b {QUIET} "
                "--profile clinpgx-qa"
            ),
            "explain b PMC0000001",
            "tasks b --csv",
        ],
    ),
    "property-extraction": (
        {
            name: name
            for name in ("predictions.csv", "truth.csv", "rubric.csv", "aliases")
        },
        [
            (
                "import property-extraction --preds predictions.csv --truth truth.csv "
                f"--rubric rubric.csv --run-id b {QUIET}"
            ),
            f"score b --aliases aliases/aliases-cbb87a5ad421.json {QUIET}",
            "diff b --metric tp",
            "prepare property-extraction lint --truth truth.csv --out odd.csv",
            "explain b SL-001",
        ],
    ),
    "review-benchmark": (
        {name: name for name in ("truth", "older", "results")},
        [
            *(
                f"import review-benchmark --truth truth --results {folder} "
                f"--run-id {run} {QUIET}"
                for run, folder in (
                    ("r1", "older/first"),
                    ("r2", "older/second"),
                    ("r3", "results"),
                )
            ),
            "history review-benchmark",
            "history review-benchmark --json",
            "history review-benchmark --against last",
            "history review-benchmark --against best --max-drop 0.5 --json",
            "history review-benchmark --against r1 --format markdown",
            "history review-benchmark --plot plots",
            "compare r1 r2 r3 --metric macro.recall",
            "explain r3 CD990001",
        ],
    ),
    "screening": (
        {"set": "set"},
        [
            f"run screening --run-id a {QUIET}",
            (
                "import screening --decisions runs/a/scores/1/decisions.csv "
                f"--validation-set set --run-id b {QUIET}"
            ),
            (
                "import screening --decisions runs/a/scores/1/decisions.csv --run-id c "
                f"--threshold 0.3 {QUIET}"
            ),
            "compare a b --metric 'all.micro.*'",
            (
                "run screening --stages title,abstract --title-criteria --run-id d "
                f"{QUIET} --show-ids true"
            ),
        ],
    ),
}
"""Files of the sample and commands that import what other programs made."""


def import_cases() -> Iterator[Case]:
    """Imports of each job, many runs from one file, answers that are scored later."""
    for job, (files, lines) in IMPORTS.items():
        yield Case(
            name=f"samples/{job}/imports",
            files={name: f"@sample/{job}/{path}" for name, path in files.items()},
            steps=steps(*lines),
            collect=(
                "runs/[b-r]*/scores/**/*.csv",
                "runs/[b-r]*/scores/*/scorecard.json",
                "runs/[b-r]*/scores/**/*.json*",
                "plots/*",
                "odd.csv",
            ),
        )
    yield Case(
        name="samples/all/matrix",
        files={"trial.toml": _TRIAL},
        steps=steps(
            "run-all trial.toml --dry-run",
            # prints its runs in the order in which they end
            Step(line=f"run-all trial.toml {QUIET}", is_compared=False),
            f"run-all trial.toml {QUIET} --json",
            "runs --group trial",
            "runs --group trial --json",
            "generate property-extraction --run-id g --concurrency 1",
            "status g",
            f"score g {QUIET}",
            f"resume g {QUIET}",
            f"run property-extraction --run-id k --cache --cache-dir cache {QUIET}",
            f"run property-extraction --run-id l --replicates 2 {QUIET}",
            "compare k l",
            f"run paper-investigation --run-id m --batch-questions true {QUIET}",
            f"run paper-investigation --run-id n --mode questions --limit 20 {QUIET}",
        ),
        collect=("runs/[glmn]/scores/*/scorecard.json",),
    )


def items_of(job: str, sample: Path) -> Iterator[str]:
    """All items of a sample that `explain` knows."""
    match job:
        case "ask":
            yield from sorted(path.stem for path in (sample / "papers").iterdir())
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


# The commands behind the check numbers on real data

CARDS = ("runs/*/scores/*/scorecard.json", "runs/*/scores/*/*.csv")


def realdata_folder(root: Path) -> Path | None:
    """The folder of real data; None where it is absent."""
    path = Path(os.environ.get("SIFTLOG_REALDATA", root.parent / "shared" / "realdata"))
    return path.resolve() if path.is_dir() else None


def real_cases(root: Path) -> Iterator[Case]:
    """A case for each job, if the data is there."""
    path = realdata_folder(root)
    if path is None:
        return
    link = {"real": f"@link:{path}"}
    for name, lines in LINES.items():
        yield Case(
            name=f"realdata/{name}", files=link, steps=steps(*lines), collect=CARDS
        )


_SCI = "real/sci_llm"
_ASSETS = f"{_SCI}/scoring_assets"
_QA = "real/clinpgx_qa/paper_investigation/20260213_053253_all_models"
LINES = {
    "evidence-retrieval": [
        line
        for name in ("bge_m3_rrf_top20", "baseline_default_val")
        for line in (
            (
                f"import evidence-retrieval --run-id {name} {QUIET} "
                "--interval percentile "
                f"--per-query real/evidence_pipeline/{name}/per_query.csv "
                f"--against real/evidence_pipeline/{name}/summary.json"
            ),
            f"score {name} --profile published-lists {QUIET}",
        )
    ],
    "paper-investigation": [
        (
            f"import paper-investigation {_QA}/gpt-4o-mini_paper_investigation_"
            f"responses.jsonl {_QA}/gpt-5.2_paper_investigation_responses.jsonl "
            f"--run-id small --profile clinpgx-qa {QUIET}"
        ),
        f"score small --profile siftlog {QUIET}",
        "compare small --metric 'avg_*'",
    ],
    "property-extraction": [
        line
        for name in ("preds_gemini-2.5-flash", "preds_chatextract")
        for line in (
            (
                f"import property-extraction --model m --run-id {name} {QUIET} "
                f"--preds {_SCI}/{name}.csv --truth {_SCI}/gt.csv "
                f"--rubric {_ASSETS}/rubric.csv --set pymatgen=leave_out "
                f"--clusters {_ASSETS}/property_clusters_gemini-3-pro-preview.json "
                f"--space-groups {_ASSETS}/space_groups_normalized.json"
            ),
            f"score {name} --profile document {QUIET}",
            f"score {name} --profile published {QUIET}",
        )
    ],
    "review-benchmark": [
        (
            "import review-benchmark --run-id recorded "
            "--truth real/bmlibrarian/ground_truth "
            "--results real/bmlibrarian/agent_runs --set matching=single-pass "
            f"--set boot_b=0 {QUIET}"
        ),
        f"score recorded --set boot_b=0 {QUIET}",
    ],
    "screening": [
        (
            "prepare screening --tables real/near_miss/three_tables_cohen_final "
            "--out cohen --drift false"
        ),
        (
            "run screening --validation-set cohen --run-id cohen --title-criteria "
            f"{QUIET} --concurrency 4"
        ),
    ],
}
