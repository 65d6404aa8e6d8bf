"""Text fits a terminal, and stays what it was."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runner.cli.console import fold_text
from tests.processes import siftlog
from tests.terminals import on_terminal

TABLE = """\
model             recall              paper score         precision
baseline/lexical  0.912 [0.79, 1.00]  0.598 [0.38, 0.80]  0.919
some-model        0.562 [0.25, 0.88]  n/a                 0.558"""


def test_a_table_that_fits_is_left_alone() -> None:
    assert fold_text(TABLE, 67) == TABLE


def test_a_wide_table_is_told_in_several_that_repeat_the_first_column() -> None:
    assert fold_text(TABLE, 60).split("\n") == [
        "model             recall              paper score",
        "baseline/lexical  0.912 [0.79, 1.00]  0.598 [0.38, 0.80]",
        "some-model        0.562 [0.25, 0.88]  n/a",
        "model             precision",
        "baseline/lexical  0.919",
        "some-model        0.558",
    ]


def test_a_labelled_line_goes_on_below_what_the_label_names() -> None:
    assert fold_text("cost      $1.00, model-a $0.60, budget $5.00", 40).split(
        "\n"
    ) == [
        "cost      $1.00, model-a $0.60, budget",
        "          $5.00",
    ]


def test_quoted_text_keeps_its_margin() -> None:
    assert fold_text("   | one two three four", 14).split("\n") == [
        "   | one two",
        "   | three",
        "   | four",
    ]


def test_a_command_or_path_is_never_broken() -> None:
    path = "/".join(["folder"] * 20)
    assert path in fold_text(f"files: {path}", 40).split("\n  ")


LINES = st.text(st.sampled_from("ab,|  "), max_size=80)


@given(st.lists(LINES, min_size=1).map("\n".join), st.integers(20, 60))
def test_no_word_is_lost_and_a_line_is_too_long_only_for_one_word(
    text: str, width: int
) -> None:
    shown = fold_text(text, width)
    assert set(shown.split()) == set(text.split())
    for line in shown.split("\n"):
        assert len(line.rstrip()) <= width or len(line.split()) <= 2
    # what is continued is indented: it cannot pass for a line of its own
    begun = [line for line in shown.split("\n") if line[:1].strip()]
    firsts = {line.split()[0] for line in text.split("\n") if line[:1].strip()}
    assert {line.split()[0] for line in begun} <= firsts


def test_a_terminal_gets_lines_that_fit_and_a_pipe_gets_them_whole(
    tmp_path: Path,
) -> None:
    siftlog("run", "paper-investigation", "--run-id=r", cwd=tmp_path)
    words = ("COLUMNS=80", "SIFTLOG", "score", "r", "--no-record")
    with on_terminal(words, cwd=tmp_path) as terminal:
        shown = terminal.read_until(b"next: ").decode().splitlines()
    assert [line for line in shown if len(line) > 80] == []
    assert sum(line.startswith("baseline/lexical  ") for line in shown) == 2
    piped = siftlog("score", "r", "--no-record", cwd=tmp_path).stdout.splitlines()
    assert sum(line.startswith("baseline/lexical  ") for line in piped) == 1
