"""A whole run with pieces of papers and a second request for their quotes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.jobs.screening.commanded import command, rows, write_csv

FIRST = "The critical temperature of the compound is 2.8 K in zero field.\n\n"
SECOND = "Its energy gap is 1.02 meV, as found by tunnelling spectroscopy.\n\n"


def value(number: str, quote: str) -> dict[str, str]:
    return {"property": "gap", "value": number, "unit": "meV", "quote": quote}


def line(stage: str, key: str, answer: dict[str, Any]) -> str:
    reply = {"stage": stage, "key": key, "response": json.dumps(answer)}
    return json.dumps(reply) + "\n"


def test_quotes_of_all_pieces_are_looked_up_in_the_whole_paper_and_asked_for_once(
    tmp_path: Path,
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "P1.txt").write_text(FIRST + SECOND, "utf-8")
    good = value("1.02", "Its energy gap is 1.02 meV")
    invented = value("3", "A gap of 3 meV was invented by somebody else")
    mute = value("1.020", "")
    # the first piece quotes the second one, and both state one row
    pieces = ([good, invented], [good, mute])
    replies = [
        line("extract", f"P1#{number}", {"properties": own})
        for number, own in enumerate(pieces, start=1)
    ]
    again = {
        "rows": [
            {"id": 1, "quote": None, "withdraw": True},
            {"id": 2, "quote": "energy gap is 1.02 meV, as found", "withdraw": False},
        ]
    }
    model = tmp_path / "model.jsonl"
    model.write_text("".join([*replies, line("requote", "P1", again)]), "utf-8")
    truth = write_csv(
        tmp_path / "gt.csv", ["refno", "label", "value"], [("P1", "gap", "1.02")]
    )
    done = command(
        *("run", "property-extraction", "--papers", papers, "--truth", truth),
        *("--model", f"recorded:{model}", "--requote", "true", "--max-chars", 80),
        *("--chunk-overlap", 10, "--runs-dir", tmp_path, "--run-id", "r"),
        *("--no-report", "--boot-b", 0),
    )
    assert done.code == 0, done.err
    found = {
        row["pred_value"]: row
        for row in rows(tmp_path / "r/scores/1/score_pr_rows.csv")
        if row["pred_value"]
    }
    assert {number: row["grounding"] for number, row in found.items()} == {
        "1.02": "exact",
        "3": "absent",
        "1.020": "exact",
    }
    quotes = rows(tmp_path / "r/scores/1/grounding.csv")
    assert [row["flag"] for row in quotes] == ["", "withdrawn", ""]
    assert [row["mentions"] for row in quotes] == ["1", "1", "1"]
    assert int(found["1.02"]["quote_start"]) == len(FIRST)
    assert int(found["1.020"]["quote_start"]) == len(FIRST) + len("Its ")
