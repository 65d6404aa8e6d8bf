"""What is sent of a drawing is what changed, and nothing that did is left out.

Figures of a screen: of one width, rounded so that they never promise too much. Signs
that take one cell each, and what takes their place. Keys as help and the palette name
them: one line an action, in three groups.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size
from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from store.query import parse_query
from store.task import TaskState
from tui.render.format import UNKNOWN, amount, count, duration, latency, money, percent
from tui.render.glyphs import ASCII, STATE_WORDS, UNICODE, Glyphs, glyphs_for
from tui.widgets.keys import CONTROL, Key, help_lines, keys_of, line_of_keys
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


def named_changes(old: Content, new: Content) -> list[Region]:
    before, after = (text.split("\n", allow_blank=True) for text in (old, new))
    return changes(before, after, WIDTH)


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
    named = named_changes(old, new)
    was, now = cells(old), cells(new)
    moved = {at for at in was.keys() | now.keys() if was.get(at) != now.get(at)}
    assert all(any(region.contains(*at) for region in named) for at in moved)
    assert all(region.right <= WIDTH for region in named)
    assert bool(named) <= (not new.is_same(old))


def test_a_clock_that_ticks_is_a_cell() -> None:
    old = Content.assemble("as of ", ("01:19:25", "bold"), " UTC")
    new = Content.assemble("as of ", ("01:19:26", "bold"), " UTC")
    assert named_changes(old, new) == [Region(13, 0, 1, 1)]


def test_what_is_unknown_is_never_zero() -> None:
    assert {count(None), amount(None), duration(None), latency(None)} == {UNKNOWN}
    assert percent(None) == UNKNOWN
    assert money(None) == "?"
    assert "0" in amount(0)


@given(st.floats(0, 1e12))
def test_an_amount_takes_at_most_five_cells(value: float) -> None:
    assert len(amount(value)) <= 6


@given(st.floats(0, 86_400 * 99))
def test_a_duration_takes_at_most_nine_cells(seconds: float) -> None:
    assert len(duration(seconds)) <= 9


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_a_hundred_percent_is_all_of_it(part: int, whole: int) -> None:
    share = min(part, whole) / whole
    for tenths in (True, False):
        is_full = percent(share, tenths=tenths).startswith("100")
        assert is_full == (part >= whole)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (999, "999"),
        (999.6, "1.0 k"),
        (1000, "1 k"),
        (9_960, "10 k"),
        (999_900, "1.0 M"),
    ],
)
def test_an_amount_that_rounds_up_takes_the_next_unit(value: float, shown: str) -> None:
    assert amount(value) == shown


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_state_has_a_sign_of_one_cell_that_no_other_has(glyphs: Glyphs) -> None:
    signs = [glyphs.states[state] for state in TaskState]
    assert [cell_len(sign) for sign in signs] == [1] * len(TaskState)
    assert len(set(signs)) == len(TaskState)


def test_plain_signs_are_ascii() -> None:
    assert "".join(ASCII.states.values()).isascii()
    rest = (ASCII.levels, ASCII.full, ASCII.blank, ASCII.mark, ASCII.rule)
    assert "".join((*rest, ASCII.cursor, ASCII.loading, ASCII.eighths)).isascii()


@pytest.mark.parametrize(
    ("environment", "glyphs"),
    [
        ({"LANG": "en_GB.UTF-8", "TERM": "xterm-256color"}, UNICODE),
        ({"LANG": "C.utf8"}, UNICODE),
        ({"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, ASCII),
        ({"LC_ALL": "", "LANG": "en_GB.UTF-8"}, UNICODE),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LANG": "en_GB.UTF-8", "TERM": "linux"}, ASCII),
        ({"LANG": "en_GB.UTF-8", "TERM": "dumb"}, ASCII),
        ({}, ASCII),
    ],
)
def test_the_terminal_and_the_locale_decide(
    environment: dict[str, str], glyphs: Glyphs
) -> None:
    assert glyphs_for(environment) is glyphs


def test_a_filter_understands_every_word_on_the_screen() -> None:
    for state, word in STATE_WORDS.items():
        assert parse_query(f"state:{word}").parameters() == (int(state),)


APP: App[None] = App()
WIDGET = Widget()


def active(
    node: App[None] | Widget, *, enabled: bool = True, **binding: str
) -> ActiveBinding:
    return ActiveBinding(node, Binding(**binding), enabled)  # type: ignore[arg-type]


def test_help_has_a_line_for_each_action_under_its_group() -> None:
    keys = keys_of(
        [
            active(APP, key="q", action="detach", description="Quit", id="detach"),
            active(WIDGET, key="j", action="move", description="Down", id="move.down"),
            active(
                WIDGET, key="down", action="move", description="Down", id="move.down"
            ),
            active(
                WIDGET,
                key="P",
                action="pause",
                description="Pause…",
                id="pause",
                enabled=False,
            ),
            active(WIDGET, key="x", action="x", description="Not ours"),
            active(WIDGET, key="z", action="z", id="says-nothing"),
        ],
        lambda binding: binding.key,
    )
    assert [(key.names, key.is_movement) for key in keys] == [
        (("q",), False),
        (("j", "down"), True),
        (("P",), False),
    ]
    assert [line.rstrip() for line in help_lines(keys, 70)] == [
        "this screen",
        "  j down           Down",
        "",
        "everywhere",
        "  q                Quit",
        "",
        "control; each asks for confirmation",
        "  P                Pause… (not now)",
    ]


def test_a_long_text_in_help_goes_on_below_its_start() -> None:
    stop = active(APP, key="C", action="cancel", description="Stop…", id="cancel")
    about = "End the run: drain it, or cancel it"
    keys = keys_of([stop._replace(tooltip=about)], lambda binding: binding.key)
    assert help_lines(keys, 42) == [
        "control; each asks for confirmation",
        "  C                Stop…: end the run:",
        "                   drain it, or cancel it",
    ]


def shown(number: int, *, group: str = "", id: str = "") -> Key:  # noqa: A002 - its name
    return Key(
        id=id or f"k{number}",
        names=(str(number),),
        about=f"Do {number}{CONTROL if group == 'control' else ''}",
        more="",
        action="",
        node=WIDGET if not group else APP,
        is_enabled=True,
        is_in_key_line=True,
    )


LAST = [
    shown(1, group="app", id="detach"),
    shown(2, group="app", id="commands"),
    shown(3, id="some.back"),
]


@given(st.integers(0, 12), st.integers(40, 160))
def test_the_line_of_keys_never_cuts_what_leads_on(others: int, width: int) -> None:
    first = [shown(10 + number) for number in range(others)]
    line = line_of_keys([*LAST, *first], width)
    names = [key.id for _, key in line]
    assert names[-3:] == ["some.back", "commands", "detach"]
    assert names[:-3] == [key.id for key in first][: len(line) - 3]
    end = 0
    for begin, key in line:
        assert begin > end - (not end)
        end = begin + len(key.words)
    assert end == width - 1


def test_what_asks_something_of_a_run_is_the_last_that_finds_room() -> None:
    keys = [shown(4, group="control"), shown(5, group="app"), shown(6), *LAST]
    names = [[key.names[0] for _, key in line_of_keys(keys, w)] for w in (60, 36)]
    assert names == [["6", "5", "4", "3", "2", "1"], ["6", "5", "3", "2", "1"]]


def test_keys_that_come_ahead_are_in_the_narrowest_line() -> None:
    words = {"space": "Freeze", "t": "Tasks", "P": "Pause…", "L": "Limits…"}
    keys = keys_of(
        [
            active(APP, key=key, action="a", description=word, id=word.lower())
            for key, word in words.items()
        ],
        lambda binding: binding.key,
    )
    ahead = ("pause…", "limits…", "tasks")
    placed = line_of_keys(keys, 32, ahead)
    assert [key.words for _, key in placed] == ["P Pause…", "L Limits…", "t Tasks"]
    every = [key.words for _, key in line_of_keys(keys, 80, ahead)]
    assert every == ["P Pause…", "L Limits…", "t Tasks", "space Freeze"]
