"""The commands behind the check numbers on real data, where that data is present.

Nothing of it may be part of the repository: of these outputs the manifest has hashes
alone. Where the data is absent they are left out of a check, which says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.golden.cases import Case, steps

QUIET = "--no-report"
CARDS = ("runs/*/scores/*/scorecard.json", "runs/*/scores/*/*.csv")


def folder(root: Path) -> Path | None:
    """The folder of real data; None where it is absent."""
    path = Path(os.environ.get("SIFTLOG_REALDATA", root.parent / "shared" / "realdata"))
    return path.resolve() if path.is_dir() else None


def real_cases(root: Path) -> Iterator[Case]:
    """A case for each job, if the data is there."""
    path = folder(root)
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
