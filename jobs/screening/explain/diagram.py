"""The way of the candidates as boxes: target, related reviews, candidates.

As wide as a page, whatever the texts hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.screening.explain.account import Account, Related
from jobs.text import WIDTH, cut, one_line, padded, plural

BOXES = 4
"""Related reviews that are drawn: those that share most, then by id."""
SHARED = 3
"""Shared papers that a box names."""

_INDENT = " "
_GAP = "  "
_WIDE = WIDTH - 2 * len(_INDENT)
UNTITLED = "(no title)"


def diagram(account: Account) -> Iterator[str]:
    """The lines of the diagram."""
    near = sorted(account.related, key=lambda one: (-len(one.shared), one.review))
    shown = sorted(near[:BOXES], key=lambda one: one.review)
    included = plural(account.statistics.n_included, "included paper")
    yield from _beside(
        [[account.review, account.title or UNTITLED, included]], marks="┬" * len(shown)
    )
    if not shown:
        yield f"{_INDENT}no related review: nothing is collected"
        return
    yield _lines(len(shown), "│")
    yield from _beside([_related(one) for one in shown], top="┴", bottom="┬")
    if near[BOXES:]:
        yield f"{_INDENT}and {plural(len(near[BOXES:]), 'further related review')}"
    yield _lines(len(shown), "▼")
    papers = " ".join(one.paper for one in account.candidates)
    candidates = plural(len(account.candidates), "candidate")
    collected = account.statistics.n_related_papers
    left = (
        f"{collected:,} collected, without the {collected - len(account.candidates):,} "
        "that the review includes"
    )
    yield from _beside([[candidates, papers or "none", left]])


def _related(one: Related) -> list[str]:
    shared = [f"* {paper}" for paper in one.shared[:SHARED]]
    if len(one.shared) > SHARED:
        shared.append(f"* {len(one.shared) - SHARED:,} more")
    title = one.title or UNTITLED
    brings = f"brings {one.brings:,}"
    return [one.review, title, f"includes {one.included:,}", *shared, brings]


def _beside(
    boxes: Sequence[Sequence[str]], *, top: str = "", bottom: str = "", marks: str = ""
) -> Iterator[str]:
    """Boxes of one height in a row.

    Args:
        boxes: the lines of each; texts from outside are made safe here.
        top: sign in the middle of every upper edge.
        bottom: sign in the middle of every lower edge.
        marks: signs in the lower edge of a single box, above the boxes to come.
    """
    width = _width(len(boxes))
    height = max(map(len, boxes))
    yield _INDENT + _GAP.join(_edge("┌", "┐", top, width) for _ in boxes)
    for row in range(height):
        cells = (box[row] if row < len(box) else "" for box in boxes)
        yield _INDENT + _GAP.join(
            f"│ {padded(cut(one_line(cell), width - 4), width - 4)} │" for cell in cells
        )
    if marks:
        signs = list("└" + "─" * (width - 2) + "┘")
        for place, mark in zip(_middles(len(marks)), marks, strict=True):
            signs[place] = mark
        yield _INDENT + "".join(signs)
    else:
        yield _INDENT + _GAP.join(_edge("└", "┘", bottom, width) for _ in boxes)


def _edge(left: str, right: str, sign: str, width: int) -> str:
    middle = width // 2
    line = "─" * (middle - 1) + (sign or "─")
    return left + line + "─" * (width - 1 - len(line) - 1) + right


def _lines(n: int, sign: str) -> str:
    """A sign under, or over, the middle of each of *n* boxes."""
    places = _middles(n)
    row = [" "] * _WIDE
    for place in places:
        row[place] = sign
    return (_INDENT + "".join(row)).rstrip()


def _middles(n: int) -> list[int]:
    width = _width(n)
    return [number * (width + len(_GAP)) + width // 2 for number in range(n)]


def _width(n: int) -> int:
    return (_WIDE - len(_GAP) * (n - 1)) // n
