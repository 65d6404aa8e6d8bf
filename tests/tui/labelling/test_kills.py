"""Labels that a person saw acknowledged outlive kill -9, on screen and in the browser.

On the screen, the next item acknowledges an answer. SIFTLOG_PROVE types 10,000 labels
each way; without it, a few hundred through a terminal and some tens in a browser.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from store.labels.folder import read_labels, verify_labels
from tests.browsers import Page, browsing, needs_browser
from tests.processes import environment
from tests.terminals import Terminal, on_terminal

PROVE = "SIFTLOG_PROVE" in os.environ
ROOT = Path(__file__).resolve().parents[3]
LABELS, KILLS = (10_000, 100) if PROVE else (250, 10)
PAGE_LABELS, PAGE_KILLS = (10_000, 100) if PROVE else (40, 4)
VALUES = {"i": "include", "e": "exclude", "u": "unclear"}
SHOWN = re.compile(rb"LABEL as ann \xc2\xb7 item-(\d{5})")
DONE = b"All items are labelled"
OPENED = b"\x1b[?1049h"
BURST = 6
"""Keys on their way when the process is killed."""
TIMEOUT = pytest.mark.timeout(3600 if PROVE else 120)


def planned(count: int, rng: random.Random) -> str:
    """The key of each answer."""
    return "".join(rng.choices(list(VALUES), k=count))


def kill(folder: Path, pid: int) -> None:
    """Kill a session, and wait for the next one."""
    os.kill(pid, signal.SIGKILL)
    while int((folder / "pid").read_text() or pid) == pid:
        time.sleep(0.002)


def check(folder: Path, acknowledged: int, keys: str, most: int) -> int:
    """Return how many labels there are; none that was acknowledged is missing."""
    labels = read_labels(folder / "labels")
    values = [one.event.value for one in labels.current.values()]
    # the prefix of what was typed, in order: nothing twice, nothing left out
    assert values == [VALUES[key] for key in keys[: len(values)]]
    assert acknowledged <= len(values) <= acknowledged + most
    assert len(labels.labels) == len(values)
    return len(values)


@TIMEOUT
def test_no_acknowledged_label_of_a_terminal_is_lost(tmp_path: Path) -> None:
    rng = random.Random(25)
    keys = planned(LABELS, rng)
    kills = sorted(rng.sample(range(LABELS), KILLS))
    words = (
        *("stty rows 24 columns 80; TERM=xterm-256color LANG=C.UTF-8", sys.executable),
        *("-m tests.tui.labelling.sitting screen", tmp_path, LABELS),
    )
    at = 0
    with on_terminal(words, cwd=ROOT) as terminal:
        for stop in (*kills, LABELS):
            at = settled(tmp_path, terminal, at, keys)
            while at < stop:
                # as fast as they are shown
                terminal.type(keys[at].encode())
                at += 1
                if at < LABELS:
                    assert item(terminal, at) == at
            if stop < LABELS:
                pid = int((tmp_path / "pid").read_text())
                terminal.type(keys[at : at + BURST].encode())
                time.sleep(rng.uniform(0, 0.05))
                kill(tmp_path, pid)
        assert DONE in terminal.read_until(DONE)
        terminal.type(b"q")
        terminal.leader.wait(20)
    assert check(tmp_path, LABELS, keys, 0) == LABELS
    assert all(report.is_sound for report in verify_labels(tmp_path / "labels"))


def settled(folder: Path, terminal: Terminal, acknowledged: int, keys: str) -> int:
    """Return how many labels there are once a session has begun.

    It drops the keys that the killed one had not read: they were typed for its items.
    """
    terminal.shown = terminal.read_until(OPENED).rpartition(OPENED)[2]
    while True:
        count = check(folder, acknowledged, keys, BURST)
        if count < LABELS and item(terminal, count) > count:
            continue
        time.sleep(0.05)
        if check(folder, acknowledged, keys, BURST) == count:
            return count


def item(terminal: Terminal, least: int = 0) -> int:
    """The number of the item in front, counted from 0, once it is *least*."""
    while True:
        found = SHOWN.findall(terminal.shown)
        if found and int(found[-1]) - 1 >= least:
            terminal.shown = terminal.shown[-200:]
            return int(found[-1]) - 1
        before = len(terminal.shown)
        terminal.read_until(b"LABEL as ann", after=max(0, before - 12))
        if len(terminal.shown) == before:
            terminal.read_until(b"\x1b", after=before)
        assert len(terminal.shown) > before, terminal.shown[-2000:]


@needs_browser
@TIMEOUT
def test_no_acknowledged_label_of_a_page_is_lost(tmp_path: Path) -> None:
    rng = random.Random(26)
    keys = planned(PAGE_LABELS, rng)
    kills = sorted(rng.sample(range(PAGE_LABELS), PAGE_KILLS))
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.tui.labelling.sitting"),
            *("web", str(tmp_path), str(PAGE_LABELS)),
        ],
        cwd=ROOT,
        env=environment(None),
    )

    async def browse() -> None:
        at = 0
        async with browsing(tmp_path) as (page,):
            for stop in (*kills, PAGE_LABELS):
                await begin(page, tmp_path / "address")
                assert await page.look("state.done") == at
                while at < stop:
                    await page.press(keys[at])
                    at += 1
                    await page.until(f"!isBusy && state.done === {at}")
                if stop < PAGE_LABELS:
                    (tmp_path / "address").unlink()
                    pid = int((tmp_path / "pid").read_text())
                    for key in keys[at : at + BURST]:
                        await page.press(key)
                    await asyncio.sleep(rng.uniform(0, 0.02))
                    kill(tmp_path, pid)
                    # what the page has seen acknowledged
                    seen = max(at, await page.look("state.done"))
                    at = check(tmp_path, seen, keys, BURST)
            text = await page.look("document.body.innerText")
            assert "All items are labelled" in text
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGINT)

    try:
        asyncio.run(browse())
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.wait(20)
    assert check(tmp_path, PAGE_LABELS, keys, 0) == PAGE_LABELS


async def begin(page: Page, address: Path) -> None:
    """Open the page of the session that has begun, in the name of the last."""
    await wait_for(address.exists)
    await page.open(address.read_text())  # noqa: ASYNC240 - a line
    await page.until("!byId('who').hidden || state")
    if not await page.look("Boolean(state)"):
        await page.press("Enter")
    await page.until("state")


async def wait_for(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    while not holds():  # noqa: ASYNC110 - nobody says when
        await asyncio.sleep(0.01)
