"""Keys as help and the palette name them: one line an action, in three groups."""

from __future__ import annotations

from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.widget import Widget

from tui.drawing.keys import help_lines, keys_of

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
