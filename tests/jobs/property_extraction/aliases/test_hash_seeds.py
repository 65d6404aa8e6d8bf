"""Candidates and alias sets are the same whatever Python hashes names to."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT
from tests.processes import environment

PROGRAM = """
from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.aliases.building import build
from jobs.property_extraction.aliases.deciding import Evidence
from jobs.property_extraction.aliases.file import set_json
from jobs.property_extraction.mismatch.candidates import Mismatch, candidates, near
from jobs.property_extraction.mismatch.crossfit import crossfitted

wrong = frozenset(f"name {n}" for n in range(40))
missed = frozenset(f"name of truth {n}" for n in range(40))
papers = {
    refno: list(near(Mismatch(refno=refno, predicted=wrong, missed=missed), 3))
    for refno in ("P1", "P2", "P3")
}
print(candidates(papers.values()))
print(crossfitted(papers, k=3, top=50, canonical=missed))
review = tuple(
    AliasEntry(
        pred_name=f"n{n % 17}",
        gt_name=f"n{n * 7 % 19}",
        refno=[None, "P1", "P2"][n % 3],
        status="accepted",
    )
    for n in range(60)
)
built = build(Evidence(review=review), canonical=frozenset({"n18"}), clash="set")
print(set_json(built.alias_set), built.report)
"""


def printed(seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment({"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_another_hash_seed_gives_the_same_candidates_and_the_same_set() -> None:
    first = printed("1")
    assert "cycle" in first
    assert printed("2") == first
