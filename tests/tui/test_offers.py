"""What the palette offers can be done, and is named in plain words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from store.query import parse_query
from store.runs import RunFolder
from tests.tui.hostile import HOSTILE
from tests.tui.sights import snapshot
from tui.screens import palette


def test_every_filter_can_be_read(tmp_path: Path) -> None:
    asked: list[str] = []
    for command in palette.task_commands(snapshot(tmp_path / "r1"), asked.append):
        command.callback()
    assert "err:Overloaded" in asked
    assert "state:failed stage:ask" in asked
    assert all(parse_query(expression).terms for expression in asked)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_no_plain_word_is_not_offered(tmp_path: Path, name: str) -> None:
    live = snapshot(tmp_path / "r1")
    errors = (replace(live.facts.errors[0], error=name),)
    odd = replace(live, facts=replace(live.facts, errors=errors))
    titles = [each.title for each in palette.task_commands(odd, lambda _: None)]
    titles += [
        each.title for each in palette.run_commands([RunFolder(Path(name))], print)
    ]
    assert not any("error" in title or "Run" in title for title in titles)


def test_runs_are_offered_by_name() -> None:
    chosen: list[RunFolder] = []
    folder = RunFolder(Path("runs/1120-a"))
    (command,) = palette.run_commands([folder], chosen.append)
    command.callback()
    assert command.title == "Run 1120-a"
    assert chosen == [folder]
