"""Two texts are compared line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.task_pane import MOST, difference


def test_what_went_and_what_came_stand_under_one_another() -> None:
    lines = difference("a\nb\nc", "a\nB\nc").split("\n")
    assert lines == ["@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"]
    assert difference("a", "a") == ""


def test_only_so_many_lines_are_compared() -> None:
    said = difference("x\n" * MOST, "x\n" * MOST + "y")
    assert said == "… only the first 5,000 lines are compared"


@given(st.text("ab\n", max_size=40), st.text("ab\n", max_size=40))
def test_no_line_is_lost(before: str, after: str) -> None:
    said = difference(before, after).split("\n")
    came = sum(line.startswith("+") for line in said)
    went = sum(line.startswith("-") for line in said)
    assert came - went == after.count("\n") - before.count("\n")
