"""Keys that arrive in one read do what they do when they are typed slowly."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.events import Key
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input

from store.runs import RunFolder
from tests.store.memory_log import FakeClock
from tests.tui.fake_events import FakeEvents
from tests.tui.fake_requests import FakeControl, FakeRequests
from tests.tui.fake_tasks import FakeTasks, settled
from tests.tui.sights import FakeConfig, FakeListing, FakeSource, snapshot
from tui.app import Monitor
from tui.render.glyphs import UNICODE
from tui.run_screens import MonitorSources
from tui.sources.run_snapshot import RunSnapshot
from tui.widgets.events import EventTable
from tui.widgets.table import PagedTable
from tui.widgets.text_view import TextView

KEYS = (
    *("t", "e", "a", "i", "1", "2", "slash", "colon", "question_mark"),
    *("j", "k", "g", "G", "n", "N", "x", "r", "s", "o", "d", "l", "h"),
    *("p", "u", "enter", "escape", "tab"),
    *("P", "L", "f", "asterisk", "space", "plus", "down", "up"),
)
"""All keys that leave no trace outside and do not end the monitor."""
CHARACTERS = {
    "slash": "/",
    "colon": ":",
    "question_mark": "?",
    "asterisk": "*",
    "space": " ",
    "plus": "+",
}
CHOSEN = (
    ("t", "slash"),
    ("2", "t", "slash", "s", "enter", "j", "j"),
    ("t", "slash", *"000", "enter", "G", "enter", "tab", "d"),
    ("t", "G", "enter", "tab", "tab", "escape", "escape", "e"),
    ("colon", *"failed", "enter", "j"),
    ("question_mark", "escape", "t", "j", "j", "j", "o"),
    ("P", "escape", "t", "s", "j", "enter", "G"),
    ("e", "slash", "t", "enter", "k", "k", "enter", "o"),
    ("1", "j", "t", "p", "p", "enter"),
)
WIDE = (160, 50)


def monitor(seen: RunSnapshot) -> Monitor:
    source = FakeSource([seen])
    tasks = FakeTasks(400)
    tasks.wrong_numbers = frozenset({7, 99})
    requests = FakeRequests([])
    sources = MonitorSources(
        listing=FakeListing(),
        run=lambda _: source,
        tasks=lambda _: tasks,
        events=lambda _: FakeEvents(500),
        config=lambda _: FakeConfig(),
        clock=FakeClock(),
        requests=lambda _: requests,
        control=lambda _: FakeControl(requests),
    )
    return Monitor(sources, glyphs=UNICODE, run=RunFolder(Path("runs/r1")))


def state(app: Monitor) -> list[object]:
    """Where the keys have led: screens, focus, cursors and texts."""
    told: list[object] = [type(screen).__name__ for screen in app.screen_stack]
    told.append(None if app.focused is None else type(app.focused).__name__)
    for screen in app.screen_stack:
        for table in screen.query(PagedTable):
            at = table.chosen if isinstance(table, EventTable) else table.cursor
            told.append((table.id, at, len(table.numbers)))
        told += [(field.id, field.value) for field in screen.query(Input)]
        told += [view.text for view in screen.query(TextView)]
    return told


async def led_to(
    seen: RunSnapshot, keys: tuple[str, ...], *, size: tuple[int, int], at_once: bool
) -> list[object]:
    app = monitor(seen)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        if at_once:
            for key in keys:
                character = key if len(key) == 1 else CHARACTERS.get(key)
                app.post_message(Key(key, character))
        else:
            for key in keys:
                await pilot.press(key)
                await settled(pilot)
                if isinstance(app.focused, Input):
                    await _quiet(pilot)
        await _quiet(pilot)
        return state(app)


async def _quiet(pilot: Pilot[str]) -> None:
    """Wait until nothing changes any more, debounced filters included."""
    await settled(pilot)
    await pilot.pause(0.2)
    await settled(pilot)


def compare(folder: Path, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    seen = snapshot(folder / "r1")
    slowly, at_once = (
        asyncio.run(led_to(seen, keys, size=size, at_once=at_once))
        for at_once in (False, True)
    )
    assert at_once == slowly, keys


@pytest.mark.parametrize("keys", CHOSEN, ids=" ".join)
def test_keys_in_one_go_do_what_they_do_slowly(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    for size in ((80, 24), WIDE):
        compare(tmp_path, keys, size)


@pytest.mark.parametrize("seed", range(60 if "SIFTLOG_PROVE" in os.environ else 6))
def test_any_keys_in_one_go_do_what_they_do_slowly(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    keys = tuple(chance.choice(KEYS) for _ in range(chance.randint(2, 12)))
    compare(tmp_path, keys, chance.choice([(80, 24), WIDE]))


def _rest(parser: XTermParser) -> Iterator[Message]:
    time.sleep(ESCAPE_DELAY * 2)
    yield from parser.tick()


def test_an_escape_and_a_key_in_one_read_are_two_keys(tmp_path: Path) -> None:
    seen = snapshot(tmp_path / "r1")

    async def typed(*bytes_read: str) -> list[object]:
        app = monitor(seen)
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            for text in bytes_read:
                parser = XTermParser()
                # the rest of a read is parsed when nothing has followed for a while
                for event in (*parser.feed(text), *_rest(parser)):
                    app.post_message(event)
                await _quiet(pilot)
            return state(app)

    together = asyncio.run(typed("tj\r\x1bj\x1be"))
    assert together == asyncio.run(
        led_to(
            seen,
            ("t", "j", "enter", "escape", "j", "escape", "e"),
            size=(80, 24),
            at_once=False,
        )
    )
    # a circumflex that is typed is one
    assert (None, "^") not in together
    assert ("filter", "^") in asyncio.run(typed("t/", "^"))
