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


#: Machado, Oliveira, Fernandes 2009, table of severity 1.0; on linear RGB.
MACHADO: dict[str, tuple[tuple[float, ...], ...]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
#: sRGB to XYZ, D65 (IEC 61966-2-1).
XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)
COLOURED = [DARK, LIGHT, CONTRAST]

Vector = tuple[float, ...]


def _linear(colour: str) -> Vector:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in values
    )


def _times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def _luminance(colour: str) -> float:
    return _times(XYZ, _linear(colour))[1]


def _contrast(one: str, other: str) -> float:
    dim, bright = sorted((_luminance(one), _luminance(other)))
    return (bright + 0.05) / (dim + 0.05)


def _root(value: float) -> float:
    """The curve of CIE 1976 L*a*b*."""
    linear: float = value * 841 / 108 + 4 / 29
    return float(value ** (1 / 3)) if value > 216 / 24389 else linear


def _lab(colour: str, vision: str) -> Vector:
    seen = _times(MACHADO[vision], _linear(colour))
    clamped = tuple(min(1.0, max(0.0, value)) for value in seen)
    x, y, z = (
        _root(value / white)
        for value, white in zip(_times(XYZ, clamped), WHITE, strict=True)
    )
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


def _distance(one: Vector, other: Vector) -> float:
    """CIE76."""
    return float(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5)


def test_the_formulas_know_black_white_and_red() -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21, abs=0.01)
    assert _lab("#ffffff", "normal") == pytest.approx((100, 0, 0), abs=0.01)
    assert _lab("#ff0000", "normal") == pytest.approx((53.24, 80.09, 67.2), abs=0.1)


@pytest.mark.parametrize("palette", COLOUR_THEMES, ids=lambda palette: palette.name)
def test_every_state_can_be_read_on_its_ground(palette: ColourTheme) -> None:
    for colour in (*astuple(palette.states), palette.accent, palette.foreground):
        assert _contrast(colour, palette.background) >= 4.5
    assert _contrast(palette.foreground, palette.background) >= 7
    assert _contrast(palette.foreground, palette.panel) >= 7


@pytest.mark.parametrize("vision", MACHADO)
@pytest.mark.parametrize("palette", COLOURED, ids=lambda palette: palette.name)
def test_any_two_states_differ_for_every_eye(palette: ColourTheme, vision: str) -> None:
    seen = [_lab(colour, vision) for colour in astuple(palette.states)]
    assert min(_distance(a, b) for a, b in combinations(seen, 2)) >= 20


def test_the_high_contrast_is_higher() -> None:
    assert all(
        _contrast(colour, CONTRAST.background) >= 7
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
