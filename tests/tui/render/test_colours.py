"""Where NO_COLOR is set, no colour reaches the terminal and marks are still seen.

Colours that everybody can tell apart and read.
"""

from __future__ import annotations

from dataclasses import astuple
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from tests.colour_vision import VISIONS, contrast, distance, lab
from tui.render.colours import (
    COLOUR_THEMES,
    CONTRAST,
    DARK,
    LIGHT,
    MONOCHROME,
    ColourTheme,
    NoColours,
    state_variables,
)

GROUND = Color(0, 0, 0)
COLOURS = st.none() | st.sampled_from(["#000000", "#d0d0d0", "red", "default"])


def plain(style: Style, *, is_dark: bool = True) -> Style:
    """A style as the filter leaves it."""
    (segment,) = NoColours(is_dark=is_dark).apply([Segment("x", style)], GROUND)
    assert segment.style is not None
    return segment.style


@given(COLOURS, COLOURS, st.booleans(), st.booleans())
def test_no_colour_is_left(
    colour: str | None, ground: str | None, is_bold: bool, is_dark: bool
) -> None:
    style = Style(color=colour, bgcolor=ground, bold=is_bold)
    left = plain(style, is_dark=is_dark)
    assert left.color is None
    assert left.bgcolor is None
    assert bool(left.bold) is is_bold


def test_what_stands_on_a_ground_of_its_own_is_reversed_in_every_theme_of_ours() -> (
    None
):
    for palette in COLOUR_THEMES:
        is_dark = palette.is_dark
        for ground, is_marked in (
            (palette.background, False),
            (palette.panel, False),
            (palette.foreground, True),
        ):
            left = plain(Style(bgcolor=ground), is_dark=is_dark)
            assert bool(left.reverse) is is_marked, (palette.name, ground)
            # what is reversed there already is set right again
            twice = plain(Style(bgcolor=ground, reverse=True), is_dark=is_dark)
            assert bool(twice.reverse) is not is_marked


def test_lines_that_have_no_style_stay() -> None:
    segment = Segment("x")
    assert NoColours(is_dark=True).apply([segment], GROUND) == [segment]


COLOURED = [DARK, LIGHT, CONTRAST]


def test_the_formulas_know_black_white_and_red() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21, abs=0.01)
    assert lab("#ffffff", "normal") == pytest.approx((100, 0, 0), abs=0.01)
    assert lab("#ff0000", "normal") == pytest.approx((53.24, 80.09, 67.2), abs=0.1)


@pytest.mark.parametrize("palette", COLOUR_THEMES, ids=lambda palette: palette.name)
def test_every_state_can_be_read_on_its_ground(palette: ColourTheme) -> None:
    for colour in (*astuple(palette.states), palette.accent, palette.foreground):
        assert contrast(colour, palette.background) >= 4.5
    assert contrast(palette.foreground, palette.background) >= 7
    assert contrast(palette.foreground, palette.panel) >= 7


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("palette", COLOURED, ids=lambda palette: palette.name)
def test_any_two_states_differ_for_every_eye(palette: ColourTheme, vision: str) -> None:
    seen = [lab(colour, vision) for colour in astuple(palette.states)]
    assert min(distance(a, b) for a, b in combinations(seen, 2)) >= 20


def test_the_high_contrast_is_higher() -> None:
    assert all(
        contrast(colour, CONTRAST.background) >= 7
        for colour in astuple(CONTRAST.states)
    )


def test_monochrome_is_one_grey() -> None:
    assert len(set(astuple(MONOCHROME.states))) == 1


@pytest.mark.parametrize("name", sorted(BUILTIN_THEMES))
def test_a_theme_that_is_not_ours_has_a_colour_for_every_state(name: str) -> None:
    theme = BUILTIN_THEMES[name]
    variables = state_variables(theme)
    assert set(variables) == set(DARK.states.variables())
    if theme.ansi:
        assert all(value.startswith("ansi_") for value in variables.values())


def test_a_theme_of_ours_brings_its_own_colours() -> None:
    app: App[None] = App()
    for palette in COLOUR_THEMES:
        app.register_theme(palette.theme())
    app.theme = LIGHT.name
    assert app.get_css_variables()["state-failed"] == LIGHT.states.failed
