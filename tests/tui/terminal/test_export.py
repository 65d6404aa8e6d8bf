"""What the monitor writes for a person: safe names, and never beside a log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App

from tui.terminal.export import CaptureError, copy_text, file_name, write_new

AT_US = 1_767_225_600_000_000


@given(st.none() | st.text(), st.text())
def test_a_name_is_safe_whatever_a_run_is_called(run_id: str | None, what: str) -> None:
    name = file_name(run_id, what, AT_US, "svg")
    assert re.fullmatch(r"siftlog-[A-Za-z0-9._-]+\.svg", name)
    assert len(name) < 200


def test_a_name_says_run_screen_and_time() -> None:
    assert file_name("../etc/x", "Run one", AT_US, "txt") == (
        "siftlog-etc-x-Run-one-20260101T000000Z.txt"
    )


def test_a_file_is_made_once(tmp_path: Path) -> None:
    path = write_new(tmp_path, "a.txt", "▶ live \ud800\n")
    assert path.read_text("utf-8") == "▶ live \\ud800\n"
    with pytest.raises(CaptureError, match="is there already"):
        write_new(tmp_path, "a.txt", "other")
    assert path.read_text("utf-8").startswith("▶ live")


def test_nothing_is_written_into_a_run(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()
    below = tmp_path / "scores"
    below.mkdir()
    for folder in (tmp_path, below):
        with pytest.raises(CaptureError, match="belongs to the run"):
            write_new(folder, "a.txt", "text")
    assert not list(below.iterdir())


def test_a_folder_that_takes_nothing_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be written"):
        write_new(tmp_path / "gone", "a.txt", "text")


def test_half_a_character_is_copied_by_its_number() -> None:
    app = App[None]()
    assert not copy_text(app, "half \ud800")
    assert app.clipboard == "half \\ud800"
