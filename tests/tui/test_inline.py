"""The monitor under the prompt: it leaves by itself, and says what it saw."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.store.memory_log import FakeClock
from tests.tui.sights import FakeSource, snapshot, with_signs
from tui.inline import InlineMonitor, InlineScreen
from tui.render.colours import DARK
from tui.render.glyphs import UNICODE
from tui.sources.run_snapshot import ReadProblem, SnapshotOrProblem


def inline(
    *sights: SnapshotOrProblem, keys: tuple[str, ...] = ()
) -> tuple[InlineMonitor, str]:
    """An inline monitor that saw that, and what it showed last."""
    source = FakeSource(list(sights))
    app = InlineMonitor(source, FakeClock(), glyphs=UNICODE, theme=DARK.name)

    async def watch() -> str:
        async with app.run_test(size=(100, 8)) as pilot:
            await pilot.pause()
            screen = app.screen
            assert isinstance(screen, InlineScreen)
            for _ in sights[1:]:
                screen.poll()
                await pilot.pause()
            strips = screen._compositor.render_strips()
            await pilot.press(*keys)
            return "\n".join(strip.text for strip in strips)

    shown = asyncio.run(watch())
    assert source.is_closed
    return app, shown


def test_q_leaves_and_the_run_goes_on(tmp_path: Path) -> None:
    app, shown = inline(snapshot(tmp_path / "r1"), keys=("q",))
    assert "▶ live" in shown
    assert "q quits, the run continues" in shown
    assert app.return_value == "The monitor has quit; r1 continues."


def test_it_leaves_when_the_run_has_ended(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    app, shown = inline(live, with_signs(live, phase="run_finished"))
    assert "✓ finished" in shown
    assert app.return_value == ""
    assert not app.return_code


def test_a_log_that_goes_away_ends_it_with_an_error(tmp_path: Path) -> None:
    app, _ = inline(snapshot(tmp_path / "r1"), ReadProblem(sentence="it is gone"))
    assert app.return_code == 1
