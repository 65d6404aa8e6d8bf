"""Keys as help and the palette name them: one line an action, in three groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.widget import Widget

from tui.widgets.keys import CONTROL, Key, help_lines, keys_of, line_of_keys

APP: App[None] = App()
WIDGET = Widget()


def active(
    node: App[None] | Widget, *, enabled: bool = True, **binding: str
) -> ActiveBinding:
    return ActiveBinding(node, Binding(**binding), enabled)  # type: ignore[arg-type]


def test_help_has_a_line_for_each_action_under_its_group() -> None:
    keys = keys_of(
        [
            active(APP, key="q", action="detach", description="Detach", id="detach"),
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
    assert [line.rstrip() for line in help_lines(keys)] == [
        "this screen",
        "  j down           Down",
        "",
        "everywhere",
        "  q                Detach",
        "",
        "control, each asks before it acts",
        "  P                Pause… (not now)",
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
