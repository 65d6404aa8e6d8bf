"""The keys that move a cursor: the same ones on everything that can be scrolled."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from tui.lists.pages import Move

_KEYS = {
    Move.DOWN: ("j,down", "Down"),
    Move.UP: ("k,up", "Up"),
    Move.FIRST: ("g,home", "First"),
    Move.LAST: ("G,end", "Last"),
    Move.HALF_DOWN: ("ctrl+d", "Half a page down"),
    Move.HALF_UP: ("ctrl+u", "Half a page up"),
    Move.PAGE_DOWN: ("pagedown", "Page down"),
    Move.PAGE_UP: ("pageup", "Page up"),
}

MOVES: tuple[BindingType, ...] = tuple(
    Binding(
        keys,
        f"move('{move.name}')",
        about,
        id=f"move.{move.name.lower().replace('_', '-')}",
        show=False,
    )
    for move, (keys, about) in _KEYS.items()
)
"""For a widget that has `action_move`."""
