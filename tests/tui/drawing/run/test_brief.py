"""A run in eight lines: never more, whatever the run is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tui.sights import HOSTILE, every_state, snapshot, with_status
from tui.inline import LINES, brief
from tui.render.glyphs import UNICODE
from tui.render.layout import Room


@pytest.mark.parametrize("width", [40, 80, 160])
def test_every_state_takes_eight_lines(tmp_path: Path, width: int) -> None:
    for state, seen in every_state(tmp_path / "r1"):
        text = brief(seen, Room(width=width, height=LINES, glyphs=UNICODE)).plain
        lines = text.split("\n")
        assert len(lines) == LINES
        assert state.replace("_", " ")[: width - 20] in lines[0]
        assert max(map(len, lines)) <= width


def test_errors_are_counted_by_class_and_stages_beyond_the_room_are(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")
    lane = live.status.queues[0]
    many = with_status(
        live,
        run_id=HOSTILE,
        lanes=[replace(lane, stage=f"stage-{n}") for n in range(9)],
    )
    text = brief(many, Room(width=100, height=LINES, glyphs=UNICODE)).plain
    assert len(text.split("\n")) == LINES
    assert "and 7 more" in text
    assert "failed attempts: Overloaded 3" in text
    assert all(character.isprintable() or character == "\n" for character in text)
