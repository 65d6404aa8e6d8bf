"""The dialog before every request: figures first, and no by default."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from store.errors import QueryError
from tests.tui.fake_requests import STAKES, FakeRequests
from tests.tui.fake_tasks import TasksApp
from tests.tui.sights import HOSTILE
from tui.control.actions import ACTIONS, Action, CommandChoice, Field, NotAValue
from tui.control.dialog import DEBOUNCE_S, ConfirmedCommand, Dialog
from tui.render.glyphs import ASCII, UNICODE, Glyphs


def _number(typed: str) -> int:
    if not typed.isdecimal():
        raise NotAValue("type a number")
    return int(typed)


PAUSE = CommandChoice(words="pause: the run", kind="pause")
STAGE = CommandChoice(words="pause: stage ask", kind="pause", payload={"stage": "ask"})
LIMIT = CommandChoice(
    words="m: calls at a time",
    kind="limits",
    payload={"model": "m"},
    field=Field(key="concurrency", label="calls at a time, 8 now", read=_number),
)
CANCEL = CommandChoice(words="cancel", kind="cancel", payload={"now": False})
RETRY = CommandChoice(
    words="ask again", kind="retry", payload={"filter": "state:failed"}
)
TOLD = CommandChoice(
    words="withdraw", kind="withdraw", payload={"id": "c1"}, effect="Dropped."
)


class Seat:
    """Before a dialog."""

    def __init__(
        self,
        *choices: CommandChoice,
        source: FakeRequests | None = None,
        glyphs: Glyphs = UNICODE,
        is_reversible: bool = False,
    ) -> None:
        self.source = source or FakeRequests()
        self.answers: list[ConfirmedCommand | None] = []
        action = Action(
            name="a",
            key="A",
            title="Act",
            about="",
            is_reversible=is_reversible,
            choices=lambda _seen, _aim: (),
        )
        self.dialog = Dialog(
            action,
            choices,
            run_id="r1",
            state="live",
            source=self.source,
            glyphs=glyphs,
        )
        self.pilot: Pilot[None] | None = None

    def look(
        self, act: Callable[[Seat], Awaitable[None]]
    ) -> list[ConfirmedCommand | None]:
        """The answers that it gave after what was done before it."""

        async def main() -> None:
            app = TasksApp(self.dialog)
            app.on_mount = lambda: None  # type: ignore[method-assign]
            async with app.run_test(size=(80, 24)) as pilot:
                self.pilot = pilot
                app.push_screen(self.dialog, self.answers.append)
                await self.press()
                await act(self)

        asyncio.run(main())
        return self.answers

    async def press(self, *keys: str) -> None:
        assert self.pilot is not None
        await self.pilot.press(*keys)
        await self.pilot.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def typed(self, *keys: str) -> None:
        """Press keys, and wait until they are taken in."""
        await self.press(*keys)
        assert self.pilot is not None
        await self.pilot.pause(2 * DEBOUNCE_S)
        await self.press()

    def shown(self) -> str:
        assert self.pilot is not None
        strips = self.pilot.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)


def test_a_yes_counts_with_the_figures_and_enter_alone_is_a_no() -> None:
    async def act(seat: Seat) -> None:
        text = seat.shown()
        assert "Act: r1, live" in text
        assert "▸ pause: the run" in text
        assert "301 open tasks of r1 would be held back; 8 calls in flight" in text
        assert "$ siftlog pause r1" in text
        await seat.press("G", "g", "G")
        assert "▸ pause: stage ask" in seat.shown()
        assert "$ siftlog pause r1 --stage ask" in seat.shown()
        await seat.press("y")

    wish = ConfirmedCommand(
        kind="pause", payload={"stage": "ask"}, words="pause stage ask"
    )
    assert Seat(PAUSE, STAGE).look(act) == [wish]
    for key in ("enter", "escape", "n", "q"):

        async def leave(seat: Seat, key: str = key) -> None:
            await seat.press(key)
            assert seat.pilot is not None
            told = [each.message for each in seat.pilot.app._notifications]
            # enter may have been meant as yes
            assert told == ["Nothing was sent; y confirms pause."] * (key == "enter")

        assert Seat(PAUSE).look(leave) == [None]


def test_enter_is_yes_where_the_command_is_as_easily_undone() -> None:
    async def act(seat: Seat) -> None:
        assert "enter or y yes" in seat.shown()
        await seat.press("j", "enter")

    assert Seat(PAUSE, STAGE, is_reversible=True).look(act) == [
        ConfirmedCommand(
            kind="pause", payload={"stage": "ask"}, words="pause stage ask"
        )
    ]
    assert [each.name for each in ACTIONS if each.is_reversible] == ["pause"]


def test_a_value_is_typed_before_anything_can_be_asked() -> None:
    async def act(seat: Seat) -> None:
        lines = seat.shown().splitlines()
        (at,) = (n for n, line in enumerate(lines) if "calls at a time, 8 now:" in line)
        field = lines[at + 1]
        # the ends of the field are seen without a background colour
        assert field.strip("│ ").startswith("▏")
        assert field.strip("│ ").endswith("▕")
        assert "Type a number." in seat.shown()
        assert "type a number, then enter twice" in seat.shown()
        await seat.press("y")
        assert not seat.answers
        await seat.typed("1", "6", "y")
        assert "enter goes on to Yes" in seat.shown()
        assert "Type a number." in seat.shown()
        await seat.typed("backspace")
        assert "m: at most 16 calls at a time, fewer while the endpoint" in seat.shown()
        await seat.press("enter")
        assert not seat.answers
        assert "enter or y yes" in seat.shown()
        await seat.press("enter")

    payload = {"model": "m", "concurrency": 16}
    assert Seat(LIMIT).look(act) == [
        ConfirmedCommand(
            kind="limits", payload=payload, words="limits model m concurrency 16"
        )
    ]


def test_what_cannot_be_taken_back_takes_the_name_of_the_run() -> None:
    async def act(seat: Seat) -> None:
        assert "Type r1 to confirm" in seat.shown()
        await seat.press("y")
        await seat.press("r", "enter")
        assert not seat.answers
        await seat.press("1", "enter")

    wish = ConfirmedCommand(kind="cancel", payload={"now": False}, words="cancel")
    assert Seat(CANCEL).look(act) == [wish]


def test_what_would_do_nothing_is_not_asked() -> None:
    async def act(seat: Seat) -> None:
        assert "No finished task of r1 matches" in seat.shown()
        await seat.press("y", "tab", "enter")
        assert not seat.answers

    Seat(RETRY, source=FakeRequests(stakes_told=replace(STAKES, tasks=0))).look(act)


def test_figures_that_cannot_be_read_are_a_sentence() -> None:
    async def act(seat: Seat) -> None:
        assert "there is no key 'x'." in seat.shown()
        await seat.press("y")
        assert not seat.answers

    Seat(RETRY, source=FakeRequests(trouble=QueryError("there is no key 'x'", 0))).look(
        act
    )


def test_what_needs_no_figures_asks_for_none() -> None:
    async def act(seat: Seat) -> None:
        assert "Dropped." in seat.shown()
        await seat.press("tab", "enter")

    seat = Seat(TOLD)
    assert seat.look(act) == [
        ConfirmedCommand(kind="withdraw", payload={"id": "c1"}, words="withdraw")
    ]
    assert not seat.source.reckoned


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_names_from_outside_are_shown_and_do_nothing(glyphs: Glyphs) -> None:
    async def act(seat: Seat) -> None:
        text = seat.shown()
        assert "[/INST]" in text
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        assert glyphs is UNICODE or text.isascii()

    Seat(
        replace(STAGE, words=HOSTILE, payload={"stage": HOSTILE}),
        source=FakeRequests(trouble=QueryError(HOSTILE, 0)),
        glyphs=glyphs,
    ).look(act)
