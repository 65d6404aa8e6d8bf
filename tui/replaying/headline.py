"""The headline metrics of a run as they were at the moment of a replay."""

from __future__ import annotations

from store.runs import RunFolder
from tui.replaying.replay import Replay
from tui.sources.answers import Answers
from tui.sources.child import Child
from tui.sources.headline import ChildHeadline


class PastHeadline(ChildHeadline):
    """Has the answers scored that there were by then."""

    def __init__(
        self, past: Replay, folder: RunFolder, child: Child, answers: Answers
    ) -> None:
        super().__init__(folder, child, answers)
        self._past = past

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command that reckons it."""
        return (*super().command, "--at", str(self._past.moment.seq))
