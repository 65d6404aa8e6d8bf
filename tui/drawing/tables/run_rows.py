"""The lines of the Runs screen: pure functions of what was seen of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from tui.drawing.chart import bar, course
from tui.drawing.clip import clip
from tui.drawing.format import amount, duration, money, percent
from tui.drawing.glyphs import Glyphs
from tui.drawing.run.header import state_of
from tui.drawing.run.models import limited_by
from tui.drawing.words import ending, sentence, spent
from tui.sources.listing import Listed
from tui.sources.sight import Snapshot, Trouble

MIDDLE, WIDE, WIDEST = 98, 118, 150
"""Columns of a screen from which on there is a bar, a course, and the job."""
_CURSOR, _STATE, _NAME, _DONE, _RATE = 2, 13, 32, 9, 9
_SPENT, _COST, _END = 9, 19, 15
_BAR, _COURSE, _JOB = 12, 10, 20

_RANKS = {
    "live": 0,
    "quiet": 0,
    "draining": 0,
    "stalled": 1,
    "lost": 1,
    "paused": 2,
    "budget_stop": 3,
    "drained": 3,
    "finished": 4,
    "cancelled": 4,
}
_UNKNOWN = 5


def rank(listed: Listed) -> int:
    """Where a run stands in a list: those at work first, then what needs a person."""
    sight = listed.sight
    return _RANKS[sight.state] if isinstance(sight, Snapshot) else _UNKNOWN


def matches(listed: Listed, words: str) -> bool:
    """Whether a run's name, job, state or group has each of some words in it."""
    sight = listed.sight
    said = [listed.folder.run_id]
    if isinstance(sight, Snapshot):
        said += [sight.status.job, sight.state.replace("_", " ")]
        said += [sight.status.group or ""]
    text = " ".join(said).lower()
    return all(word in text for word in words.lower().split())


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
        """The width of the ids, within reason and as far as there is room."""
        others = _CURSOR + _STATE + 2 + _DONE + _RATE + 2 + self.cost + 2 + _END
        for from_width, more in ((MIDDLE, _BAR), (WIDE, _COURSE), (WIDEST, _JOB)):
            others += more + 2 if self.width >= from_width else 0
        return max(8, min(_NAME, self.width - others, self.longest))

    @property
    def cost(self) -> int:
        """The width of what was spent; of a budget there is more room."""
        return _SPENT if self.width < WIDE else _COST

    def heads(self) -> str:
        """What stands in the columns."""
        parts = [" " * _CURSOR, clip("state", _STATE), "  ", clip("run", self.name)]
        if self.width >= WIDEST:
            parts += ["  ", clip("job", _JOB)]
        if self.width >= MIDDLE:
            parts.append(" " * (_BAR + 2))
        parts.append(clip("done", _DONE, is_right=True))
        if self.width >= WIDE:
            parts.append(" " * (_COURSE + 2))
        parts.append(clip("per min", _RATE, is_right=True))
        parts += ["  ", clip("cost", self.cost, is_right=True), "  ends in"]
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
        if self.width >= WIDEST:
            parts += ["  ", clip(seen.status.job, _JOB)]
        if self.width >= MIDDLE:
            parts += ["  ", (bar(share or 0.0, _BAR, self.glyphs), "$state-done")]
        parts.append(clip(percent(share, tenths=True), _DONE, is_right=True))
        if self.width >= WIDE:
            parts += ["  ", course(seen.course[-_COURSE:], _COURSE, self.glyphs)]
        rate = amount(seen.rate)
        parts += [clip(rate, _RATE, is_right=True), "  "]
        cost = spent(seen) if self.cost == _COST else money(seen.status.cost_usd)
        parts += [clip(cost, self.cost, is_right=True), "  "]
        used = Content.assemble(*parts)
        left = max(0, self.width - used.cell_length)
        return Content.assemble(used, clip(ending(seen), left))


def about(listed: Listed) -> tuple[str, str]:
    """What is worth knowing of a run beyond its row, in two lines."""
    sight = listed.sight
    if not isinstance(sight, Snapshot):
        return listed.folder.run_id, _unseen(sight)
    tasks = sight.status.tasks
    share = tasks.failed / sight.asked if sight.asked else None
    oldest, failure = sight.facts.oldest, sight.facts.last_failure
    held = limited_by(sight)
    parts = [
        f"{sight.ended:,} of {sight.asked:,} tasks",
        f"failed {tasks.failed:,} ({percent(share, tenths=True)})",
        f"retry-waiting {tasks.waiting:,}",
        *([f"oldest in flight {_ago(sight, oldest[0].since_us)}"] if oldest else []),
        *([f"limited by {held}"] if held else []),
        *([f"last error {_ago(sight, failure.at_us)} ago"] if failure else []),
    ]
    job = f"{listed.folder.run_id} · {sight.status.job} {sight.status.job_version}"
    group = sight.status.group and f"group {sight.status.group}"
    said = [job, *filter(None, [group, sentence(sight)])]
    return " · ".join(said), " · ".join(parts)


def _ago(seen: Snapshot, at_us: int) -> str:
    return duration(seen.age_s(at_us))


def summary(listed: Sequence[Listed]) -> str:
    """How many runs are in which state."""
    words = Counter(
        each.sight.state
        if isinstance(each.sight, Snapshot)
        else "unread"
        if each.sight is None
        else "unreadable"
        for each in listed
    )
    states = sorted(words, key=lambda word: (_RANKS.get(word, _UNKNOWN), word))
    return " · ".join(f"{words[word]} {word.replace('_', ' ')}" for word in states)


def _unseen(sight: Trouble | None) -> str:
    return "not read yet" if sight is None else sight.sentence
