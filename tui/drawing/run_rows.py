"""The lines of the Runs screen: pure functions of what was seen of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from tui.drawing.chart import bar, course
from tui.drawing.clip import clip
from tui.drawing.format import amount, percent
from tui.drawing.glyphs import Glyphs
from tui.drawing.header import state_of
from tui.drawing.words import eta, sentence, spent
from tui.sources.listing import Listed
from tui.sources.run import Snapshot, Trouble

MIDDLE, WIDE = 98, 118
"""Columns of a screen from which on there is a bar, and a course."""
_CURSOR, _STATE, _NAME, _DONE, _RATE, _COST = 2, 13, 32, 9, 9, 19
_BAR, _COURSE = 12, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How the rows of a list are drawn: its width, and that of the longest id."""

    width: int
    longest: int
    glyphs: Glyphs

    @classmethod
    def of(cls, listed: Sequence[Listed], width: int, glyphs: Glyphs) -> Rows:
        """For the rows of one list."""
        longest = max((len(each.folder.run_id) for each in listed), default=0)
        return cls(width=width, longest=longest, glyphs=glyphs)

    @property
    def name(self) -> int:
        """The width of the ids, within reason."""
        return max(8, min(_NAME, self.longest))

    def heads(self) -> str:
        """What stands in the columns."""
        parts = [" " * _CURSOR, clip("state", _STATE), "  ", clip("run", self.name)]
        if self.width >= MIDDLE:
            parts.append(" " * (_BAR + 2))
        parts.append(clip("done", _DONE, is_right=True))
        if self.width >= WIDE:
            parts.append(" " * (_COURSE + 2))
        parts.append(clip("per min", _RATE, is_right=True))
        parts += ["  ", clip("cost", _COST, is_right=True), "  ETA, or job"]
        return clip("".join(parts), self.width)

    def row(self, listed: Listed, *, is_current: bool) -> Content:
        """One run."""
        cursor = clip(self.glyphs.cursor if is_current else "", _CURSOR)
        name = clip(listed.folder.run_id, self.name)
        sight = listed.sight
        if isinstance(sight, Snapshot):
            return self._seen(sight, cursor, name)
        sign = "" if sight is None else f"{self.glyphs.stalled} unreadable"
        line = f"{cursor}{clip(sign, _STATE)}  {name}  {_unseen(sight)}"
        return Content(clip(line, self.width))

    def _seen(self, seen: Snapshot, cursor: str, name: str) -> Content:
        share = seen.ended / seen.asked if seen.asked else None
        state = state_of(seen, self.glyphs)
        blank = " " * max(0, _STATE - state.cell_length)
        parts: list[str | Content | tuple[str, str]] = [
            cursor,
            state,
            blank,
            "  ",
            name,
        ]
        if self.width >= MIDDLE:
            parts += ["  ", (bar(share or 0.0, _BAR, self.glyphs), "$state-done")]
        parts.append(clip(percent(share, tenths=True), _DONE, is_right=True))
        if self.width >= WIDE:
            parts += ["  ", course(seen.course[-_COURSE:], _COURSE, self.glyphs)]
        rate = "" if seen.rate is None else amount(seen.rate)
        parts += [clip(rate, _RATE, is_right=True), "  "]
        parts += [clip(spent(seen), _COST, is_right=True), "  "]
        used = Content.assemble(*parts)
        ending = eta(seen) if seen.forecast else seen.status.job
        left = max(0, self.width - used.cell_length)
        return Content.assemble(used, clip(ending, left))


def about(listed: Listed) -> str:
    """What is worth knowing of a run beyond its row."""
    sight = listed.sight
    if not isinstance(sight, Snapshot):
        return _unseen(sight)
    tasks = sight.status.tasks
    parts = [
        f"{sight.status.job} {sight.status.job_version}",
        f"{sight.ended:,} of {sight.asked:,} tasks",
        f"{tasks.failed:,} failed",
        f"{tasks.waiting:,} waiting",
        *filter(None, [sentence(sight)]),
    ]
    return " · ".join(parts)


def summary(listed: Sequence[Listed]) -> str:
    """How many runs are in which state."""
    words = Counter(
        each.sight.state.replace("_", " ")
        for each in listed
        if isinstance(each.sight, Snapshot)
    )
    return " · ".join(f"{n} {word}" for word, n in sorted(words.items()))


def _unseen(sight: Trouble | None) -> str:
    return "not read yet" if sight is None else sight.sentence
