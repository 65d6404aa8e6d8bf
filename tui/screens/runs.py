"""All runs of a folder, the latest first."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, OptionList
from textual.widgets.option_list import Option

from store.runs import RunFolder
from tui.drawing.clip import one_line
from tui.drawing.glyphs import Glyphs
from tui.drawing.only_ascii import shown_by
from tui.drawing.run_rows import Rows, about, summary
from tui.sources.listing import Listed, Listing
from tui.widgets.panel import Said, TooSmall

_PADDING = 2


class RunsScreen(Screen[None]):
    """The list of runs, and a line about the one under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move('down')", "Down", show=False, id="move.down"),
        Binding("k", "move('up')", "Up", show=False, id="move.up"),
        Binding("g", "move('first')", "First", show=False, id="move.first"),
        Binding("G", "move('last')", "Last", show=False, id="move.last"),
        Binding("l,right", "open", "Open", id="open"),
    ]

    class Opened(Message):
        """A run was chosen."""

        def __init__(self, folder: RunFolder) -> None:
            super().__init__()
            self.folder = folder

    def __init__(
        self, listing: Listing, glyphs: Glyphs, *, is_read_only: bool = False
    ) -> None:
        super().__init__()
        self._is_read_only = is_read_only
        self._listing = listing
        self._glyphs = glyphs
        self._listed: list[Listed] = []
        self._shown: list[Content] = []
        self._options = OptionList(id="runs", markup=False)
        self._heading, self._columns, self._empty, self._about = (
            Said(name, glyphs) for name in ("heading", "columns", "empty", "about")
        )

    def compose(self) -> ComposeResult:
        """A heading, the list, what is to be said of one, the keys."""
        yield self._heading
        yield self._columns
        yield self._options
        yield self._empty
        yield TooSmall(self._glyphs)
        yield self._about
        yield Footer(show_command_palette=False)

    @property
    def current(self) -> RunFolder | None:
        """The run under the cursor."""
        at = self._options.highlighted
        return None if at is None else self._listed[at].folder

    def on_resize(self) -> None:
        """Lines are as long as the screen is wide."""
        self.look()

    def on_screen_resume(self) -> None:
        """What was missed while another screen was in front."""
        self.look()

    def look(self) -> None:
        """Look, and show what has changed."""
        listed = self._listing.look()
        with self.app.batch_update():
            self._arrange(listed)
            self._draw()
            self._tell()

    def _arrange(self, listed: list[Listed]) -> None:
        """Take in what was seen; rows stay in their order, new ones come on top.

        The cursor stays on its run.
        """
        options = self._options
        at = options.highlighted
        current = None if at is None else self._listed[at].folder.run_id
        new = {each.folder.run_id: each for each in listed}
        order = [each.folder.run_id for each in self._listed]
        kept = [new.pop(run_id) for run_id in order if run_id in new]
        self._listed = [*new.values(), *kept]
        ids = [each.folder.run_id for each in self._listed]
        if ids != order:
            options.clear_options()
            options.add_options(Option("") for _ in ids)
            self._shown = []
            if ids:
                options.highlighted = ids.index(current) if current in ids else 0

    def _draw(self) -> None:
        """The lines that look otherwise than before."""
        options = self._options
        rows = Rows.of(self._listed, self.size.width - _PADDING, self._glyphs)
        lines = [
            shown_by(
                self._glyphs, rows.row(listed, is_current=at == options.highlighted)
            )
            for at, listed in enumerate(self._listed)
        ]
        for number, line in enumerate(lines):
            if not self._shown or not line.is_same(self._shown[number]):
                options.replace_option_prompt_at_index(number, line)
        self._shown = lines
        self._columns.say(rows.heads())
        current = options.highlighted
        words = "" if current is None else about(self._listed[current])
        self._about.say(one_line(words, self.size.width - _PADDING))

    def _tell(self) -> None:
        where = one_line(str(self._listing.runs_dir), 60)
        mode = " · read-only" if self._is_read_only else ""
        words = f"RUNS  {summary(self._listed)}  in {where}{mode}"
        self._heading.say(one_line(words, self.size.width - _PADDING))
        self.set_class(not self._listed, "-empty")
        if not self._listed:
            self._empty.say(
                f"There is no run in {where} yet. Start one with 'siftlog run JOB'; it "
                "appears here by itself. Leave with q."
            )

    def on_option_list_option_highlighted(self) -> None:
        """The cursor moved: its sign, and what is said of the run under it."""
        self._draw()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the run that was clicked or entered."""
        self.post_message(self.Opened(self._listed[event.option_index].folder))

    def action_open(self) -> None:
        """Open the run under the cursor."""
        self._options.action_select()

    def action_move(self, where: str) -> None:
        """Move the cursor."""
        options = self._options
        moves = {
            "down": options.action_cursor_down,
            "up": options.action_cursor_up,
            "first": options.action_first,
            "last": options.action_last,
        }
        moves[where]()
