"""The labelling screen: its keys, what it hides, what it records, and its looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from jobs.kit.labels.desk import LabelDesk, LabelSelection
from runner.labelling import LabelField
from store.errors import LogClosed
from store.labels.events import LabelRecorded
from store.labels.fold import LabelKey, LabelSet
from store.labels.folder import read_labels
from tests.store.memory_log import FakeClock
from tests.tui.labelling.desks import FIELD, SIZE, desk_over, hostile, items
from tui.labelling.app import LabelApp
from tui.render.colours import COLOUR_THEMES
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.palette import HelpScreen

ASSISTED = LabelSelection(is_assisted=True)
SMALL, WIDE = (80, 24), (160, 50)


@dataclass(frozen=True)
class Seat:
    """Before the screen."""

    pilot: Pilot[str]
    app: LabelApp
    desk: LabelDesk
    clock: FakeClock

    def shown(self) -> str:
        """The cells of the screen, as lines of text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)

    async def press(self, *keys: str) -> None:
        """Press keys one after another, and wait for what they do."""
        for key in keys:
            await self.pilot.press(key)
            # an action waits for the disk: what is queued behind it comes after
            handled = asyncio.Event()
            self.app.screen.call_later(handled.set)
            await self.until(lambda: handled.is_set() or self.app._exit)  # noqa: B023
            await self.pilot.pause()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what workers bring about."""
        for _ in range(500):
            if holds():
                return
            await self.pilot.pause(0.01)
        pytest.fail(f"it does not get there:\n{self.shown()}")


def seated(
    folder: Path,
    act: Callable[[Seat], Awaitable[None]],
    *,
    count: int = 3,
    dataset: object = None,
    selection: LabelSelection | None = None,
    fields: tuple[LabelField, ...] = (FIELD,),
    size: tuple[int, int] = SMALL,
    glyphs: Glyphs = UNICODE,
    theme: str = COLOUR_THEMES[0].name,
    author: str = "ann",
) -> LabelSet:
    """Label on a screen; the labels in the end."""

    async def label() -> None:
        chosen = items(count) if dataset is None else hostile()
        clock = FakeClock()
        async with desk_over(chosen, folder, selection, *fields) as desk:
            app = LabelApp(desk, author, clock, glyphs=glyphs, theme=theme)
            async with app.run_test(size=size, notifications=True) as pilot:
                seat = Seat(pilot, app, desk, clock)
                await seat.until(
                    lambda: "?" in seat.shown() and "opening" not in seat.shown()
                )
                await act(seat)

    asyncio.run(label())
    return read_labels(folder)


def values(labels: LabelSet, author: str = "ann") -> dict[str, str]:
    """What an author has labelled, by item and field."""
    return {
        f"{about.item}{about.field and f' {about.field}'}": one.event.value
        for about, one in labels.labelled_by(author).items()
    }


def first(labels: LabelSet) -> LabelRecorded:
    return labels.labels[0].event


def test_a_key_that_is_no_answer_says_so(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("9")
        assert "9 is no key here: ? lists the keys." in seat.shown()
        await seat.press("slash", "Z", "enter")
        assert "Z is no key" not in seat.shown()
        assert "note: Z" in seat.shown()

    assert not seated(tmp_path, act).labels


def test_a_key_answers_and_the_next_item_follows(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        assert "item-00001" in seat.shown()
        assert "0 of 3 labelled" in seat.shown()
        await seat.press("i")
        assert "item-00002" in seat.shown()
        # an answer that is shown is durable
        assert values(read_labels(tmp_path)) == {"item-00001": "include"}
        await seat.press("e", "u")
        assert "All items are labelled. z undoes" in seat.shown()
        # the keys of the answers are back with the question
        await seat.press("z")
        assert "item-00003" in seat.shown()
        assert "include" in seat.shown()
        await seat.press("u")
        assert "All items are labelled" in seat.shown()
        await seat.press("i", "q")
        assert seat.app._exit

    labels = seated(tmp_path, act)
    assert values(labels) == {
        "item-00001": "include",
        "item-00002": "exclude",
        "item-00003": "unclear",
    }


def test_replies_are_hidden_until_r_which_is_recorded(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        assert "blind: replies are hidden" in seat.shown()
        assert "secret" not in seat.shown()
        assert "⟪" not in seat.shown()
        await seat.press("i")
        assert "agree with most replies" not in seat.shown()
        await seat.press("r")
        await seat.until(lambda: "secret reason of item-00002" in seat.shown())
        assert "⟪We enrolled 2 adults⟫" in seat.shown()
        assert "r Show" not in seat.shown()
        await seat.press("e")
        # agreement counts what was seen, and only that
        assert "0 of 1 agree with most replies" in seat.shown()
        assert "secret" not in seat.shown()

    blind, assisted = (label.event for label in seated(tmp_path, act).labels)
    assert blind.is_blind
    assert blind.visible == ["title", "text"]
    assert not assisted.is_blind
    assert assisted.visible == ["title", "text", "reply:m-large"]
    assert assisted.run_task == 7


def test_undo_asks_again_and_skip_asks_later(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("z")  # there is nothing to undo
        await seat.press("s")
        assert "item-00002" in seat.shown()
        assert "1 skipped" in seat.shown()
        await seat.press("i", "backspace")
        assert "item-00002" in seat.shown()
        assert values(read_labels(tmp_path)) == {}
        await seat.press("e", "i")
        assert "item-00001" in seat.shown()
        await seat.press("u")

    labels = seated(tmp_path, act)
    assert values(labels)["item-00002"] == "exclude"
    assert len(values(labels)) == 3
    assert sum(label.is_withdrawn for label in labels.labels) == 1


def test_a_note_goes_with_the_answer_and_its_letters_are_no_answers(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("slash", *"izeq", "enter")
        assert "note: izeq" in seat.shown()
        await seat.press("slash", "x")
        *_, field, keys = seat.shown().splitlines()
        assert field.rstrip() == " x"
        # letters are typed: only what leaves the field is a key
        assert keys.split() == ["esc", "Leave"]
        await seat.press("escape")
        assert "note: izeq" in seat.shown()
        await seat.press("i")
        assert "note:" not in seat.shown()

    assert first(seated(tmp_path, act)).reason == "izeq"


def test_open_fields_take_a_typed_value(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        assert "=  another value" in seat.shown()
        await seat.press("equals_sign", "enter")
        assert values(read_labels(tmp_path)) == {}
        await seat.press("equals_sign", *"42", "enter")
        assert "item-00002" in seat.shown()

    labels = seated(tmp_path, act, fields=(SIZE,))
    assert values(labels) == {"item-00001 size": "42"}


def test_a_later_session_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async def one(seat: Seat) -> None:
        await seat.press("i", "q")

    async def two(seat: Seat) -> None:
        assert "1 of 3 labelled" in seat.shown()
        assert "item-00002" in seat.shown()

    seated(tmp_path, one)
    seated(tmp_path, two)


def test_seconds_stop_while_the_terminal_is_not_in_front(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        seat.clock.advance(5)
        seat.app.app_focus = False
        seat.clock.advance(600)
        seat.app.app_focus = True
        seat.clock.advance(2)
        await seat.press("i")

    assert first(seated(tmp_path, act)).seconds == pytest.approx(7)


def test_an_adjudicator_sees_the_labels_of_all_and_names_only_on_demand(
    tmp_path: Path,
) -> None:
    async def include(seat: Seat) -> None:
        await seat.press("i", "i")

    async def exclude(seat: Seat) -> None:
        await seat.press("i", "slash", *"no", "enter", "e")

    async def decide(seat: Seat) -> None:
        assert "0 of 1" in seat.shown()
        assert "item-00002" in seat.shown()
        for text in ("ann: include", "bob: exclude (no)"):
            await seat.until(lambda: text in seat.shown())  # noqa: B023
        assert "secret" not in seat.shown()
        await seat.press("q")

    async def decide_blind(seat: Seat) -> None:
        assert "person 1: " in seat.shown()
        for name in ("ann", "bob"):
            assert name not in seat.shown()
        await seat.press("e")
        assert "All items are labelled" in seat.shown()

    seated(tmp_path, include)
    seated(tmp_path, exclude, author="bob")
    adjudicating = LabelSelection(is_adjudicating=True)
    seated(tmp_path, decide, selection=adjudicating, author="cy")
    labels = seated(
        tmp_path,
        decide_blind,
        selection=LabelSelection(is_adjudicating=True, hides_names=True),
        author="cy",
    )
    (decision,) = labels.decided.values()
    assert decision.event.value == "exclude"
    assert len(decision.event.considered) == 2
    assert not labels.disputed()


def test_a_refusing_disk_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(seat: Seat) -> None:
        async def refuse(*_: object, **__: object) -> str:
            raise LogClosed("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("store.labels.writer.LabelWriter.record", refuse)
            await seat.press("i")
            await seat.until(lambda: "the disk is full" in seat.shown())
        assert "LABEL as ann · item-00001" in seat.shown()
        await seat.press("e")

    assert values(seated(tmp_path, act)) == {"item-00001": "exclude"}


def test_help_lists_the_answers_too_and_other_keys_lead_nowhere(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("question_mark")
        await seat.until(lambda: isinstance(seat.app.screen, HelpScreen))
        for text in ("include", "exclude", "Undo", "Show replies"):
            assert text in seat.shown()
        await seat.press("escape", *"tmcaPL12")
        assert "item-00001" in seat.shown()
        assert not seat.app.screen.query_one(Input).has_focus

    assert not seated(tmp_path, act).labels


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("theme", [theme.name for theme in COLOUR_THEMES])
def test_hostile_text_is_shown_as_text(
    tmp_path: Path, theme: str, glyphs: Glyphs
) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("r")
        await seat.until(lambda: "m-large" in seat.shown())
        shown = seat.shown()
        assert "[/INST]" in shown
        assert not {"\x1b", "\x07", "\u202e", "\u200b"} & set(shown)
        assert shown.isascii() or not glyphs.plain

    seated(tmp_path, act, dataset=hostile(), theme=theme, glyphs=glyphs, size=WIDE)


def test_the_screen_fits_a_small_window_with_everything_in_sight(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("slash", *"abc", "enter", "equals_sign")
        lines = seat.shown().splitlines()
        assert len(lines) == 24
        for text in ("Title of", "trial", "m-large", "note: abc", "How many?", "42"):
            assert any(text in line for line in lines) or text == "42", text

    seated(tmp_path, act, selection=ASSISTED, fields=(SIZE,))


def test_a_label_is_never_of_another_author(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        await seat.press("i")

    seated(tmp_path, act)
    labels = seated(tmp_path, act, author="bob")
    assert {
        LabelKey("ann", "item-00001", ""),
        LabelKey("bob", "item-00001", ""),
    } == set(labels.current)
    assert len(list(tmp_path.glob("*.db"))) == 2
