"""The real command: a file of lists is imported, scored, and its summary verified."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import siftlog

LISTS = """\
post_id,criterion_id,gold_ids,retriever_topk,reranked_topk
p_1,A.1,p_1_1|p_1_2,p_1_0|p_1_1|p_1_2,p_1_1|p_1_0|p_1_2
p_1,A.2,,p_1_0|p_1_1|p_1_2,p_1_2|p_1_1|p_1_0
p_2,A.1,p_2_0,p_2_1|p_2_0,p_2_0|p_2_1
p_2,A.2,p_2_0|p_2_1,p_2_1|p_2_0,p_2_1|p_2_0
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a file of lists."""
    (tmp_path / "lists.csv").write_text(LISTS, "utf-8")
    return tmp_path


def rows(desk: Path, number: int) -> list[dict[str, str]]:
    path = desk / "runs/r/scores" / str(number) / "verification.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_a_scoring_wrote_verifies_and_what_was_spoiled_does_not(
    desk: Path,
) -> None:
    siftlog("import", "evidence-retrieval", "lists.csv", "--run-id=r", cwd=desk)
    own = desk / "runs/r/scores/1/summary.json"
    done = siftlog("score", "r", "--against", own, cwd=desk)
    assert " equal" in done.stdout
    verdicts = {row["verdict"] for row in rows(desk, 2)}
    assert verdicts == {"equal", "not computable"}

    spoiled: dict[str, Any] = json.loads(own.read_text())
    spoiled["retriever"]["recall@5"] = 0.123
    (desk / "spoiled.json").write_text(json.dumps(spoiled))
    done = siftlog("score", "r", "--against=spoiled.json", cwd=desk, check=False)
    assert done.returncode == 6
    assert "siftlog: retriever.recall@5 is stored as 0.123, but the rows come to " in (
        done.stderr
    )
    (wrong,) = (row for row in rows(desk, 3) if row["verdict"] == "differs")
    assert (wrong["path"], wrong["stored"]) == ("retriever.recall@5", "0.123")


def test_a_file_of_other_keys_fails_an_import_that_is_kept_nevertheless(
    desk: Path,
) -> None:
    (desk / "other.json").write_text('{"accuracy": 0.9}')
    done = siftlog(
        *(
            "import",
            "evidence-retrieval",
            "lists.csv",
            "--against=other.json",
            "--run-id=r",
        ),
        cwd=desk,
        check=False,
    )
    assert done.returncode == 6
    assert "No number of the stored summary could be compared" in done.stderr
    assert [row["verdict"] for row in rows(desk, 1)] == ["unknown key"]
    card = json.loads((desk / "runs/r/scores/1/scorecard.json").read_text())
    assert "not_verified" in {finding["code"] for finding in card["findings"]}
    assert len(card["failures"]) == 3
