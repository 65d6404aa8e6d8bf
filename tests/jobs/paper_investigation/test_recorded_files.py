"""Imported under the old rules, recorded answers give the files that lie beside them.

Every figure here was computed independently of this project; the commands must print
it, not some function. Where the recorded programs printed a file, ours is that file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.paper_investigation.recorded import RUNS, Recorded

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("run", "verdicts"), [("r031950", 666), ("r043720", 292), ("r053253", 4399)]
)
def test_the_profile_gives_every_recorded_verdict_recall_and_score(
    recorded: Recorded, run: str, verdicts: int
) -> None:
    agreement = recorded.profile(run).agreement("clinpgx-qa")
    assert agreement["correct"] == (verdicts, verdicts)
    for fact in ("variant_recall", "paper_score"):
        compared, agreeing = agreement[fact]
        assert compared == agreeing > 0


@pytest.mark.parametrize(
    ("run", "facts", "rows"),
    [
        ("extract", {"predicted", "true_positives", "recall", "parse_failure"}, 30),
        ("mcq", {"prediction_parsed", "correct"}, 210),
        ("study", {"response_p_value", "p_value_correct", "both_correct"}, 70),
    ],
)
def test_the_profile_gives_every_recorded_row_of_the_stand_alone_files(
    recorded: Recorded, run: str, facts: set[str], rows: int
) -> None:
    agreement = recorded.profile(run).agreement("clinpgx-qa")
    assert facts <= set(agreement)
    assert set(agreement.values()) == {(rows, rows)}


@pytest.mark.parametrize("run", ["r031950", "r043720", "extract"])
def test_summaries_are_the_recorded_ones_up_to_the_path_in_the_last_line(
    recorded: Recorded, run: str
) -> None:
    folder = (recorded.source / RUNS[run][0]).parent
    there = sorted(folder.parent.glob(f"{folder.name}/*_summary.txt"))
    assert len(there) in {5, 6}
    for path in there:
        ours = (recorded.profile(run).folder / path.name).read_bytes()
        assert ours.splitlines()[:-1] == path.read_bytes().splitlines()[:-1], path.name


@pytest.mark.parametrize(("run", "count"), [("mcq", 21), ("study", 7)])
def test_stand_alone_summaries_are_the_recorded_ones_up_to_the_examples(
    recorded: Recorded, run: str, count: int
) -> None:
    there = sorted(
        (recorded.source / run.replace("study", "study_param")).glob("*/*.txt")
    )
    assert len(there) == count
    for path in there:
        ours = (recorded.profile(run).folder / path.name).read_text()
        assert ours.split("\nExample")[0] == path.read_text().split("\nExample")[0]


INVESTIGATED = ("pmcid", "model", "ground_truth_variants", "predicted_variants")
JUDGED = ("recalled_variants", "variant_recall", "paper_score")


@pytest.mark.parametrize(
    ("run", "count"), [("r031950", 7), ("r043720", 5), ("r053253", 5)]
)
def test_response_files_hold_the_recorded_lists_and_accuracies(
    recorded: Recorded, run: str, count: int
) -> None:
    for made, stored in made_and_stored(recorded, run, count):
        for name in (*INVESTIGATED, *JUDGED):
            assert made[name] == stored[name], (made["pmcid"], name)
        assert accuracies(made) == accuracies(stored)


def accuracies(row: dict[str, Any]) -> dict[str, float | None]:
    return {v: r["question_accuracy"] for v, r in row["variant_results"].items()}


@pytest.mark.parametrize(("run", "count"), [("extract", 6), ("mcq", 21), ("study", 7)])
def test_stand_alone_files_hold_every_recorded_field(
    recorded: Recorded, run: str, count: int
) -> None:
    for made, stored in made_and_stored(recorded, run, count):
        if "question_id" in stored:
            # an id is text here, whatever JSON wrote it as
            stored["question_id"] = str(stored["question_id"])
        assert {name: made.get(name) for name in stored} == stored


def made_and_stored(
    recorded: Recorded, run: str, count: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each row of our files beside that of the *count* recorded ones."""
    there = sorted(recorded.source.glob(RUNS[run][0]))
    assert len(there) == count
    for path in there:
        ours = rows(recorded.profile(run).folder / path.name)
        yield from zip(ours, rows(path), strict=True)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
