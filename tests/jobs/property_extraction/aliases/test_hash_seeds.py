"""Candidates and alias sets are the same whatever Python hashes names to."""

from __future__ import annotations

import os
import subprocess
import sys

from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.aliases.building import AliasEvidence, build_alias_set
from jobs.property_extraction.aliases.candidates import (
    PaperMismatch,
    alias_candidates,
    crossfitted,
    near_names,
)
from jobs.property_extraction.aliases.files import set_json
from tests.conftest import ROOT
from tests.processes import environment


def made() -> str:
    wrong = frozenset(f"name {n}" for n in range(40))
    missed = frozenset(f"name of truth {n}" for n in range(40))
    papers = {
        refno: list(
            near_names(PaperMismatch(refno=refno, predicted=wrong, missed=missed), 3)
        )
        for refno in ("P1", "P2", "P3")
    }
    review = tuple(
        AliasEntry(
            pred_name=f"n{n % 17}",
            gt_name=f"n{n * 7 % 19}",
            refno=[None, "P1", "P2"][n % 3],
            status="accepted",
        )
        for n in range(60)
    )
    built = build_alias_set(
        AliasEvidence(review=review), canonical=frozenset({"n18"}), clash="set"
    )
    return "\n".join(
        [
            *map(repr, alias_candidates(papers.values())),
            *map(repr, crossfitted(papers, k=3, top=50, canonical=missed)),
            set_json(built.alias_set),
            *built.report,
        ]
    )


def test_another_hash_seed_gives_the_same_candidates_and_the_same_set() -> None:
    assert "cycle: " in made()
    other = "8" if os.environ.get("PYTHONHASHSEED") == "7" else "7"
    done = subprocess.run(
        [sys.executable, "-c", f"import {__name__} as own; print(own.made())"],
        cwd=ROOT,
        env=environment({"PYTHONHASHSEED": other, "PYTHONPATH": str(ROOT)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{made()}\n"
