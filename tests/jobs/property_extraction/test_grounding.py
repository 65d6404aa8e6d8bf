"""Whether a number stands in a text, however it is printed.

Where quotes stand in papers: the six levels, and offsets into the raw text. Rows can be
asked to have a quote that stands in their paper.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.grounding import (
    ELIDED_CHARS,
    GROUNDED,
    GroundingLevel,
    PaperText,
    QuoteMatch,
    fold,
    ground,
)
from jobs.property_extraction.caveats import findings
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.papers import read_papers
from jobs.property_extraction.predictions import ReplicatePredictions, RunPredictions
from jobs.property_extraction.results import measure_run
from jobs.property_extraction.row_outcomes import RowOutcome
from jobs.property_extraction.rows import Prediction
from jobs.property_extraction.settings import Grounding, PropertySettings
from jobs.property_extraction.stated_numbers import is_among, numbers_in
from jobs.property_extraction.values.numbers import read_number
from tests.jobs.property_extraction.scored_rows import RUBRIC, TRUTH


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.8, "Tc = 2.8 K"),
        (2.8, "2.80(5) K"),
        (214.0, "a Debye temperature of 214(3) K"),
        (-1.15, "a slope of \u22121.15 T/K"),
        (1.15, "a slope of \u22121.15 T/K"),
        (300.0, "from 4\u2013300 K"),
        (300.0, "from 4 to 300K"),
        (1234.5, "1,234.5 or 1 234.5 of them"),
        (11.26078, "a = 11.260 78(1) \u00c5"),
        (2.6e-9, "2.6 \u00d7 10\u207b\u2079 m"),
        (2.6e-9, "2.6 x 10^{-9} m"),
        (2.6e-9, "2.6(1) \u00d7 10\u22129 m"),
        (2.6e-9, "2.6e-9 m"),
        (1e5, "of 10^5 A"),
        (17.2, "fields of Hc2(0) \u2243 17.2 kOe"),
        (0.5, "less than .5 K"),
    ],
)
def test_a_number_stands_where_its_digits_are_printed(value: float, text: str) -> None:
    assert is_among(value, numbers_in(text))


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.8, "2.81 K"), (2.8, "12.8 K"), (1.0, "no number"), (-2.8, "2.8"), (2.8, "")],
)
def test_other_numbers_do_not(value: float, text: str) -> None:
    assert not is_among(value, numbers_in(text))


def test_the_slack_is_a_billionth() -> None:
    assert is_among(1.0, (1.0 + 9e-10,))
    assert not is_among(1.0, (1.0 + 2e-9,))


PRINTED = "0123456789.,()eE+- x\u00d710^{}\u00b1\u2212\u207b\u2075"


@given(st.text(alphabet=PRINTED, max_size=40))
def test_a_text_that_is_a_number_holds_it(text: str) -> None:
    held = numbers_in(text)
    assert list(held) == sorted(held)
    value = read_number(text, "scientific").value
    if value is not None:
        assert is_among(value, held) or is_among(-value, held)


@pytest.mark.realdata
def test_every_number_of_the_free_names_stands_in_its_quote(realdata: Path) -> None:
    path = realdata / "sci_llm/preds_Ru7B3_free_names.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    values = [read_number(row["value_string"], "scientific").value for row in rows]
    held = [
        is_among(value, numbers_in(row["evidence"]))
        for row, value in zip(rows, values, strict=True)
        if value is not None
    ]
    assert (len(rows), sum("..." in row["evidence"] for row in rows)) == (146, 29)
    assert (sum(held), len(held)) == (79, 79)


TEXT = (
    "A Title\n\nThe \ufb01eld dependence of the super-\nconducting gap was "
    "\u201cweak\u201d. The slope is \u22121.15 T/K and the re\u00adsistivity  at "
    "4.2\u00a0K is 31 \u00b5\u03a9 cm.\n"
    "All samples are of the Th7Fe3-\ntype. H is large."
)


def level(quote: str, text: str = TEXT) -> GroundingLevel:
    return ground(PaperText(text), quote).level


def found(quote: str, text: str = TEXT) -> str:
    """The raw text where a quote stands."""
    place = ground(PaperText(text), quote)
    return text[place.start : place.end]


def test_a_piece_of_the_text_is_exact_and_blanks_around_the_quote_do_not_count() -> (
    None
):
    assert ground(PaperText(TEXT), " A Title ") == QuoteMatch(
        level=GroundingLevel.EXACT, start=0, end=7
    )
    assert ground(PaperText(TEXT), "A Title").level in GROUNDED


@pytest.mark.parametrize(
    ("quote", "raw"),
    [
        ("The field dependence", "The \ufb01eld dependence"),
        ("superconducting gap", "super-\nconducting gap"),
        ('was "weak"', "was \u201cweak\u201d"),
        ("slope is -1.15 T/K", "slope is \u22121.15 T/K"),
        ("slope is \u20131.15", "slope is \u22121.15"),
        (
            "the resistivity at 4.2 K is 31 \u03bc\u03a9 cm",
            "the re\u00adsistivity  at 4.2\u00a0K is 31 \u00b5\u03a9 cm",
        ),
        ("the Th7Fe3-type. H", "the Th7Fe3-\ntype. H"),
        ("ield dep", "\ufb01eld dep"),
    ],
)
def test_what_typesetting_changed_is_found_as_it_stands_in_the_raw_text(
    quote: str, raw: str
) -> None:
    assert level(quote) in {GroundingLevel.NORMALISED, GroundingLevel.EXACT}
    assert found(quote) == raw


def test_case_is_kept_until_a_quote_is_only_near() -> None:
    text = "The critical temperature Tc of this compound is 3.4 K in zero field."
    assert level("The Critical Temperature Tc of this compound is 3.4 K", text) == (
        GroundingLevel.NEAR
    )


def test_a_quote_with_a_word_changed_is_near_and_an_invented_one_absent() -> None:
    text = "x " * 200 + "We find a critical temperature of 3.4 K by resistivity. " + "y"
    assert level("We found a critical temperature of 3.4 K by resistivity", text) == (
        GroundingLevel.NEAR
    )
    assert "critical temperature of 3.4 K" in found(
        "We found a critical temperature of 3.4 K by resistivity", text
    )
    assert ground(PaperText(text), "The melting point lies at 2,000 K") == QuoteMatch(
        level=GroundingLevel.ABSENT
    )


def test_parts_between_ellipses_must_stand_in_order_and_close_together() -> None:
    assert level("The slope is ... 31 \u00b5\u03a9 cm") == GroundingLevel.ELIDED
    assert level("The slope is\u2026 and the [...] at 4.2 K") == GroundingLevel.ELIDED
    assert found("The slope is \u2026 T/K") == "The slope is \u22121.15 T/K"
    assert level("31 \u00b5\u03a9 cm ... The slope is") == GroundingLevel.ABSENT
    near = f"first part {'x ' * 900}last part"
    far = f"first part {'x ' * (ELIDED_CHARS // 2)}last part"
    assert level("first part ... last part", near) == GroundingLevel.ELIDED
    assert level("first part ... last part", far) == GroundingLevel.ABSENT


def test_a_later_place_counts_where_the_first_one_lacks_the_other_parts() -> None:
    text = f"the gap {'x ' * 2_000} the gap is weak here"
    assert found("the gap ... weak", text) == "the gap is weak"


@pytest.mark.parametrize("quote", ["...", "\u2026", "... a ...", ". . ."])
def test_an_ellipsis_alone_stands_nowhere(quote: str) -> None:
    assert level(quote) == GroundingLevel.ABSENT


def test_a_quote_or_a_text_without_anything_is_none() -> None:
    assert level("") == level(" \n") == level("\u00ad") == GroundingLevel.NO_QUOTE
    assert level("anything", " \n") == GroundingLevel.NO_TEXT
    assert level("", "") == GroundingLevel.NO_QUOTE


def test_a_quote_of_two_characters_and_one_of_the_whole_paper_are_looked_up() -> None:
    assert level("Hc") == GroundingLevel.ABSENT
    assert level("cm") == GroundingLevel.EXACT
    assert level(TEXT) == GroundingLevel.EXACT
    assert found(" ".join(TEXT.split())).startswith("A Title")
    assert level(TEXT.lower() + "!") == GroundingLevel.NEAR
    assert level(TEXT + "and then it goes on for long, " * 20) == GroundingLevel.ABSENT


def test_a_capital_i_with_a_dot_moves_no_offset() -> None:
    text = "\u0130\u0130\u0130 then the measured gap is 1.02 meV in zero field"
    assert found("THEN the measured gap is 1.02 meV", text) == (
        "then the measured gap is 1.02 meV"
    )


PIECES = st.lists(
    st.sampled_from(
        (
            *("gap", "Tc", "K", "5", ".", "-", " ", "  ", "\n", "-\n", "\u00ad\n"),
            *("\u00ad", "\u200b", "\u00a0", "\u2212", "\u2014", "\u201c", "\u2019"),
            *("\ufb01", "e\u0301", "\u00e9", "\u2083", "\u00b5", "\uff21", "\u0130"),
            *("\u2026", "\u00bd", "\ud55c"),
        )
    ),
    max_size=40,
).map("".join)


@given(PIECES)
def test_folding_twice_changes_no_more_than_once(text: str) -> None:
    once = fold(text).text
    assert "\u00ad" not in once
    assert "\n" not in once
    assert "  " not in once
    assert fold(once).text == once


@given(PIECES, st.data())
def test_any_piece_of_a_text_is_exact_and_its_offsets_are_right(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    place = ground(PaperText(text), quote)
    if place.level is not GroundingLevel.NO_QUOTE:
        assert place.level is GroundingLevel.EXACT
        assert text[place.start : place.end] == quote.strip()


@given(PIECES, st.data())
def test_a_piece_of_the_folded_text_is_found_where_it_folds_from(
    text: str, data: st.DataObject
) -> None:
    folded = fold(text)
    start = data.draw(st.integers(0, len(folded.text)))
    end = data.draw(st.integers(start, len(folded.text)))
    quote = folded.text[start:end].strip()
    if not quote:
        return
    place = ground(PaperText(text), quote)
    assert place.level in GROUNDED
    assert place.start is not None
    assert place.end is not None
    assert quote in fold(text[place.start : place.end]).text


@given(st.text(max_size=60), st.text(max_size=60))
def test_grounding_never_raises_and_stays_within_the_text(
    text: str, quote: str
) -> None:
    place = ground(PaperText(text), quote)
    if place.start is not None and place.end is not None:
        assert 0 <= place.start < place.end <= len(text)


GROUNDING_TEXT = "The critical temperature of the single crystal is 10 K in zero field."
QUOTES = (
    GROUNDING_TEXT,
    "The critical ... is 10 K",
    GROUNDING_TEXT.replace("single crystal", "single-crystal"),
    "A sentence that nobody ever wrote about it.",
    "",
)


@pytest.mark.parametrize(("least", "kept"), [("none", 5), ("near", 3), ("grounded", 2)])
def test_rows_whose_quote_stands_less_well_are_left_out_and_told(
    least: Grounding, kept: int, tmp_path: Path
) -> None:
    (tmp_path / "P1.txt").write_text(GROUNDING_TEXT, encoding="utf-8")
    rows = tuple(
        Prediction(refno="P1", name="Tc", value="10", unit="K", quote=quote, row=at)
        for at, quote in enumerate(QUOTES, start=1)
    )
    results = measure_run(
        PropertyDataset(
            settings=PropertySettings(
                min_grounding=least, boot_b=0, pymatgen="leave_out"
            ),
            papers=read_papers(tmp_path),
            truth=TRUTH[:1],
            rubric=RUBRIC,
        ),
        RunPredictions(
            models=("m",),
            replicates=1,
            imported=True,
            predicted=(ReplicatePredictions(model="m", replicate=1, predictions=rows),),
        ),
    )
    column = results.columns["m"]
    counts = [column.metric(word).value for word in ("tp", "fp", "fn")]
    assert counts == [1, kept - 1, 0]
    assert (
        column.first.row_outcomes.prediction_outcomes.count(RowOutcome.UNGROUNDED)
        == len(QUOTES) - kept
    )
    told = {own.code: own.n for own in findings(results)}
    assert told.get("ungrounded", 0) == len(QUOTES) - kept
