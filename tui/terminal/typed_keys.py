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
_ALT = "alt+"
_TOGETHER_S = 0.005
"""Maximum time between keys of one read: no hand is that fast."""
_STEPS = frozenset(
    {"list", "match", "task", "read", "--textual-command-palette-gather-commands"}
)
"""Groups of work that decide what the next key acts on."""
_FIRST_READS = frozenset({"look", "page", "text", "stakes"})
"""Groups of work without which a screen that was just opened is empty."""


def _may_be_escape(event: events.Key | events.Paste) -> bool:
    return isinstance(event, events.Key) and event.key == "circumflex_accent"


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
            return
        first, *rest = self._split(event)
        if self._is_taking:
            self._typed += [first, *rest]
            return
        self._is_taking = True
        if _may_be_escape(first):
            self._typed.append(first)
        else:
            await super().on_event(first)
        self._typed += rest
        _: Worker[None] = self.run_worker(self._take_typed, group="keys")

    def _split(
        self, event: events.Key | events.Paste
    ) -> list[events.Key | events.Paste]:
        """Return an escape and a key for a key with alt that has no action.

        A terminal sends the same for both if the two arrive together.
        """
        if isinstance(event, events.Paste) or not event.key.startswith(_ALT):
            return [event]
        if event.key in self.screen.active_bindings:
            return [event]
        key = events.Key(event.key.removeprefix(_ALT), event.character)
        return [events.Key("escape", "\x1b"), key]

    async def _take_typed(self) -> None:
        """Handle the keys that arrived meanwhile."""
        try:
            await self._settle()
            while self._typed and self._running and not self._exit:
                await super().on_event(await self._next_typed())
                await self._settle()
        finally:
            self._typed.clear()
            self._is_taking = False

    async def _next_typed(self) -> events.Key | events.Paste:
        """Return the next key; an escape that was taken for another key is one again.

        Textual reads an escape and a key that arrive together as `^` and the key.
        """
        event = self._typed.popleft()
        if _may_be_escape(event):
            if not self._typed:
                await asyncio.sleep(_TOGETHER_S)
            if self._typed and self._typed[0].time - event.time < _TOGETHER_S:
                return events.Key("escape", "\x1b")
        return event

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
