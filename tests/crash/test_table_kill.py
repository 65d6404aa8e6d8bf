"""The table of answers over kill -9: complete, within the budget, in flat memory.

Two models answer four questions about each paper, at an endpoint that refuses, drops
and spoils replies. The run is killed twice and resumed. With SIFTLOG_PROVE there are
5,000 papers, and the memory of scoring them is compared with that of 500.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.processes import siftlog, simulated, start, status, until

PROVE = "SIFTLOG_PROVE" in os.environ
SIZES = (500, 5_000) if PROVE else (20,)
BUDGET_USD_PER_PAPER = 0.01
"""About three times what the answers cost, and more than the kills reserve."""

GROWTH = 1.2
"""Most memory that ten times the papers may take; measured: 1.04."""

FIELDS = ("enrolled", "dose", "design", "blinded")
RECIPE = """
items = "papers.csv"
text = "text"
[fields.enrolled]
ask = "How many people were enrolled?"
type = "integer"
quote = true
[fields.dose]
ask = "Which dose did participants take?"
type = "number"
unit = "mg"
quote = true
[fields.design]
ask = "Which design did the study have?"
type = "one-of"
options = ["randomised controlled trial", "cohort study"]
quote = true
[fields.blinded]
ask = "Were the participants blinded?"
type = "boolean"
quote = true
"""

FAULTS = ("--rate-429=0.03", "--rate-5xx=0.03", "--rate-drop=0.02")
SERVER = ("--job=ask", "--seed=7", "--rate-malformed=0.02", *FAULTS)

WORDS = [
    "patients",
    "outcome",
    "group",
    "mean",
    "week",
    "score",
    "symptom",
    "therapy",
    "pain",
    "sleep",
]

PEAK = """
import resource, sys
from runner.cli.main import exit_code
code = exit_code(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def write_papers(folder: Path, papers: int) -> None:
    """Write papers of some 2,000 characters, each with all four answers."""
    chance = random.Random(1)
    with (folder / "papers.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text"])
        for number in range(papers):
            filler = " ".join(
                " ".join(chance.choices(WORDS, k=12)).capitalize() + "."
                for _ in range(20)
            )
            design = chance.choice(["randomised controlled trial", "cohort study"])
            enrolled, dose = chance.randint(10, 900), chance.choice([5, 10, 20])
            text = (
                f"In this {design}, {enrolled} adults were enrolled. {filler} "
                f"Participants took a dose of {dose} mg each day. They were blinded."
            )
            rows.writerow([f"P{number:05}", text])
    (folder / "recipe.toml").write_text(RECIPE)


def answered(folder: Path, papers: int) -> None:
    """Run, kill twice and resume."""
    with simulated(*SERVER, "--latency-ms=20", cwd=folder) as url:
        budget = BUDGET_USD_PER_PAPER * papers + 1
        words: tuple[object, ...] = (
            *("run", "ask", "--recipe=recipe.toml", "--run-id=r", "--no-score"),
            *("--model=atlas", "--model=birch", "--base-url", url),
            *("--price=1,4", f"--budget={budget}", "--concurrency=8"),
        )
        for share in (0.1, 0.4):
            process = start(*words, cwd=folder)
            until(folder, "r", partial(has_completed, share * 2 * papers))
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            words = ("resume", "r", "--no-score")
        siftlog(*words, cwd=folder)
    run = status(folder, "r")
    assert (run["state"], run["tasks"]["completed"]) == ("finished", 2 * papers)
    assert run["cost_usd"] + run["possible_usd"] <= budget


def has_completed(tasks: float, run: dict[str, Any]) -> bool:
    """Return whether a run has completed at least *tasks* tasks."""
    return bool(run["tasks"]["completed"] >= tasks)


def scored(folder: Path) -> int:
    """Score the run in a process of its own; return its peak memory in KB."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "score", "r"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stderr.split()[-1])


@pytest.mark.timeout(1800 if PROVE else 120)
def test_the_table_is_complete_after_two_kills(tmp_path: Path) -> None:
    peaks = []
    for papers in SIZES:
        folder = tmp_path / str(papers)
        folder.mkdir()
        write_papers(folder, papers)
        answered(folder, papers)
        peaks.append(scored(folder))
        tables = folder / "runs" / "r" / "scores" / "1"
        with (tables / "answers.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert (
            len({(row["id"], row["model"]) for row in rows}) == len(rows) == 2 * papers
        )
        assert not any(row["error"] for row in rows)
        with (tables / "answers.jsonl").open() as lines:
            states = {
                field["state"]
                for line in lines
                for field in json.loads(line)["fields"].values()
            }
        assert states <= {"answered", "not reported", "unparsed"}
        # every value of the model that answers well is next to its quote
        mine = [row for row in rows if row["model"] == "atlas"]
        assert sum(bool(row["enrolled_quote"]) for row in mine) >= 0.9 * papers
    assert peaks[-1] <= GROWTH * peaks[0], f"{peaks} KB"
