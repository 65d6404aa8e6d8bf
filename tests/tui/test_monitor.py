"""The monitor's screens as a person sees them, on a terminal that does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from store.runs import RunFolder
from tests.tui.sights import (
    HOSTILE,
    FakeListing,
    FakeSource,
    every_state,
    later,
    snapshot,
    with_signs,
    with_status,
)
from tui.app import Monitor
from tui.glyphs import ASCII, UNICODE, Glyphs
from tui.listing import Listed
from tui.palette import PALETTES
from tui.screens.help import HelpScreen
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.source import Sight, Trouble
from tui.words import sentence

SIZES = ((80, 24), (100, 30), (120, 40), (160, 50))
Act = Callable[[Pilot[str], Monitor], Awaitable[None]]


def shown(app: Monitor) -> str:
    """The cells of the screen, as lines of text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(part.text for part in strip) for strip in strips)


def watched(  # noqa: PLR0917 - what a person chooses
    sights: Sequence[Sight],
    act: Act | None = None,
    size: tuple[int, int] = (120, 40),
    glyphs: Glyphs = UNICODE,
    theme: str = PALETTES[0].name,
) -> tuple[str, FakeSource]:
    """What a monitor of one run shows in the end."""
    source = FakeSource(list(sights))

    async def watch() -> str:
        app = Monitor(
            FakeListing(),
            lambda _: source,
            glyphs=glyphs,
            run=RunFolder(Path("runs/r1")),
            theme=theme,
        )
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            if act is not None:
                await act(pilot, app)
                await pilot.pause()
            return shown(app)

    return asyncio.run(watch()), source


@pytest.mark.parametrize("size", SIZES)
def test_every_size_answers_the_five_questions(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    text, _ = watched([snapshot(tmp_path / "r1")], size=size)
    for answer in ("▶ live", "37.5 %", "ETA", "$0.8750", "Overloaded", "m-large"):
        assert answer in text
    lines = text.split("\n")
    assert len(lines) == size[1]
    assert "q Detach" in lines[-1]


def test_every_state_has_its_word_and_its_sentence(tmp_path: Path) -> None:
    states = list(every_state(tmp_path / "r1"))

    async def press(pilot: Pilot[str], app: Monitor) -> None:
        for word, seen in states:
            screen = app.screen
            assert isinstance(screen, RunScreen)
            screen.look()
            await pilot.pause()
            text = shown(app)
            assert word.replace("_", " ") in text.split("\n")[0]
            assert sentence(seen)[:60] in text.split("\n")[1]

    # the first sight is that of the mounted screen, which looks once by itself
    watched([states[0][1], states[0][1], *(seen for _, seen in states)], press)


def test_a_log_that_is_gone_is_a_sentence_with_the_next_key(tmp_path: Path) -> None:
    text, _ = watched([Trouble(sentence="the log of r1 is gone: look elsewhere")])
    assert "the log of r1 is gone: look elsewhere." in text
    assert "Leave with q" in text


def test_a_run_without_tasks_says_so(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    empty = with_status(live, lanes=(), tasks=replace(live.status.tasks, planned=0))
    text, _ = watched([empty])
    assert "nothing is planned yet" in text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_hostile_text_is_shown_and_does_nothing(
    tmp_path: Path, size: tuple[int, int], glyphs: Glyphs
) -> None:
    live = snapshot(tmp_path / "r1")
    hostile = with_signs(with_status(live, run_id=HOSTILE), paused_by=HOSTILE)
    text, _ = watched([hostile], size=size, glyphs=glyphs)
    assert "[/INST]" in text
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.split("\n")) == size[1]


def test_ascii_takes_nothing_else(tmp_path: Path) -> None:
    text, _ = watched([snapshot(tmp_path / "r1")], glyphs=ASCII)
    allowed = set("╭╮╰╯─│·–…")
    assert not {character for character in text if not character.isascii()} - allowed


@pytest.mark.parametrize(
    "theme", [*(palette.name for palette in PALETTES), "ansi-dark"]
)
def test_every_theme_shows_the_same_words(tmp_path: Path, theme: str) -> None:
    live = snapshot(tmp_path / "r1")
    assert watched([live], theme=theme)[0] == watched([live])[0]


def test_space_holds_the_screen_and_says_how_long(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    ahead = with_status(later(live, 9), last_seq=live.status.last_seq + 7)
    paused = with_signs(ahead, paused_by="ops")

    async def press(pilot: Pilot[str], app: Monitor) -> None:
        await pilot.press("space")
        screen = app.screen
        assert isinstance(screen, RunScreen)
        for _ in range(3):
            screen.look()
        await pilot.pause()
        held = shown(app)
        assert "FROZEN 9.0 s, 7 events since" in held
        assert "live" in held.split("\n")[0]
        await pilot.press("space")

    text, _ = watched([live, live, live, paused], press)
    assert "paused" in text.split("\n")[0]
    assert "FROZEN" not in text


def test_tab_leads_through_the_parts_where_the_screen_is_small(tmp_path: Path) -> None:
    async def press(pilot: Pilot[str], app: Monitor) -> None:
        assert "[overview]" in shown(app)
        await pilot.press("tab")
        assert "[stages]" in shown(app)
        await pilot.press("shift+tab", "shift+tab")

    text, _ = watched([snapshot(tmp_path / "r1")], press, size=(80, 24))
    assert "[oldest]" in text
    assert "item" not in text


def test_help_lists_the_keys_of_the_screen(tmp_path: Path) -> None:
    async def press(pilot: Pilot[str], app: Monitor) -> None:
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)

    text, _ = watched([snapshot(tmp_path / "r1")], press)
    for words in ("Freeze", "Detach", "Next panel", "Commands", "Look more often"):
        assert words in text


def test_leaving_closes_the_log_and_says_that_the_run_goes_on(tmp_path: Path) -> None:
    said: list[object] = []

    async def press(pilot: Pilot[str], app: Monitor) -> None:
        await pilot.press("q")
        said.append(app.return_value)

    _, source = watched([snapshot(tmp_path / "r1")], press)
    assert said == ["Detached; r1 goes on."]
    assert source.is_closed


def test_resizing_draws_the_other_layout(tmp_path: Path) -> None:
    async def press(pilot: Pilot[str], app: Monitor) -> None:
        assert "[overview]" not in shown(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()

    text, _ = watched([snapshot(tmp_path / "r1")], press)
    assert "[overview]" in text


def _listed(run_id: str, sight: Sight | None) -> Listed:
    return Listed(folder=RunFolder(Path("runs") / run_id), sight=sight)


def listing(fake: FakeListing, act: Act, size: tuple[int, int] = (120, 30)) -> str:
    """What the list of runs shows in the end."""

    async def watch() -> str:
        source = FakeSource([fake.listed[0].sight]) if fake.listed else None  # type: ignore[list-item]
        app = Monitor(fake, lambda _: source, glyphs=UNICODE)  # type: ignore[arg-type,return-value]
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await act(pilot, app)
            await pilot.pause()
            return shown(app)

    return asyncio.run(watch())


@pytest.mark.parametrize("size", SIZES)
def test_runs_are_listed_with_their_state_and_the_cursor_says_more(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    live = snapshot(tmp_path / "r1")
    fake = FakeListing(
        [
            _listed("a-live", live),
            _listed("b-done", with_signs(live, phase="run_finished")),
            _listed("c-bad", Trouble(sentence="it cannot be read")),
            _listed("d-new", None),
        ]
    )

    async def press(pilot: Pilot[str], app: Monitor) -> None:
        text = shown(app)
        assert "1 finished · 1 live" in text
        assert "▸ ▶ live" in text
        await pilot.press("j")

    text = listing(fake, press, size)
    assert "▸ ✓ finished" in text
    assert "1 tasks failed: ask them again" in text or size[0] < 120
    assert "it cannot be read" in text
    assert "not read yet" in text


def test_an_empty_folder_says_how_to_begin() -> None:
    async def nothing(pilot: Pilot[str], app: Monitor) -> None:
        assert isinstance(app.screen, RunsScreen)

    text = listing(FakeListing(), nothing)
    assert "There is no run in runs yet" in text


def test_the_cursor_stays_on_its_run_when_another_one_appears(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    fake = FakeListing([_listed("a", live), _listed("b", live)])

    async def press(pilot: Pilot[str], app: Monitor) -> None:
        await pilot.press("j")
        fake.listed = [_listed("c", live), *reversed(fake.listed)]
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        screen.look()
        await pilot.pause()
        assert app.screen.query_one(OptionList).highlighted == 2

    text = listing(fake, press)
    rows = [line.split()[:4] for line in text.split("\n")[2:5]]
    assert rows == [["▶", "live", "c", rows[0][3]], ["▶", "live", "a", rows[1][3]]] + [
        ["▸", "▶", "live", "b"]
    ]


def test_enter_opens_a_run_and_escape_comes_back(tmp_path: Path) -> None:
    fake = FakeListing([_listed("r1", snapshot(tmp_path / "r1"))])

    async def press(pilot: Pilot[str], app: Monitor) -> None:
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("l", "1")

    assert "RUNS" in listing(fake, press)
