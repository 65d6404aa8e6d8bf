"""All runs of a folder, the latest first."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from store.runs import RunFolder
from tui.chart import bar, course
from tui.clip import clip, one_line
from tui.format import amount, percent
from tui.glyphs import Glyphs
from tui.header import state_of
from tui.listing import Listed, Listing
from tui.screens.looking import LookingScreen
from tui.source import Snapshot, Trouble
from tui.words import eta, sentence, spent

MIDDLE, WIDE = 100, 120
"""Columns of a screen from which on a bar is shown, and a course."""
_STATE, _NAME, _SHARE, _RATE, _COST = 13, 32, 7, 7, 19
_BAR, _COURSE = 12, 10


class RunsScreen(LookingScreen):
    """The list of runs, and a line about the one under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move('down')", "Down", show=False, id="down"),
        Binding("k", "move('up')", "Up", show=False, id="up"),
        Binding("g", "move('first')", "First", show=False, id="first"),
        Binding("G", "move('last')", "Last", show=False, id="last"),
        Binding("enter,l,right", "open", "Open", id="open"),
    ]

    class Opened(Message):
        """A run was chosen."""

        def __init__(self, folder: RunFolder) -> None:
            super().__init__()
            self.folder = folder

    def __init__(self, listing: Listing, glyphs: Glyphs) -> None:
        super().__init__()
        self._listing = listing
        self._glyphs = glyphs
        self._listed: list[Listed] = []
        self._shown: list[Content] = []
        self._longest = 0  # of the ids

    def compose(self) -> ComposeResult:
        """A heading, the list, what is to be said of one, the keys."""
        yield Static(id="heading", markup=False)
        yield Static(id="columns", markup=False)
        yield OptionList(id="runs", markup=False)
        yield Static(id="empty", markup=False)
        yield Static(id="about", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the first sight at once."""
        self.look()

    def on_resize(self) -> None:
        """Lines are as long as the screen is wide."""
        self._shown = []
        self.look()

    def look(self) -> None:
        """Look, and show what has changed."""
        self._arrange(self._listing.look())
        width = self.size.width
        lines = [self._line(listed, width) for listed in self._listed]
        options = self.query_one(OptionList)
        with self.app.batch_update():
            if len(lines) != options.option_count:
                at = options.highlighted
                options.clear_options()
                options.add_options(Option(line) for line in lines)
                options.highlighted = min(at or 0, len(lines) - 1) if lines else None
            else:
                for index, (line, shown) in enumerate(
                    zip(lines, self._shown or [Content()] * len(lines), strict=True)
                ):
                    if not line.is_same(shown):
                        options.replace_option_prompt_at_index(index, line)
            self._shown = lines
            self._tell()

    def _arrange(self, listed: list[Listed]) -> None:
        """Rows stay where they are while the screen is open; new ones come on top."""
        known = {each.folder.run_id: each for each in listed}
        order = [each.folder.run_id for each in self._listed]
        kept = [known.pop(run_id) for run_id in order if run_id in known]
        self._listed = [*known.values(), *kept]
        self._longest = max((len(each.folder.run_id) for each in listed), default=0)

    def _line(self, listed: Listed, width: int) -> Content:
        name = clip(listed.folder.run_id, self._name_width())
        sight = listed.sight
        if not isinstance(sight, Snapshot):
            why = sight.sentence if isinstance(sight, Trouble) else "not read yet"
            rest = max(0, width - _STATE - self._name_width() - 8)
            sign = clip("! unreadable" if sight else "", _STATE)
            return Content(f"{sign}  {name}  {clip(why, rest)}")
        share = sight.ended / sight.asked if sight.asked else None
        state = state_of(sight, self._glyphs)
        blank = " " * max(0, _STATE - state.cell_length)
        parts: list[str | Content | tuple[str, str]] = [state, blank, "  ", name, "  "]
        if width >= MIDDLE:
            parts += [(bar(share or 0.0, _BAR, self._glyphs), "$state-done"), " "]
        parts.append(clip(percent(share, tenths=True), _SHARE, is_right=True))
        if width >= WIDE:
            parts += ["  ", course(sight.course[-_COURSE:], _COURSE, self._glyphs)]
        is_moving = sight.state in {"live", "quiet", "draining", "stalled"}
        rate = amount(sight.status.pace) if is_moving else ""
        parts += [clip(rate, _RATE, is_right=True), "  "]
        parts.append(clip(spent(sight), _COST, is_right=True))
        used = Content.assemble(*parts)
        left = max(0, width - used.cell_length - 8)
        ending = eta(sight) if sight.forecast else sight.status.job
        return Content.assemble(used, "  ", clip(ending, left))

    def _name_width(self) -> int:
        """As wide as the longest id, within reason."""
        return max(8, min(_NAME, self._longest))

    def _heads(self, width: int) -> str:
        """What stands in the columns of `_line`."""
        parts = [clip("state", _STATE), "  ", clip("run", self._name_width()), "  "]
        if width >= MIDDLE:
            parts.append(" " * (_BAR + 1))
        parts.append(clip("done", _SHARE, is_right=True))
        if width >= WIDE:
            parts.append(" " * (_COURSE + 2))
        parts += [clip("per min", _RATE, is_right=True), "  "]
        parts += [clip("cost", _COST, is_right=True), "  ETA, or job"]
        return "".join(parts)

    def _tell(self) -> None:
        counts: dict[str, int] = {}
        for listed in self._listed:
            if isinstance(listed.sight, Snapshot):
                word = listed.sight.state.replace("_", " ")
                counts[word] = counts.get(word, 0) + 1
        said = " · ".join(f"{n} {word}" for word, n in sorted(counts.items()))
        where = self._listing.runs_dir
        heading = one_line(f"RUNS  {said}  in {where} · read-only", self.size.width - 2)
        self.query_one("#heading", Static).update(heading, layout=False)
        heads = one_line(self._heads(self.size.width), self.size.width - 4)
        self.query_one("#columns", Static).update(heads, layout=False)
        is_empty = not self._listed
        self.set_class(is_empty, "-empty")
        if is_empty:
            self.query_one("#empty", Static).update(
                f"There is no run in {one_line(str(where), 60)} yet. Start one with "
                "'siftlog run JOB'; it appears here by itself. Leave with q."
            )
        self._about()

    def on_option_list_option_highlighted(self) -> None:
        """The line about the run under the cursor."""
        self._about()

    def _about(self) -> None:
        at = self.query_one(OptionList).highlighted
        words = ""
        if at is not None and at < len(self._listed):
            words = _about(self._listed[at])
        about = one_line(words, self.size.width - 2)
        self.query_one("#about", Static).update(about, layout=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the run that was clicked or entered."""
        self.post_message(self.Opened(self._listed[event.option_index].folder))

    def action_open(self) -> None:
        """Open the run under the cursor."""
        self.query_one(OptionList).action_select()

    def action_move(self, where: str) -> None:
        """Move the cursor."""
        options = self.query_one(OptionList)
        getattr(
            options, f"action_cursor_{where}", getattr(options, f"action_{where}")
        )()


def _about(listed: Listed) -> str:
    """What is worth knowing of a run beyond its row."""
    sight = listed.sight
    if not isinstance(sight, Snapshot):
        return sight.sentence if sight else "not read yet"
    tasks = sight.status.tasks
    parts = [
        f"{sight.status.job} {sight.status.job_version}",
        f"{sight.ended:,} of {sight.asked:,} tasks",
        f"{tasks.failed:,} failed",
        f"{tasks.waiting:,} waiting",
        *filter(None, [sentence(sight)]),
    ]
    return " · ".join(parts)
