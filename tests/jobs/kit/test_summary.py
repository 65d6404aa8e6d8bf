"""A summary's lines are bounded, and a wide table keeps its columns."""

from __future__ import annotations

from jobs.kit.summary import LINE_CHARS, finding_lines, summary_text
from runner.scorecard import Finding
from store.document import wide_table


def test_lines_are_bounded_and_harmless() -> None:
    text = summary_text(["a" * 300, "b\x1b\nc"])
    assert text == f"{'a' * (LINE_CHARS - 1)}…\nb\u241b\u240ac\n"


def test_a_wide_table_aligns_and_may_lose_a_column_without_values() -> None:
    table = wide_table(["model", "p", "q"], [["m" * 90, "1", None], ["n", "2", None]])
    lines = summary_text([table.filled()]).split("\n")
    assert lines == [f"model{'':85}  p", f"{'m' * 90}  1", f"n{'':89}  2", ""]


def test_findings_that_only_inform_are_left_out() -> None:
    finding = Finding(code="x", severity="warn", where="m", message="Odd.", n=2)
    info = Finding(code="y", severity="info", where="m", message="So.")
    assert finding_lines([finding, info]) == ["m: Odd. (2)"]
