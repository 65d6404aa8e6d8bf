"""Renders the quality of replies by model, side by side, with warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from textual.content import Content

from tui.render.format import UNKNOWN, count, tight
from tui.render.layout import (
    MUTED,
    PANEL_GAP,
    PanelColumn,
    Room,
    lines_of,
    middle_cut,
    one_line,
    table_lines,
)
from tui.render.models import names_of, term
from tui.sources.run_snapshot import RunSnapshot, once

WARN_FROM = 0.05
"""Share of a model's replies from which a fault is a warning: one in twenty."""
LEAST_REPLIES = 30
"""Replies below which a share says too little: one more reply changes it by 3 % and
more."""
TITLE = f"replies by model, faults may overlap; ! from {100 * WARN_FROM:.0f} %"
TOO_FEW = "too few"
_REFUSAL = "refusal"
"""Why a refused reply could not be parsed, in `jobs.kit.replies`."""
_SHARE = 8
"""Cells of a share with its sign."""
_OPTIONAL = ("empty", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultShare:
    """Replies of one model with one fault."""

    fault: str
    share: float | None  #: None: unknown
    n: int  #: of how many

    @property
    def width(self) -> int:
        """Cells of its column."""
        return max(_SHARE, len(self.fault))

    @property
    def is_few(self) -> bool:
        """Whether there are too few for a share."""
        return self.n < LEAST_REPLIES

    @property
    def is_warning(self) -> bool:
        """Whether it needs the reader."""
        return not self.is_few and self.share is not None and self.share >= WARN_FROM

    def cell(self, stalled: str) -> Content:
        """Render the share; a warning has a glyph, not only a colour."""
        if self.share is None:
            return Content.styled(UNKNOWN.rjust(self.width), MUTED)
        if self.is_few:
            return Content.styled(TOO_FEW.rjust(self.width), MUTED)
        text = _percentage(self.share)
        if self.is_warning:
            return Content.styled(f"{stalled} {text}".rjust(self.width), _WARNING)
        return Content(text.rjust(self.width))


def _percentage(share: float) -> str:
    return f"{100 * share:.1f} %"


_WARNING = "$state-waiting bold"


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRow:
    """The replies of one model."""

    model: str
    name: str
    replies: int
    faults: tuple[FaultShare, ...]


@once
def quality_rows(snapshot: RunSnapshot) -> list[QualityRow]:
    """Return the models that have replied, in the order of the models."""
    shares = {shares.model: shares for shares in snapshot.status.replies}
    ungrounded = snapshot.result.ungrounded if snapshot.result else {}
    rows = []
    for model, name in names_of(snapshot).items():
        seen = shares.get(model)
        if seen is None:
            continue
        counted = {
            "unparsed": seen.unparsed,
            "truncated": seen.truncated,
            "refused": seen.withheld,
            "empty": seen.empty,
        }
        faults = [
            FaultShare(
                fault=fault,
                share=n / seen.replies if seen.replies else None,
                n=seen.replies,
            )
            for fault, n in counted.items()
        ]
        of = ungrounded.get(model)
        faults.insert(
            3,
            FaultShare(
                fault="ungrounded",
                share=of.value if of else None,
                n=of.n if of else 0,
            ),
        )
        tasks = seen.replies + seen.failed
        faults.append(
            FaultShare(
                fault="failed", share=seen.failed / tasks if tasks else None, n=tasks
            )
        )
        rows.append(
            QualityRow(
                model=model, name=name, replies=seen.replies, faults=tuple(faults)
            )
        )
    return rows


def quality_goals(snapshot: RunSnapshot) -> list[str]:
    """Return the filter of each row: its replies that were not parsed, else all."""
    unparsed = {of.model for of in snapshot.status.replies if of.unparsed}
    return [
        f"{term('model', row.model)} "
        f"{'parse:*' if row.model in unparsed else 'state:completed'}"
        for row in quality_rows(snapshot)
    ]


def warnings(snapshot: RunSnapshot) -> Iterator[str]:
    """Yield a sentence for each share that needs the reader, without a full stop."""
    reasons = {*snapshot.status.parse_failures, *snapshot.status.reasked}
    for row in quality_rows(snapshot):
        shares = {fault.fault: fault.share for fault in row.faults}
        is_one = shares["unparsed"] == shares["refused"] and reasons <= {_REFUSAL}
        for fault in row.faults:
            if fault.is_warning and not (is_one and fault.fault == "unparsed"):
                noun = "quotes and values" if fault.fault == "ungrounded" else "replies"
                noun = "tasks" if fault.fault == "failed" else noun
                yield (
                    f"warning: {row.name}: {_percentage(fault.share or 0.0)} of "
                    f"{count(fault.n)} {noun} {fault.fault}"
                    f"{_overlap(fault, shares, is_one=is_one)}"
                )


def _overlap(
    fault: FaultShare, shares: Mapping[str, float | None], *, is_one: bool
) -> str:
    """Say that a share may hold another: most refused replies cannot be parsed."""
    if is_one and fault.fault == "refused":
        return " and so unparsed"
    return (
        ", with refused ones" if shares["refused"] and fault.fault == "unparsed" else ""
    )


def quality_height(snapshot: RunSnapshot) -> int:
    """Return the lines that all models and warnings take."""
    rows = quality_rows(snapshot)
    return 1 + max(1, len(rows)) + sum(1 for _ in warnings(snapshot))


def _used(faults: Mapping[str, int], gap: str) -> int:
    """Return the cells of all columns but the names."""
    return 7 + len(gap) + sum(width + len(gap) for width in faults.values())


def quality(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw a row for each model, and a line for each warning."""
    rows = quality_rows(snapshot)
    if not rows:
        return lines_of(["No reply has arrived yet."], room)
    longest = max(5, *(len(row.name) for row in rows))
    name = PanelColumn("model", longest, is_right=False)
    faults = {fault.fault: fault.width for fault in rows[0].faults}
    for fault in reversed(_OPTIONAL):
        if longest + _used(faults, PANEL_GAP) > room.width:
            del faults[fault]
    gap = PANEL_GAP if longest + _used(faults, PANEL_GAP) <= room.width else " "
    name = replace(name, width=max(5, min(longest, room.width - _used(faults, gap))))
    columns = [
        name,
        PanelColumn("replies", 7),
        *(PanelColumn(fault, width) for fault, width in faults.items()),
    ]
    cells: list[list[str | Content]] = [
        [
            middle_cut(row.name, name.width),
            tight(row.replies, 7),
            *(
                fault.cell(room.glyphs.stalled)
                for fault in row.faults
                if fault.fault in faults
            ),
        ]
        for row in rows
    ]
    lines = [
        Content.styled(one_line(f"{room.glyphs.stalled} {text}", room.width), _WARNING)
        for text in warnings(snapshot)
    ]
    below = lines[: max(0, room.height - len(rows) - 1)]
    above = replace(room, height=max(2, room.height - len(below)))
    table = table_lines(columns, cells, above, gap)
    return Content("\n").join([table, lines_of(below, room)] if below else [table])
