"""The monitor's screens as a person sees them, on a terminal that does not exist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.widgets import Input, OptionList
from textual.widgets._toast import ToastRack

from tests.store.memory_log import FakeClock
from tests.tui.fake_history import FakeHeadline
from tests.tui.seats import Seat, listed, listing, watched
from tests.tui.sights import (
    HOSTILE,
    FakeListing,
    every_state,
    later,
    snapshot,
    with_signs,
    with_status,
)
from tui.render.colours import COLOUR_THEMES
from tui.render.errors import PROBLEMS, problem_filter
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.render.sentences import sentence
from tui.screens.palette import HelpScreen
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.screens.tasks import TasksScreen
from tui.sources.result import Headline, HeadlineMetric, ScoringResult
from tui.sources.run_snapshot import ReadProblem

SIZES = ((80, 24), (100, 30), (120, 40), (160, 50))


@pytest.mark.parametrize("size", SIZES)
def test_every_size_answers_the_five_questions(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    text, _ = watched(snapshot(tmp_path / "r1"), size=size)
    answers = ("▶ live", " 19.0 %", "left", "cost $0.7500", "Overloaded", "m-large")
    for answer in answers:
        assert answer in text
    lines = text.split("\n")
    assert len(lines) == size[1]
    assert "q Quit" in lines[-1]


def test_every_state_has_its_word_and_its_sentence(tmp_path: Path) -> None:
    states = list(every_state(tmp_path / "r1"))

    async def press(seat: Seat) -> None:
        for word, seen in states:
            await seat.look(seen)
            text = seat.shown()
            assert word.replace("_", " ") in text.split("\n")[0]
            assert sentence(seen)[:60] in text.split("\n")[2]

    watched(states[0][1], press)


def test_a_log_that_is_gone_is_a_sentence_with_the_next_key() -> None:
    text, _ = watched(ReadProblem(sentence="the log of r1 is gone: look elsewhere"))
    assert "the log of r1 is gone: look elsewhere." in text
    assert "Leave with q" in text


def test_a_run_without_tasks_says_so(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    empty = with_status(live, queues=(), tasks=replace(live.status.tasks, planned=0))
    text, _ = watched(empty)
    assert "no tasks planned yet" in text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_hostile_text_is_shown_and_does_nothing(
    tmp_path: Path, size: tuple[int, int], glyphs: Glyphs
) -> None:
    live = snapshot(tmp_path / "r1")
    hostile = with_signs(with_status(live, run_id=HOSTILE), paused_by=HOSTILE)
    text, _ = watched(hostile, size=size, glyphs=glyphs)
    assert "[/INST]" in text
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.split("\n")) == size[1]


def test_ascii_takes_nothing_else(tmp_path: Path) -> None:
    text, _ = watched(snapshot(tmp_path / "r1"), glyphs=ASCII)
    assert not {character for character in text if not character.isascii()}


@pytest.mark.parametrize(
    "theme", [*(palette.name for palette in COLOUR_THEMES), "ansi-dark"]
)
def test_every_theme_shows_the_same_words(tmp_path: Path, theme: str) -> None:
    live = snapshot(tmp_path / "r1")
    assert watched(live, theme=theme)[0] == watched(live)[0]


def test_space_holds_the_screen_and_says_how_long(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    ahead = with_status(later(live, 9), last_seq=live.status.last_seq + 7)

    async def press(seat: Seat) -> None:
        await seat.press("space")
        await seat.look(ahead)
        held = seat.shown()
        assert "FROZEN 9.0 s, 7 events since" in held
        assert "live" in held.split("\n")[0]
        await seat.press("space")

    text, _ = watched(live, press)
    assert "quiet" in text.split("\n")[0]
    assert "FROZEN" not in text


def test_tab_leads_through_the_parts_where_the_screen_is_small(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        assert "[overview]" in seat.shown()
        await seat.press("tab")
        assert "[stages]" in seat.shown()
        await seat.press("shift+tab", "shift+tab")

    text, _ = watched(snapshot(tmp_path / "r1"), press, size=(80, 24))
    assert "[oldest]" in text
    assert "where" in text.split("\n")[4]


def test_tab_goes_through_the_panels_with_rows_where_all_are_visible(
    tmp_path: Path,
) -> None:
    async def press(seat: Seat) -> None:
        for _ in range(5):
            await seat.press("tab")
            # the cursor is visible: no panel without rows, or without a place
            assert seat.shown().count("▸") == 1
        await seat.press("shift+tab", "enter")
        screen = seat.app.screen
        assert screen.query_one(Input).value.startswith("err:")

    watched(snapshot(tmp_path / "r1"), press)


def test_one_key_lists_the_tasks_with_problems(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        assert "p Problems" in seat.shown().split("\n")[-1]
        await seat.press("p")
        assert seat.app.screen.query_one(Input).value == PROBLEMS
        assert "TASKS 1120-a · problems" in seat.shown()
        await seat.press("escape")
        assert isinstance(seat.app.screen, RunScreen)

    live = snapshot(tmp_path / "r1")
    watched(live, press, size=(80, 24))
    clean = with_status(live, reasked={}, parse_failures={})
    clean = replace(clean, facts=replace(clean.facts, errors=(), failures=()))
    assert problem_filter(with_signs(clean, phase="run_finished")) == "outcome:wrong"


def test_a_row_of_a_panel_opens_the_tasks_it_is_about(tmp_path: Path) -> None:
    wanted: list[str] = []

    async def press(seat: Seat) -> None:
        assert "▸" not in seat.shown()
        await seat.press("enter")
        assert isinstance(seat.app.screen, RunScreen)
        for keys in (("tab", "j", "j"), ("ctrl+o", "e", "G"), ("ctrl+o", "o")):
            await seat.press(*keys)
            assert seat.shown().count("▸") == 1
            await seat.press("enter")
            screen = seat.app.screen
            assert isinstance(screen, TasksScreen)
            wanted.append(screen.query_one(Input).value)
            await seat.press("2")
        await seat.press("ctrl+o")
        assert "[m] models" in seat.shown()
        await seat.press("z")
        assert "[m] models" not in seat.shown()
        await seat.pilot.click("#stages", offset=(4, 3))
        await seat.pilot.pause()
        assert "▸judge" in seat.shown()
        # the wheel, over a panel that does not take the keys yet
        for event in (MouseScrollDown, MouseScrollUp, MouseScrollDown):
            await seat.pilot._post_mouse_events([event], "#errors")
        assert "▸judge" not in seat.shown()
        assert seat.shown().count("▸") == 1

    watched(snapshot(tmp_path / "r1"), press)
    assert wanted == ["stage:judge", "reason:no_list", "task:5"]


def test_help_lists_the_keys_of_the_screen(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        await seat.press("question_mark")
        assert isinstance(seat.app.screen, HelpScreen)

    text, _ = watched(snapshot(tmp_path / "r1"), press)
    for words in ("Freeze", "Quit", "Panel", "Commands", "Look more often"):
        assert words in text


def test_leaving_closes_the_log_and_says_that_the_run_goes_on(tmp_path: Path) -> None:
    said: list[object] = []

    async def press(seat: Seat) -> None:
        # the keys after it find no screen, and do nothing
        await seat.burst("qj:?")
        said.append(seat.app.return_value)

    _, source = watched(snapshot(tmp_path / "r1"), press)
    assert said == ["The monitor has quit; r1 continues."]
    assert source.is_closed


def test_resizing_draws_the_other_layout(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        assert "[overview]" not in seat.shown()
        await seat.pilot.resize_terminal(80, 24)
        await seat.pilot.pause()

    text, _ = watched(snapshot(tmp_path / "r1"), press)
    assert "[overview]" in text


@pytest.mark.parametrize("size", SIZES)
def test_runs_are_listed_with_their_state_and_the_cursor_says_more(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    live = snapshot(tmp_path / "r1")
    fake = FakeListing(
        [
            listed("a-live", live),
            listed("b-done", with_signs(live, phase="run_finished")),
            listed("c-bad", ReadProblem(sentence="it cannot be read")),
            listed("d-new", None),
        ]
    )

    async def press(seat: Seat) -> None:
        text = seat.shown()
        assert "1 live · 1 finished · 1 unread · 1 unreadable" in text
        assert "▸ ▶ live" in text
        await seat.press("j")

    text = listing(fake, press, size)
    assert "▸ ✓ finished" in text
    assert "1 task failed: retry with" in text or size[0] < 120
    assert "it cannot be read" in text
    assert "not read yet" in text


def test_an_empty_folder_says_how_to_begin() -> None:
    text = listing(FakeListing())
    assert "There is no run in runs yet" in text


def test_the_cursor_stays_on_its_run_when_another_one_appears(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    fake = FakeListing([listed("a", live), listed("b", live)])

    async def press(seat: Seat) -> None:
        await seat.press("j")
        await seat.press("space")
        fake.listed = [listed("c", live), *reversed(fake.listed)]
        await seat.look()
        assert "FROZEN: space continues" in seat.shown()
        assert seat.app.screen.query_one(OptionList).highlighted == 1
        await seat.press("space")
        assert seat.app.screen.query_one(OptionList).highlighted == 2

    text = listing(fake, press)
    rows = [line[2:].split() for line in text.split("\n")[2:5]]
    assert [row[2] for row in rows] == ["c", "a", "b"]
    assert text.split("\n")[4].split()[:4] == ["▸", "▶", "live", "b"]


def test_runs_are_found_by_words_and_the_newest_stands_first(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    older = with_status(live, created_us=live.created_us - 60_000_000)
    over = with_signs(older, phase="run_finished")
    sights = {"a-over": over, "b-live": live, "c-over": over}
    fake = FakeListing([listed(name, sight) for name, sight in sights.items()])

    async def press(seat: Seat) -> None:
        assert "▸ ▶ live" in seat.shown().split("\n")[2]
        # as a word, and not as the key of another screen
        await seat.burst("/over c")
        text = seat.shown()
        assert "1 of 3 found" in text
        assert "▸ ✓ finished     c-over" in text
        await seat.press("z")
        assert "No run has 'over cz' in its name" in seat.shown()
        await seat.press("enter", "x")

    text = listing(fake, press)
    assert len([line for line in text.split("\n") if "-over" in line]) == 2


def test_enter_opens_a_run_and_escape_comes_back(tmp_path: Path) -> None:
    fake = FakeListing([listed("r1", snapshot(tmp_path / "r1"))])

    async def press(seat: Seat) -> None:
        await seat.press("enter")
        await seat.pilot.pause()
        assert isinstance(seat.app.screen, RunScreen)
        await seat.press("escape")
        await seat.pilot.pause()
        assert isinstance(seat.app.screen, RunsScreen)
        await seat.press("l", "1")

    assert "RUNS" in listing(fake, press)


def test_t_lists_the_tasks_and_2_comes_back(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        await seat.press("t")
        assert isinstance(seat.app.screen, TasksScreen)
        await seat.press("2")
        assert seat.app.screen.id is None

    text, _ = watched(snapshot(tmp_path / "r1"), press)
    assert "stages" in text


@pytest.mark.parametrize("size", [(79, 40), (120, 23)])
def test_a_window_that_is_too_small_says_so_and_keeps_the_header(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    text, _ = watched(snapshot(tmp_path / "r1"), size=size)
    assert "▶ live" in text
    assert "needs a window of 80 columns and 24 lines" in text
    assert "Overloaded" not in text


def test_the_palette_offers_the_filters_that_the_run_calls_for(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        # none of these keys acts on the screen behind: e would open the events
        await seat.burst(":error overloaded")
        assert seat.app.screen.query_one(Input).value == "error overloaded"
        assert "Tasks with the error Overloaded" in seat.shown()
        await seat.burst("\r")
        assert isinstance(seat.app.screen, TasksScreen)

    text, _ = watched(snapshot(tmp_path / "r1"), press)
    assert "err:Overloaded" in text


def test_typing_replaces_a_filter_and_escape_drops_the_one_of_a_row(
    tmp_path: Path,
) -> None:
    async def press(seat: Seat) -> None:
        await seat.press("tab", "enter")
        field = seat.app.screen.query_one(Input)
        assert field.value.startswith("stage:")
        await seat.press("slash", *"PMC", "enter")
        assert field.value == "PMC"
        await seat.press("slash", "end", *" x", "enter")
        assert field.value == "PMC x"
        await seat.press("escape", "t")
        assert field.value == "PMC x", "a filter that was typed stays"
        await seat.press("2", "enter")
        assert field.value.startswith("stage:")
        await seat.press("escape", "t")
        assert field.value == ""

    watched(snapshot(tmp_path / "r1"), press, (80, 24))


def test_escape_from_a_run_lands_on_its_row(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    fake = FakeListing([listed("r2", live), listed("r1", live), listed("r0", live)])

    async def press(seat: Seat) -> None:
        await seat.press("escape")
        assert "▸ ▶ live         r1" in seat.shown()
        fake.listed = [listed("r3", live), *fake.listed]
        await seat.look()
        assert "▸ ▶ live         r1" in seat.shown()
        await seat.press("j")
        await seat.look()
        assert "▸ ▶ live         r0" in seat.shown()

    watched(live, press, fake=fake)


def test_the_palette_copies_the_path_of_the_report(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    folder = tmp_path / "scores" / "1"
    result = ScoringResult(number=1, folder=folder, headline=None, has_report=True)
    over = replace(with_signs(live, phase="run_finished"), result=result)
    copied: list[str] = []

    async def press(seat: Seat) -> None:
        await seat.burst(":report's path\r")
        copied.append(seat.app.clipboard)

    watched(over, press)
    assert copied == [str(folder / "report.html")]

    async def live_press(seat: Seat) -> None:
        await seat.burst(":report's path\r")
        said = [each.message for each in seat.app._notifications]
        assert "siftlog score r1" in said[-1]

    watched(live, live_press)


def test_a_wide_run_screen_shows_the_metrics_so_far(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    headline = FakeHeadline(answers=[few_headline(n) for n in (8, 812)])
    headline.may_answer.set()
    clock = FakeClock()

    async def press(seat: Seat) -> None:
        await seat.until(lambda: "Recall" in seat.shown())
        text = seat.shown()
        assert "metrics so far" in text
        assert "too few for conclusions: the smallest n is 8" in text
        assert "m-large" in text
        assert "m-small" in text
        assert "computed 0.0 s ago" in text
        clock.advance(2)
        await seat.look(later(live, 2))
        assert "computed 2.0 s ago" in seat.shown()
        await seat.pilot.resize_terminal(150, 50)
        await seat.look()
        assert "metrics so far" not in seat.shown()

    watched(live, press, (160, 50), headline=headline, clock=clock)
    over = with_signs(live, phase="run_finished")
    text, _ = watched(over, size=(160, 50), headline=headline)
    assert "metrics so far" not in text


def few_headline(n: int) -> Headline:
    metrics = tuple(
        HeadlineMetric(
            path="recall", model=model, value=0.5, n=n, lo=0.4, hi=0.6, name="Recall"
        )
        for model in ("x/m-large", "x/m-small")
    )
    return Headline(metrics=metrics, level=0.95, seq=1, ended=n, is_partial=True)


def test_a_notice_leaves_the_last_two_lines_free(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        rack = ToastRack()  # Textual has none under a test
        await seat.app.screen.mount(rack)
        assert rack.styles.margin.bottom == 2

    watched(snapshot(tmp_path / "r1"), act, (80, 24))


def test_a_task_that_a_row_opened_shows_its_attempts_beside_the_list(
    tmp_path: Path,
) -> None:
    async def press(seat: Seat) -> None:
        await seat.press("p")
        screen = seat.app.screen
        assert isinstance(screen, TasksScreen)
        await seat.until(lambda: screen.task_filter == PROBLEMS)
        await seat.until(lambda: screen.items != ())
        await seat.press("enter")
        await seat.until(lambda: "what followed" in seat.shown())

    watched(snapshot(tmp_path / "r1"), press, size=(160, 50))
