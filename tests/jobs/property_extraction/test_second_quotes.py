"""A whole run with pieces of papers and a second request for their quotes.

Papers cut into pieces that a prompt can hold.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.plan import PaperPiece, pieces
from jobs.property_extraction.tasks import choice_key, pair_key, paper_of, piece_key
from tests.commands import command
from tests.csv_files import rows, write_csv

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


TEXTS = st.lists(
    st.sampled_from(["word", "a", " ", ". ", "\n", "\n\n", "longerword"]), max_size=60
).map("".join)


def cut(text: str, most: int, overlap: int) -> list[str]:
    return [text[each.start : each.end] for each in pieces(text, most, overlap)]


def test_a_short_text_and_one_without_a_limit_are_whole() -> None:
    assert pieces("some text", 0, 0) == (PaperPiece(start=0, end=9),)
    assert pieces("some text", 9, 5) == (PaperPiece(start=0, end=9),)
    assert pieces("", 9, 5) == (PaperPiece(start=0, end=0),)


def test_a_piece_ends_with_a_paragraph_else_a_line_a_sentence_or_a_word() -> None:
    assert cut("one two\n\nthree. four\nfive six", 22, 0) == [
        "one two\n\n",
        "three. four\nfive six",
    ]
    assert cut("one two. three\nfour five", 17, 0) == ["one two. three\n", "four five"]
    assert cut("one two. three four", 14, 0) == ["one two. ", "three four"]
    assert cut("one two three four", 14, 0) == ["one two three ", "four"]
    assert cut("x" * 25, 10, 0) == ["x" * 10, "x" * 10, "x" * 5]


def test_pieces_overlap_from_the_beginning_of_a_word() -> None:
    assert cut("one two three four five six", 14, 6) == [
        "one two three ",
        "three four ",
        "four five six",
    ]


@given(TEXTS, st.integers(1, 40), st.data())
def test_every_character_is_in_a_piece_and_none_is_too_long(
    text: str, most: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, most - 1))
    found = pieces(text, most, overlap)
    assert found[0].start == 0
    assert found[-1].end == len(text)
    assert all(each.end - each.start <= most for each in found)
    for before, after in pairwise(found):
        assert before.start < after.start <= before.end < after.end
        assert before.end - after.start <= overlap


@given(st.text(max_size=8), st.none() | st.integers(1, 99))
def test_the_key_of_a_piece_says_which(refno: str, number: int | None) -> None:
    if number is not None or "#" not in refno:
        assert paper_of(piece_key(refno, number)) == (refno, number)


def test_pairs_whose_names_hold_arrows_have_keys_of_their_own() -> None:
    assert pair_key("a", "b") == "a => b"
    assert pair_key("a => b", "c") != pair_key("a", "b => c")
    assert choice_key("a", ["b", "c"]) != choice_key("a", ["b"])
