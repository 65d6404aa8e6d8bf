"""The keys that can be pressed, as help and the palette name them.

They are read from the bindings themselves, so that neither can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from textual.app import App
from textual.binding import ActiveBinding, Binding
from textual.dom import DOMNode

CONTROL = "…"
"""Ends what a key does that changes the run, after a question."""
_MOVEMENT = "move."
"""Begins the ids of keys that only move a cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An action, and every key that does it."""

    id: str
    names: tuple[str, ...]
    about: str
    more: str  #: a sentence about it, where there is one
    action: str
    node: DOMNode  #: what the action belongs to
    is_enabled: bool  #: False: not now, or not in a monitor that only reads

    @property
    def is_movement(self) -> bool:
        """Whether it does nothing but move a cursor."""
        return self.id.startswith(_MOVEMENT)

    @property
    def group(self) -> str:
        """What help lists it under."""
        if self.about.endswith(CONTROL):
            return "control, each asks before it acts"
        return "everywhere" if isinstance(self.node, App) else "this screen"


def keys_of(
    active: Iterable[ActiveBinding], display: Callable[[Binding], str]
) -> list[Key]:
    """What can be done, in the order of its bindings.

    Args:
        active: the bindings of a screen; those without an id, which are Textual's own,
            and those that say nothing of themselves are left out.
        display: a key as a person knows it.
    """
    found: dict[tuple[str, str], list[ActiveBinding]] = {}
    for each in active:
        if each.binding.id is not None and each.binding.description:
            name = each.binding.id, each.binding.description
            found.setdefault(name, []).append(each)
    return [
        Key(
            id=name,
            names=tuple(dict.fromkeys(display(each.binding) for each in same)),
            about=about,
            more=same[0].tooltip,
            action=same[0].binding.action,
            node=same[0].node,
            is_enabled=same[0].enabled,
        )
        for (name, about), same in found.items()
    ]


def help_lines(keys: Iterable[Key]) -> list[str]:
    """A line for each action under the name of its group."""
    groups: dict[str, list[str]] = {"this screen": [], "everywhere": []}
    for key in keys:
        not_now = "" if key.is_enabled else " (not now)"
        line = f"  {' '.join(key.names):<16} {key.about}{not_now}"
        groups.setdefault(key.group, []).append(line)
    return [
        line for name, lines in groups.items() if lines for line in ("", name, *lines)
    ][1:]
