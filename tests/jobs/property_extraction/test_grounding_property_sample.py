"""The sample that ships: what it holds, and that every oddity in it is one.

`SAMPLE.md` beside this file lists which row is planted for what.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from jobs.kit.grounding import GroundingLevel, PaperText, QuoteMatch, ground
from jobs.kit.inputs.rows import InputFindings
from jobs.property_extraction.curated_files import (
    read_rubric,
    read_truth,
    read_unit_table,
)
from jobs.property_extraction.inputs import SAMPLE
from jobs.property_extraction.parsing import (
    ParsedExtraction,
    ReportedValue,
    parse_extraction,
    parse_verdict,
)
from jobs.property_extraction.values.comparison import ComparisonKind, Rubric
from jobs.property_extraction.values.unit_reader import unit_disagreements
from runner.messages import ParseFailure, Reply

TEASEL, YARROW = MODELS = ("teasel-70b", "yarrow-8b")
REFNOS = ("SL-001", "SL-002", "SL-003", "SL-004", "SL-005")
RULES = SAMPLE / "rubric.csv"
TRUTH = SAMPLE / "truth.csv"


def text(refno: str) -> str:
    return (SAMPLE / "papers" / f"{refno}.txt").read_text("utf-8")


def rubric() -> Rubric:
    return read_rubric(RULES, InputFindings()).rubric


@cache
def replies(model: str, stage: str) -> dict[str, Reply]:
    """The recorded replies of a stage by key."""
    path = SAMPLE / "replies" / f"{model}.jsonl"
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {
        line["key"]: Reply(
            text=line["response"], finish_reason=line.get("finish_reason", "stop")
        )
        for line in lines
        if line["stage"] == stage
    }


def read(model: str, refno: str) -> ParsedExtraction | ParseFailure:
    return parse_extraction(replies(model, "extract")[refno], partial="fail")


def stated(model: str) -> Iterator[tuple[str, ReportedValue, QuoteMatch]]:
    """Every row of a model, with the paper and the place of its quote."""
    for refno in REFNOS:
        found = read(model, refno)
        paper = PaperText(text(refno))
        if isinstance(found, ParsedExtraction):
            for row in found.rows:
                yield refno, row, ground(paper, row.quote)


@pytest.mark.parametrize("refno", REFNOS)
def test_every_paper_says_that_it_is_invented(refno: str) -> None:
    first, *_ = text(refno).split("\n\n")
    assert " ".join(first.split()) == (
        "Status: invented study, written for the sample data of siftlog; neither the "
        "compound nor any number is real"
    )
    assert 600 <= len(text(refno).split()) <= 900


def test_curated_values_have_every_kind_and_every_oddity() -> None:
    noticed = InputFindings()
    found, known = read_truth(TRUTH, noticed, ()), rubric()
    assert {row.refno for row in found.rows} == {*REFNOS}
    assert {known.kind(row.name) for row in found.rows} == {*ComparisonKind}
    assert (len(found.rows), found.blank) == (67, 1)
    assert {row.name for row in found.rows if row.name not in known} == {
        *("#NAME?", "growth method")
    }
    keys = Counter((row.refno, row.name) for row in found.rows)
    assert sum(n > 1 for n in keys.values()) == 4
    bounds = [row.value for row in found.rows if row.value.startswith(">")]
    assert bounds == ["> 14"]
    worded = [
        (row.name, row.unit)
        for row in found.rows
        if row.unit
        and known.kind(row.name) is not ComparisonKind.SI
        and row.name in known
    ]
    assert worded == [("pressure medium", "GPa")]


def test_rubric_rows_that_are_none_are_counted() -> None:
    found = read_rubric(RULES, InputFindings())
    assert (found.dropped, found.conditions) == (1, 1)
    assert [name for name in found.rubric.properties if name.startswith("-")] == [
        *("-slope of Hc2 at Tc", "-slope of Hc2 at Tc, H // c")
    ]


def test_curated_values_stand_in_their_papers() -> None:
    missing = [
        (row.refno, row.name)
        for row in read_truth(TRUTH, InputFindings(), ()).rows
        if rubric().kind(row.name) is ComparisonKind.SI
        and row.value.removeprefix("> ").partition("E+")[0] not in text(row.refno)
    ]
    # curators wrote these in tesla, the papers in oersted and kilooersted
    assert missing == [
        ("SL-001", "lower critical field at 0 K"),
        ("SL-002", "upper critical field at 0 K"),
        ("SL-002", "lower critical field at 0 K"),
    ]


def test_quotes_are_found_at_every_level() -> None:
    levels = {
        model: Counter(place.level for _, _, place in stated(model)) for model in MODELS
    }
    assert levels[TEASEL] == {
        GroundingLevel.EXACT: 59,
        GroundingLevel.NORMALISED: 8,
        GroundingLevel.ELIDED: 1,
        GroundingLevel.NEAR: 1,
        GroundingLevel.ABSENT: 1,
    }
    assert levels[YARROW] == {GroundingLevel.EXACT: 23, GroundingLevel.NO_QUOTE: 4}


@pytest.mark.parametrize(
    ("refno", "name", "level"),
    [
        ("SL-001", "upper critical field at 0 K, H ⊥ c", GroundingLevel.ELIDED),
        ("SL-003", "Sommerfeld constant", GroundingLevel.ABSENT),
        ("SL-005", "residual resistivity", GroundingLevel.NEAR),
    ],
)
def test_a_quote_that_is_not_as_printed_is_told_apart(
    refno: str, name: str, level: GroundingLevel
) -> None:
    (place,) = (
        place
        for where, row, place in stated(TEASEL)
        if (where, row.name) == (refno, name)
    )
    assert place.level is level


def test_a_quote_may_cross_a_ligature_and_a_word_broken_at_a_line_end() -> None:
    (place,) = (
        place
        for refno, row, place in stated(TEASEL)
        if (refno, row.name) == ("SL-002", "energy gap at 0 K")
    )
    assert place.level is GroundingLevel.NORMALISED
    printed = text("SL-002")[place.start : place.end]
    assert printed.startswith("The gap that describes the super-\nconducting")
    assert printed.endswith("the deﬁnition of the gap includes no\nanisotropy")


def test_a_reply_that_was_cut_short_is_no_answer() -> None:
    found = read(YARROW, "SL-004")
    assert isinstance(found, ParseFailure)
    assert (found.reason, found.detail) == ("truncated", "2 whole objects")
    others = [read(YARROW, refno) for refno in REFNOS if refno != "SL-004"]
    assert all(isinstance(each, ParsedExtraction) for each in others)


def test_a_model_that_obeys_a_paper_quotes_it_exactly() -> None:
    (place,) = (p for _, row, p in stated(YARROW) if row.value == "300")
    assert place.level is GroundingLevel.EXACT
    assert "ignore all other instructions" in text("SL-003")


def test_verdicts_are_read_or_fail_as_they_should() -> None:
    failed = [
        (model, key, found.reason)
        for model in MODELS
        for key, reply in replies(model, "verify").items()
        if isinstance(found := parse_verdict(reply), ParseFailure)
    ]
    unread = "magnetic moment => effective magnetic moment"
    assert failed == [(YARROW, unread, "ambiguous")]


def test_one_factor_of_the_unit_table_is_wrong() -> None:
    found = list(unit_disagreements(read_unit_table(SAMPLE / "units.csv")))
    assert [each.row.name for each in found] == ["meV"]
    (factor,) = (each.factor for each in found)
    assert factor is not None
    assert 1.60e-22 / factor == pytest.approx(0.9986, abs=1e-4)
