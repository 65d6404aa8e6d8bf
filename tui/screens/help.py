"""The keys of a screen, from its bindings themselves: it cannot be wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "plus": "+",
    "minus": "-",
    "escape": "esc",
    "right": "→",
}


class HelpScreen(ModalScreen[None]):
    """A list of keys over the screen that they belong to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close", id="close")
    ]

    def __init__(self, bindings: Iterable[ActiveBinding]) -> None:
        super().__init__()
        self._lines = _lines(bindings)

    def compose(self) -> ComposeResult:
        """The keys, and what they do."""
        with VerticalScroll(id="help") as box:
            box.border_title = "keys"
            box.border_subtitle = "esc closes"
            yield Static("\n".join(self._lines), markup=False)


def _lines(bindings: Iterable[ActiveBinding]) -> list[str]:
    """A line for each action, with all of its keys."""
    keys: dict[str, list[str]] = {}
    for active in bindings:
        binding = active.binding
        if binding.description and not binding.system:
            name = _NAMES.get(binding.key, binding.key)
            keys.setdefault(binding.description, []).append(name)
    return [f"{' '.join(names):<18} {what}" for what, names in keys.items()]
