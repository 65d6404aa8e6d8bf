"""explain by the command: a run of the sample, and the sample before any run."""

from __future__ import annotations

from pathlib import Path

from store.database import open_reader
from store.tables import started
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    ranked,
    write_csv,
    write_jsonl,
)
from tests.processes import siftlog


def test_command_explains_queries_before_and_after_a_run(tmp_path: Path) -> None:
    def told(*words: str) -> str:
        return siftlog(*words, cwd=tmp_path).stdout

    before = told("explain", "evidence-retrieval", "post_13/A.2")
    assert before.startswith("post_13/A.2  before any run\n")
    assert "\nprompts\n  assess      about " in before
    model = ("--model", "baseline/lexical", "--no-score", "--run-id", "r")
    told("run", "evidence-retrieval", *model)
    page = told("explain", "r", "post_13/A.2", "post_13")
    assert page.startswith("post_13/A.2  baseline/lexical\ncriterion  A.2")
    assert "\npost_13  baseline/lexical, full\n" in page
    (task,) = (
        line.rpartition("task ")[2] for line in page.splitlines() if ", task " in line
    )
    with open_reader(tmp_path / "runs" / "r" / "log.db") as reader:
        digest = started(reader, int(task))
    assert digest is not None
    assert f"\n    prompt  {digest[:16]}\n" in page
    wrong = siftlog("explain", "r", "post_31/A.2", cwd=tmp_path, check=False)
    assert wrong.returncode != 0
    assert "the nearest are post_23/A.2, post_21/A.2" in wrong.stderr


def test_command_explains_an_import(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    files = ("--per-query", rows, "--rankings", lists, "--rankings", f"b={lists}")
    words = ("import", "evidence-retrieval", *files, "--no-score", "--run-id", "r")
    siftlog(*words, cwd=tmp_path)
    page = siftlog("explain", "r", "p_1/A.1", cwd=tmp_path).stdout
    assert page.startswith("p_1/A.1  imported\ncriterion  A.1\n")
    assert "\n\np_1/A.1  b\n" in page
    assert "\n  gold        1    yes  p_1_0\n" in page
