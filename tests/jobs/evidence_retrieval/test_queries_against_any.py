"""Whatever is scored, the summary that comes of it verifies itself.

A scoring that asks for more than the run has says so.

Two readings of the same definitions meet here on sheets full of borders: unjudged and
unscored queries, folds of one class, ties, empty lists, K of 0 and K beyond the list.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.evidence_retrieval.queries import SCORED, UNKNOWN, UNSCORED, ScoringInput
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.verification.definitions import STATED_COLUMNS
from tests.jobs.evidence_retrieval.sheets import dataset, small_sheet
from tests.processes import siftlog

BORDERS = [0.0, 0.1, 0.2, 0.3, 0.30000000000000004, 0.5, 0.7, 0.9, 1.0]
PROBABILITIES = st.sampled_from(BORDERS) | st.floats(0, 1)
CRITERIA = ("A.1", "A.2", "A.10")


@st.composite
def sheets(draw: st.DrawFn) -> ScoringInput:
    posts = draw(st.integers(2, 5))
    names = [f"post_{i}" for i in range(posts)]
    criteria = CRITERIA[: draw(st.integers(1, 3))]
    keys = [(post, criterion) for post in names for criterion in criteria]
    n = len(keys)
    # every fold has a post
    of_post = [i % 2 if i < 2 else draw(st.integers(0, 1)) for i in range(posts)]
    has_folds = draw(st.booleans())
    y = [draw(st.sampled_from([0, 1, 1, UNKNOWN])) for _ in range(n)]
    ids = [[f"{post}_{s}" for s in range(6)] for post, _ in keys]
    gold: list[tuple[str, ...]] | None = [
        tuple(draw(st.lists(st.sampled_from(own), unique=True, max_size=4)))
        if truth == 1
        else ()
        for own, truth in zip(ids, y, strict=True)
    ]
    lists = {
        name: [
            tuple(draw(st.permutations(own)))[: draw(st.integers(0, 6))] for own in ids
        ]
        for name in ("retriever", "reranked")
    }
    said: dict[str, Any] = {}
    if has_folds:
        unscored = [draw(st.integers(0, 5)) == 0 for _ in range(n)]
        taus = [sorted(draw(st.tuples(PROBABILITIES, PROBABILITIES))) for _ in range(2)]
        fold = np.repeat(of_post, len(criteria))
        p = np.array([draw(PROBABILITIES) for _ in range(n)])
        said = {
            "status": [UNSCORED if lost else SCORED for lost in unscored],
            "prob": np.where(unscored, np.nan, p),
            "tau_neg": np.array([taus[k][0] for k in fold]),
            "tau_pos": np.array([taus[k][1] for k in fold]),
            "k": np.array([draw(st.integers(UNKNOWN, 8)) for _ in range(n)]),
        }
        if draw(st.booleans()):
            own = [draw(st.integers(UNKNOWN, 2)) for _ in range(n)]
            said["state"] = np.array(own, dtype=np.int8)
        if draw(st.booleans()):
            # made elsewhere, without the lists they came from
            lists, gold = {}, None
            said["stated_values"] = {
                name: np.array(
                    [draw(st.sampled_from([np.nan, 0.0, 0.4, 1.0])) for _ in y]
                )
                for name in STATED_COLUMNS
            }
    return small_sheet(
        keys,
        y=y,
        gold=gold,
        fold=[int(k) for k in np.repeat(of_post, len(criteria))] if has_folds else None,
        lists=lists,
        final="reranked",
        **said,
    )


CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "profile": st.sampled_from(["published-lists", "published-cv"]),
        "ap_denominator": st.sampled_from(["gold", "min", "found"]),
        "all_queries": st.booleans(),
        "tpr_rule": st.sampled_from(["last", "nearest"]),
        "ece_edges": st.sampled_from(["right", "left_drop_one"]),
        "ece_bins": st.integers(1, 12),
        "gate_edge": st.sampled_from(["lt", "le"]),
        "ddof": st.sampled_from([0, 1]),
        "zero_division": st.sampled_from([None, 0.0]),
        "skip_empty": st.booleans(),
        "states": st.sampled_from(["recomputed", "column"]),
    },
)


@settings(max_examples=200 if "SIFTLOG_PROVE" in os.environ else 25)
@given(sheets(), CHOICES)
def test_a_summary_verifies_itself(
    sheet: ScoringInput, choices: dict[str, Any]
) -> None:
    assume((sheet.queries.y != UNKNOWN).any())  # else nothing is summarised
    data = dataset(boot_b=0, **choices)
    (text,) = (a.text for a in score(data, sheet).artifacts if a.name == "summary.json")
    card = score(replace(data, stored=json.loads(text)), sheet)
    (table,) = (t for t in card.tables if t.name == "verification")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    wrong = [row for row in rows if row["verdict"] not in {"equal", "not computable"}]
    assert [(r["path"], r["stored"], r["recomputed"], r["why"]) for r in wrong] == []
    # a sheet in which nothing is defined has nothing to verify
    assert all("could be compared" in sentence for sentence in card.failures)


PIPELINE = '[[config]]\nname = "x"\nfirst_stage = "embedding"\n'


def test_answers_that_other_configurations_need_are_counted(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PIPELINE)
    siftlog(
        *("run", "evidence-retrieval", "--run-id=r", "--limit=6"),
        *("--boot-b=0", "--no-report"),
        cwd=tmp_path,
    )
    assert (
        "not in the run"
        not in siftlog("score", "r", "--no-report", cwd=tmp_path).stderr
    )
    done = siftlog("score", "r", "--pipeline=x.toml", "--no-report", cwd=tmp_path)
    assert "note: 6 answers that these settings need are missing from" in done.stderr
