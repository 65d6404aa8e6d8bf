"""Where NO_COLOR is set, no colour reaches the terminal and marks are still seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from tui.render.colours import COLOUR_THEMES, NoColours

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
