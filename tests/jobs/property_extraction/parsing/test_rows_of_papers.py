"""From the replies about a paper's pieces to its rows."""

from __future__ import annotations

from dataclasses import replace

from jobs.property_extraction.grounding import PaperText
from jobs.property_extraction.parsing import (
    ParsedExtraction,
    ParsedQuotes,
    ReportedValue,
)
from jobs.property_extraction.rows import count_mentions, rows_of_paper, ungrounded

PAPER = PaperText("The gap is 1.02 meV.\n\nTc = 2.8 K was found.")
GAP = ReportedValue(name="gap", value="1.02", unit="meV", quote="gap is 1.02 meV")
TC = ReportedValue(name="Tc", value="2.8", unit="K", quote="Tc is 2,800 mK in total")
MUTE = ReportedValue(name="Tc", value="3")


def test_rows_equal_in_all_fields_are_one_and_those_of_an_overlap_count_once() -> None:
    first = ParsedExtraction(rows=(GAP, TC, GAP))
    second = ParsedExtraction(rows=(GAP, MUTE))
    assert count_mentions([first, second]) == {GAP: 2, TC: 1, MUTE: 1}
    other = replace(GAP, quote="another")
    assert count_mentions([ParsedExtraction(rows=(GAP, other))]) == {GAP: 1, other: 1}


def test_rows_are_numbered_over_all_papers() -> None:
    found = rows_of_paper("P", [ParsedExtraction(rows=(GAP, TC, GAP))], first=7)
    assert [(row.row, row.name, row.mentions, row.flag) for row in found] == [
        (7, "gap", 2, ""),
        (8, "Tc", 1, ""),
    ]


def test_missing_and_absent_quotes_are_asked_for_again() -> None:
    assert ungrounded(PAPER, (GAP, TC, MUTE)) == (TC, MUTE)


def test_a_second_look_gives_a_quote_or_a_flag_and_drops_nothing() -> None:
    again = replace(TC, value="2.9")
    found = rows_of_paper(
        "P",
        [ParsedExtraction(rows=(GAP, TC, MUTE, again))],
        requote_rows=(TC, MUTE, again),
        requoted=ParsedQuotes(
            quotes={1: "Tc = 2.8 K", 3: "Tc is invented at 2.9 K here"},
            withdrawn=frozenset({2}),
        ),
        paper=PAPER,
    )
    assert [(row.value, row.quote, row.flag) for row in found] == [
        ("1.02", GAP.quote, ""),
        ("2.8", "Tc = 2.8 K", ""),
        ("3", "", "withdrawn"),
        ("2.9", TC.quote, "absent"),
    ]


def test_a_row_that_the_second_reply_passes_over_is_absent() -> None:
    (row,) = rows_of_paper(
        "P",
        [ParsedExtraction(rows=(MUTE,))],
        requote_rows=(MUTE,),
        requoted=ParsedQuotes(quotes={}),
        paper=PAPER,
    )
    assert row.flag == "absent"
