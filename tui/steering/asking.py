"""How somebody before the monitor asks something of a run, from the key to the answer.

The dialog decides, the run's `Control` writes, and what becomes of it is told over
whatever screen is in front by then. Without a control nothing of this happens.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from textual.app import App
from textual.worker import Worker

from store.errors import StoreError
from store.printable import printable
from tui.sources.child import ChildFailed
from tui.sources.sight import Snapshot
from tui.steering.actions import Action
from tui.steering.control import Control
from tui.steering.decision import expected_state
from tui.steering.following import Followed, News
from tui.watched import Watched

if TYPE_CHECKING:
    from tui.steering.dialog import Wish

LOOK_S = 0.5
"""Between two looks at what became of a request, while an answer is due."""
TOLD_S, PASSING_S = 8.0, 3.0
"""How long the last word on a request is shown, and any before it."""


class Asking:
    """Asks things of one run that is watched."""

    def __init__(self, app: App[str], watched: Watched, control: Control) -> None:
        self._app = app
        self._watched = watched
        self._control = control
        self._clock = watched.sources.clock
        self._source = watched.sources.requests(watched.folder)
        self._run_id = watched.folder.run_id
        self._is_closed = False

    def close(self) -> None:
        """Follow nothing any more; what was asked stays asked."""
        self._is_closed = True
        self._source.close()
        self._control.close()

    def begin(self, action: Action, seen: Snapshot, aim: str) -> None:
        """Open the dialog of an action.

        Args:
            action: what is to be asked.
            seen: the run, as whoever decides sees it.
            aim: the filter of the tasks that are looked at; empty: of none.
        """
        from tui.steering.dialog import Dialog  # noqa: PLC0415 - not for the first paint

        choices = action.choices(seen, aim)
        if not choices:
            return
        state = expected_state(seen)

        def decided(wish: Wish | None) -> None:
            if wish is not None:
                self._ask(wish, state)

        dialog = Dialog(
            action,
            choices,
            run_id=self._run_id,
            state=seen.state,
            source=self._source,
            glyphs=self._watched.glyphs,
        )
        self._app.push_screen(dialog, decided)

    def _ask(self, wish: Wish, state: str) -> None:
        if wish.kind == "score":
            self._work(self._score(wish))
            return
        try:
            # to take something back is right in whatever state
            expected = None if wish.kind == "withdraw" else state
            name = self._control.ask(wish.kind, wish.payload, expected)
        except OSError as error:
            said = f"nothing was asked: {error.strerror}; check the run's folder"
            self._tell(News(sentence=said, is_bad=True))
            return
        self._tell(News(sentence=f"{wish.words}: requested", is_passing=True))
        followed = Followed(
            id=name,
            words=wish.words,
            run_id=self._run_id,
            asked_us=self._clock.now_us(),
        )
        self._work(self._follow(followed))

    def _work(self, work: Coroutine[None, None, None]) -> None:
        _: Worker[None] = self._app.run_worker(
            work, group="asking", exit_on_error=False
        )

    async def _score(self, wish: Wish) -> None:
        self._tell(News(sentence=f"{wish.words}: begun", is_passing=True))
        try:
            said = await self._control.score()
        except ChildFailed as error:
            self._tell(News(sentence=f"{wish.words}: {error}", is_bad=True))
        else:
            self._tell(News(sentence=f"{wish.words}: {said}"))

    async def _follow(self, followed: Followed) -> None:
        while not (followed.is_over or self._is_closed):
            try:
                found = await self._source.look()
            except (StoreError, sqlite3.Error, OSError):
                pass  # the screen in front says what is wrong with the log
            else:
                followed, news = followed.see(found, self._clock.now_us())
                if news is not None:
                    self._tell(news)
            await self._clock.sleep_until(self._clock.monotonic() + LOOK_S)

    def _tell(self, news: News) -> None:
        self._app.notify(
            printable(f"{news.sentence}."),
            severity="warning" if news.is_bad else "information",
            timeout=PASSING_S if news.is_passing else TOLD_S,
            markup=False,
        )
