"""The pace of a machine decides nothing here: a pause ends when nothing is due."""

from __future__ import annotations

import asyncio

import pytest
from textual._wait import wait_for_idle
from textual.notifications import Notification


async def until_nothing_can_run(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait as Textual does, then until every message has been processed.

    Textual takes a process that used no processor time for 20 ms for idle; on a busy
    machine that is one whose turn has not come.
    """
    await wait_for_idle(min_sleep, max_sleep)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, asyncio.BaseEventLoop)
    while True:
        await asyncio.sleep(0)
        if not loop._ready:  # type: ignore[attr-defined] - nothing else tells
            return


@pytest.fixture(autouse=True)
def _slowness_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are thorough; what was said in passing can be read until a test ends."""
    for module in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{module}.wait_for_idle", until_nothing_can_run)
    monkeypatch.setattr(Notification, "has_expired", False)
