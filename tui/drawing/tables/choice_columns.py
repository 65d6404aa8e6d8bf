"""What a table shows of what a run can be compared with."""

from __future__ import annotations

from collections.abc import Mapping

from tui.drawing.format import count
from tui.drawing.tables.columns import Column
from tui.drawing.tables.compare_words import sides
from tui.drawing.tables.comparison import has
from tui.sources.choices import Choice


def choices_wanted(listed: Mapping[int, Choice], part: str) -> dict[int, Choice]:
    """The choices whose runs or models have *part*."""
    return {n: each for n, each in listed.items() if has(" ".join(each.words), part)}


def about_choice(choice: Choice) -> str:
    """What would be compared, whole."""
    return f"enter compares {sides(choice.words)} · {_state(choice)}"


def _state(choice: Choice) -> str:
    return choice.state.replace("_", " ")


def _ended(choice: Choice) -> str:
    return f"{count(choice.ended)} of {count(choice.planned)}"


CHOICE_COLUMNS: tuple[Column[Choice], ...] = (
    Column(title="A, of this run", width=24, text=lambda each: each.a, grows=True),
    Column(title="B", width=40, text=lambda each: each.b, grows=True),
    Column(title="run", width=12, text=_state, drops=1),
    Column(title="ended", width=17, text=_ended, is_right=True, drops=2),
)
