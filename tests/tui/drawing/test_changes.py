"""What is sent of a drawing is what changed, and nothing that did is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size
from textual.content import Content
from textual.geometry import Region

from tui.widgets.panel import changes

WIDTH = 40
LINES = st.lists(
    st.lists(
        st.tuples(
            st.text("ab1 漢│", max_size=5), st.sampled_from(["", "bold", "$accent"])
        ),
        max_size=4,
    ),
    max_size=4,
)


def drawing(lines: list[list[tuple[str, str]]]) -> Content:
    return Content("\n").join(Content.assemble(*line) for line in lines)


def cells(content: Content) -> dict[tuple[int, int], object]:
    """What stands in each cell that is not empty."""
    found: dict[tuple[int, int], object] = {}
    for y, line in enumerate(content.split("\n", allow_blank=True)):
        x = 0
        for at, character in enumerate(line.plain):
            styles = [s.style for s in line.spans if s.start <= at < s.end]
            for part in range(get_character_cell_size(character)):
                found[x, y] = (character, part, styles)
                x += 1
    return found


@given(LINES, LINES)
def test_a_cell_outside_of_what_is_named_is_as_it_was(
    before: list[list[tuple[str, str]]], after: list[list[tuple[str, str]]]
) -> None:
    old, new = drawing(before), drawing(after)
    named = changes(old, new, WIDTH)
    was, now = cells(old), cells(new)
    moved = {at for at in was.keys() | now.keys() if was.get(at) != now.get(at)}
    assert all(any(region.contains(*at) for region in named) for at in moved)
    assert all(region.right <= WIDTH for region in named)
    assert bool(named) <= (not new.is_same(old))


def test_a_clock_that_ticks_is_a_cell() -> None:
    old = Content.assemble("as of ", ("01:19:25", "bold"), " UTC")
    new = Content.assemble("as of ", ("01:19:26", "bold"), " UTC")
    assert changes(old, new, WIDTH) == [Region(13, 0, 1, 1)]


def test_where_a_line_may_be_wrapped_nothing_is_named() -> None:
    assert changes(Content("short"), Content("x" * (WIDTH + 1)), WIDTH) == []
