"""What a run can be compared with, to be chosen or typed."""

from __future__ import annotations

from itertools import islice
from typing import Any

from textual import on
from textual.message import Message

from tui.drawing.tables.choice_columns import CHOICE_COLUMNS, choices_wanted
from tui.drawing.tables.compare_words import no_choice
from tui.sources.choices import Choice, NoChoice, choices, typed
from tui.sources.comparing import Words
from tui.sources.sight import Trouble
from tui.watched import Watched
from tui.widgets.narrowed import FilteredTable
from tui.widgets.table import PagedTable

OFFERED = 2_000
"""Choices that are listed; typing their names reaches the others."""


class Choosing(FilteredTable[Choice]):
    """Lists the models of the run and those of other runs of its job."""

    class Chosen(Message):
        """Something to compare with was chosen."""

        def __init__(self, words: Words) -> None:
            super().__init__()
            self.words = words

    class Refused(Message):
        """What was typed cannot be compared with; the sentence says why."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, watched: Watched, reference: str, *, id: str) -> None:  # noqa: A002 - as every widget calls it
        """A list of choices.

        Args:
            watched: the run that is A.
            reference: how the command is told of it.
            id: for style sheets.
        """
        super().__init__(
            PagedTable(CHOICE_COLUMNS, watched.glyphs),
            choices_wanted,
            "what to compare with: a part of its name, or RUN, RUN:MODEL, FOLDER",
            id=id,
        )
        self._listing = watched.sources.listing
        self._own = watched.sources.run(watched.folder)
        self._reference = reference
        self._numbers: dict[Words, int] = {}  #: a choice keeps its own

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._own.close()

    def look(self) -> None:
        """See which runs there are, or that the run itself is gone."""
        own = self._own.look()
        if isinstance(own, Trouble):
            self.show({})
            self.table.explain(f"{own.sentence}.")
            return
        listed = self._listing.look()
        found = islice(choices(own, self._reference, listed), OFFERED)
        self.show(
            {
                self._numbers.setdefault(choice.words, len(self._numbers)): choice
                for choice in found
            }
        )
        is_whole = all(each.sight is not None for each in listed)
        runs_dir = str(self._listing.runs_dir)
        sentence = no_choice(own.status.job, runs_dir, self.part, is_whole=is_whole)
        self.table.explain(sentence)

    @on(PagedTable.Chosen)
    def _chosen(self, message: PagedTable.Chosen) -> None:
        message.stop()
        choice: Any = message.table.row
        if choice is not None:
            self.post_message(self.Chosen(choice.words))

    def take(self, text: str) -> None:
        """What was typed fits nothing that is listed: take it as it is."""
        try:
            words = typed(self._reference, text)
        except NoChoice as error:
            self.post_message(self.Refused(str(error)))
        else:
            self.post_message(self.Chosen(words))
