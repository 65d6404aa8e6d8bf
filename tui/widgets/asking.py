"""A question under way: how long it takes, or why there is no answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from textual.message import Message
from textual.worker import Worker

from store.clock import Clock
from store.printable import printable
from tui.drawing.glyphs import Glyphs
from tui.drawing.tables.compare_words import failed, stopped, waiting
from tui.sources.child import ChildFailed
from tui.widgets.panel import TextBlock

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Asking(TextBlock):
    """Does what is asked, one thing at a time; silent where there is nothing to say."""

    class Changed(Message):
        """It has something else to say, or nothing any more."""

    def __init__(self, name: str, glyphs: Glyphs, clock: Clock) -> None:
        """Nothing is asked yet.

        Args:
            name: for style sheets.
            glyphs: the signs to show.
            clock: tells how long it takes.
        """
        super().__init__(name, glyphs)
        self._clock = clock
        self._what = ""
        self._begun = 0.0
        self._is_busy = False
        self._trouble = ""

    @property
    def is_busy(self) -> bool:
        """Whether an answer is awaited."""
        return self._is_busy

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to say, so that something else can be shown."""
        return not self._is_busy and not self._trouble

    def ask(self, what: str, work: Work) -> None:
        """Do *work*, which nobody may wait for; what was asked before is stopped."""
        self._what, self._begun = what, self._clock.monotonic()
        self._is_busy, self._trouble = True, ""
        _: Worker[None] = self.run_worker(partial(self._do, work), exclusive=True)
        self._change()

    async def _do(self, work: Work) -> None:
        try:
            await work()
        except ChildFailed as error:
            self._trouble = str(error)
        self._is_busy = False
        self._change()

    def stop(self) -> None:
        """Stop what is done, and say so."""
        if self._is_busy:
            seconds = self._clock.monotonic() - self._begun
            self.workers.cancel_node(self)
            self._is_busy = False
            self.refuse(stopped(self._what, seconds))

    def refuse(self, sentence: str) -> None:
        """Say why there is nothing to show."""
        self._trouble = sentence
        self._change()

    def hush(self) -> None:
        """Say nothing more of what failed or was stopped."""
        self._trouble = ""
        self._change()

    def look(self) -> None:
        """Say how long it takes by now."""
        if self._is_busy:
            seconds = self._clock.monotonic() - self._begun
            self.say(printable(waiting(self._what, seconds)))
        elif self._trouble:
            self.say(printable(failed(self._trouble)))

    def _change(self) -> None:
        self.look()
        self.post_message(self.Changed())
