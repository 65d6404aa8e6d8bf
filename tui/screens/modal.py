"""A question over a screen, answered once."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Modal(ModalScreen[ScreenResultType]):
    """Of two answers that come in one go, as a held key gives, the first counts.

    Textual's own would close the screen behind with the second, and answer again.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Answer and go, unless that was done."""
        return super().dismiss(result) if self.is_current else AwaitComplete()
