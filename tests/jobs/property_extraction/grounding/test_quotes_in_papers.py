"""Where quotes stand in papers: the six levels, and offsets into the raw text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.grounding import (
    ELIDED_CHARS,
    GROUNDED,
    GroundingLevel,
    PaperText,
    QuoteMatch,
    fold,
    ground,
)

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
