"""The screens about a run: none is imported before somebody goes there."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

from textual.screen import Screen

from tui.run_screens import RUN_SCREENS


def test_every_place_names_a_screen_and_no_key_or_name_twice() -> None:
    for place in RUN_SCREENS:
        module, _, name = place.screen.partition(":")
        assert issubclass(getattr(import_module(module), name), Screen)
    assert len({place.key for place in RUN_SCREENS}) == len(RUN_SCREENS)
    assert len({place.name for place in RUN_SCREENS}) == len(RUN_SCREENS)


def test_the_monitor_starts_without_the_screens_that_are_not_in_front() -> None:
    code = "import sys, tui.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tui.screens.run" in loaded
    assert not {place.screen.partition(":")[0] for place in RUN_SCREENS} & set(loaded)
