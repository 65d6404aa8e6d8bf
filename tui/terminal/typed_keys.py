"""Handles keys one after another, as if each had been typed after the last was shown.

Over a slow line, several keys arrive in one read. Textual hands all of them to what has
the focus at that moment, so the second key of `t` `/` would reach the screen that the
first one leaves. Here a key waits until the one before has had its effect: its action
is done, a screen that it opened is mounted and has its focus, and what that screen
reads first is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker

_ROUNDS = 3
"""Messages that an action posts, and those that their handlers post."""
_MOST_ROUNDS = 12
"""Maximum rounds: each opened screen needs some."""
_ROUND_S = 0.5
"""Maximum time of a round: what does not answer has no effect to wait for."""
_READ_S = 1.0
"""Maximum time for the first reads of a screen, and for the entries of the palette."""
_LOOK_S = 0.005
"""Interval of checks for these."""
_STEPS = frozenset(
    {"list", "match", "task", "--textual-command-palette-gather-commands"}
)
"""Groups of work that decide what the next key acts on."""
_FIRST_READS = frozenset({"look", "page", "read", "text", "stakes"})
"""Groups of work without which a screen that was just opened is empty."""


class KeyMarker(Message):
    """Follows a key on its way, and arrives after it."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()


class KeyOrderApp(App[str]):
    """An application whose keys take effect in the order in which they were typed."""

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[events.Key | events.Paste] = deque()
        self._is_taking = False  #: a key has not had its effect yet

    async def on_event(self, event: events.Event) -> None:
        """Handle a key now, or after those before it."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._is_taking:
            self._typed.append(event)
        else:
            self._is_taking = True
            await super().on_event(event)
            _: Worker[None] = self.run_worker(self._take_typed, group="keys")

    async def _take_typed(self) -> None:
        """Handle the keys that arrived meanwhile."""
        try:
            await self._settle()
            while self._typed and self._running and not self._exit:
                await super().on_event(self._typed.popleft())
                await self._settle()
        finally:
            self._typed.clear()
            self._is_taking = False

    async def _settle(self) -> None:
        """Wait for the effect of a key."""
        first = self.screen
        calm = 0
        for _ in range(_MOST_ROUNDS):
            before = self._target()
            await self._round(before)
            calm = calm + 1 if self._target() is before else 0
            if calm == _ROUNDS or self._exit:
                break
        if self._typed and not (self._exit or self._is_text(self._typed[0])):
            await self._read(is_new=self.screen is not first)

    def _is_text(self, event: events.Key | events.Paste) -> bool:
        """Return whether it is text of a field, which depends on no other work."""
        is_text = isinstance(event, events.Paste) or event.is_printable
        return is_text and isinstance(self.focused, Input)

    def _target(self) -> DOMNode:
        return self.focused or self.screen

    async def _round(self, target: DOMNode) -> None:
        """Wait until what waits for *target*, and for what contains it, is handled."""
        marker = KeyMarker()
        if target.post_message(marker):
            with suppress(TimeoutError):
                await asyncio.wait_for(marker.arrived.wait(), _ROUND_S)

    def on_key_marker(self, marker: KeyMarker) -> None:
        """Note that a marker has arrived."""
        marker.arrived.set()

    async def _read(self, *, is_new: bool) -> None:
        """Wait for the work that decides what the next key acts on."""
        groups = _STEPS | _FIRST_READS if is_new else _STEPS
        for _ in range(round(_READ_S / _LOOK_S)):
            if self._exit or not any(
                worker.group in groups and not worker.is_finished
                for worker in self.workers
            ):
                return
            await asyncio.sleep(_LOOK_S)
