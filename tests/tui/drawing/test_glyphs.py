"""Signs that take one cell each, and what takes their place."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from store.query import parse_query
from store.task import TaskState
from tui.render.glyphs import ASCII, STATE_WORDS, UNICODE, Glyphs, glyphs_for


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_state_has_a_sign_of_one_cell_that_no_other_has(glyphs: Glyphs) -> None:
    signs = [glyphs.states[state] for state in TaskState]
    assert [cell_len(sign) for sign in signs] == [1] * len(TaskState)
    assert len(set(signs)) == len(TaskState)


def test_plain_signs_are_ascii() -> None:
    assert "".join(ASCII.states.values()).isascii()
    rest = (ASCII.levels, ASCII.full, ASCII.blank, ASCII.mark, ASCII.rule)
    assert "".join((*rest, ASCII.cursor, ASCII.loading, ASCII.eighths)).isascii()


@pytest.mark.parametrize(
    ("environment", "glyphs"),
    [
        ({"LANG": "en_GB.UTF-8", "TERM": "xterm-256color"}, UNICODE),
        ({"LANG": "C.utf8"}, UNICODE),
        ({"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, ASCII),
        ({"LC_ALL": "", "LANG": "en_GB.UTF-8"}, UNICODE),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LANG": "en_GB.UTF-8", "TERM": "linux"}, ASCII),
        ({"LANG": "en_GB.UTF-8", "TERM": "dumb"}, ASCII),
        ({}, ASCII),
    ],
)
def test_the_terminal_and_the_locale_decide(
    environment: dict[str, str], glyphs: Glyphs
) -> None:
    assert glyphs_for(environment) is glyphs


def test_a_filter_understands_every_word_on_the_screen() -> None:
    for state, word in STATE_WORDS.items():
        assert parse_query(f"state:{word}").parameters() == (int(state),)
