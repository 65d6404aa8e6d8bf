"""Describes the available keys: in help, palette and the key line.

They are read from the bindings, so they are always correct.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen

from tui.render.glyphs import Glyphs
from tui.render.layout import MUTED
from tui.widgets.panel import TextBlock

CONTROL = "…"
"""Suffix of keys that change the run after confirmation."""
_MOVEMENT = "move."
"""Prefix of the ids of keys that only move a cursor."""
_BACK = "back"
"""Suffix of the ids of keys that go back."""
_WAYS_ON = ("commands", "help", "detach")
"""Ids of keys to everything else: the last to be dropped from the line of keys."""
_SCREEN, _EVERYWHERE = "this screen", "everywhere"
_CONTROL = "control; each asks for confirmation"
_GROUPS = (_SCREEN, _EVERYWHERE, _CONTROL)
_LEAST_TEXT = 20
"""Cells for a text in help, however narrow the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An action, and all its keys."""

    id: str
    names: tuple[str, ...]
    about: str
    more: str  #: a sentence about it, if there is one
    action: str
    node: DOMNode  #: the node of the action
    is_enabled: bool  #: False: not now, or read-only
    is_in_key_line: bool  #: shown in the line of keys, if there is space

    @property
    def is_movement(self) -> bool:
        """Whether it only moves a cursor."""
        return self.id.startswith(_MOVEMENT)

    @property
    def group(self) -> str:
        """The heading in help."""
        if self.about.endswith(CONTROL):
            return _CONTROL
        return _EVERYWHERE if isinstance(self.node, App) else _SCREEN

    @property
    def words(self) -> str:
        """Its text in the line of keys: the first key, and the action."""
        return f"{self.names[0]} {self.about}"


def keys_of(
    active: Iterable[ActiveBinding], display: Callable[[Binding], str]
) -> list[Key]:
    """Return the available actions, in the order of their bindings.

    Args:
        active: the bindings of a screen; those without an id (Textual's) or without a
            description are ignored.
        display: formats a key for users.
    """
    bindings_by_name: dict[tuple[str, str], list[ActiveBinding]] = {}
    for active_binding in active:
        if active_binding.binding.id is not None and active_binding.binding.description:
            name = active_binding.binding.id, active_binding.binding.description
            bindings_by_name.setdefault(name, []).append(active_binding)
    return [
        Key(
            id=name,
            names=tuple(
                dict.fromkeys(
                    display(active_binding.binding) for active_binding in same
                )
            ),
            about=about,
            more=same[0].tooltip,
            action=same[0].binding.action,
            node=same[0].node,
            is_enabled=same[0].enabled,
            is_in_key_line=any(active_binding.binding.show for active_binding in same),
        )
        for (name, about), same in bindings_by_name.items()
    ]


def help_lines(keys: Iterable[Key], width: int) -> list[str]:
    """Return the lines of each action, grouped by heading.

    A text that is too long for one line goes on below its own start.

    Args:
        keys: those to describe.
        width: cells of a line.
    """
    groups: dict[str, list[str]] = {name: [] for name in _GROUPS}
    for key in keys:
        not_now = "" if key.is_enabled else " (not now)"
        # where a slip would matter, what the key does
        is_explained = key.more and (key.group == _CONTROL or key.id == "detach")
        more = f": {key.more[:1].lower()}{key.more[1:]}" if is_explained else ""
        lead = f"  {' '.join(key.names):<16} "
        groups[key.group] += textwrap.wrap(
            f"{key.about}{more}{not_now}",
            max(width, len(lead) + _LEAST_TEXT),
            initial_indent=lead,
            subsequent_indent=" " * len(lead),
        )
    return [
        line for name, lines in groups.items() if lines for line in ("", name, *lines)
    ][1:]


def line_of_keys(
    keys: Iterable[Key], width: int, ahead: Sequence[str] = ()
) -> list[tuple[int, Key]]:
    """Return the keys that fit a line, each with its start cell.

    Keys for going back, to everything else, and out are at the end. Of the others, the
    screen's keys come first and commands to the run last; if space is scarce, the gap
    is one cell instead of two.

    Args:
        keys: those of a screen.
        width: cells of the line.
        ahead: ids of keys that come before all others.
    """
    order = {name: at - len(ahead) for at, name in enumerate(ahead)}
    visible_keys = sorted(
        (key for key in keys if key.is_in_key_line),
        key=lambda key: order.get(key.id, _rank(key)),
    )
    last = [key for key in visible_keys if key.id.endswith(_BACK)]
    last += [key for name in _WAYS_ON for key in visible_keys if key.id == name]
    first = [key for key in visible_keys if key not in last]
    for gap in (2, 1):
        end = width - 1 - _room(last, gap)
        fits = len(first) if gap > 1 else _fitting(first, end - 1 - gap)
        if 1 + _room(first[:fits], gap) + gap <= end:
            return [*_placed(first[:fits], 1, gap), *_placed(last, end, gap)]
    return _placed(last, 1, 1)  # a line cut at its end


def _rank(key: Key) -> int:
    return 0 if not isinstance(key.node, App) else _GROUPS.index(key.group)


def _room(keys: Sequence[Key], gap: int) -> int:
    return sum(cell_len(key.words) for key in keys) + gap * max(0, len(keys) - 1)


def _fitting(keys: Sequence[Key], width: int) -> int:
    return max(n for n in range(len(keys) + 1) if not n or _room(keys[:n], 1) <= width)


def _placed(keys: Sequence[Key], begin: int, gap: int) -> list[tuple[int, Key]]:
    return [
        (begin + _room(keys[:at], gap) + (gap if at else 0), key)
        for at, key in enumerate(keys)
    ]


class KeyLine(TextBlock):
    """Shows keys by importance; those for back, palette, help and quit are never cut.

    A click works like the key. Textual's footer cuts the last keys, and has a widget
    per key.
    """

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; }
    """

    def __init__(self, glyphs: Glyphs, ahead: Sequence[str] = ()) -> None:
        super().__init__("keys", glyphs)
        self._ahead = ahead  #: ids of keys that come before all others
        self._placed: list[tuple[int, Key]] = []

    def on_mount(self) -> None:
        """Subscribe to changes of bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._show_keys)

    def on_unmount(self) -> None:
        """Unsubscribe."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def on_resize(self, event: events.Resize) -> None:
        """Choose the keys for the new width."""
        del event
        self._show_keys(self.screen)

    def _show_keys(self, screen: Screen[object]) -> None:
        if screen is not self.screen or not self.size.width:
            return
        keys = keys_of(screen.active_bindings.values(), self.app.get_key_display)
        self._placed = line_of_keys(keys, self.size.width, self._ahead)
        line = Content()
        for begin, key in self._placed:
            name, about = key.names[0], f" {key.about}"
            line = Content.assemble(
                line,
                " " * (begin - line.cell_length),
                (name, "bold $accent" if key.is_enabled else MUTED),
                (about, "" if key.is_enabled else MUTED),
            )
        self.say(line)

    def on_click(self, event: events.Click) -> None:
        """Run the action of the key under the pointer."""
        for begin, key in self._placed:
            if begin <= event.x < begin + len(key.words) and key.is_enabled:
                self.app.call_later(self.app.run_action, key.action, key.node)
