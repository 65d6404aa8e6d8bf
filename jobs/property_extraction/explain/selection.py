"""What a person asked to have explained: papers, properties of a paper, and names.

`Paper_1` is a paper. A name after it is that property in the paper; a name before any
paper is asked about as an alias.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from jobs.text import clip
from runner.errors import UsageError

SHOWN = 60
"""Characters of an unknown item that its error repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One page; at least one of both is there."""

    refno: str | None = None
    name: str | None = None


def selections(
    items: Iterable[str], papers: Collection[str], names: Collection[str]
) -> tuple[Selection, ...]:
    """What the items name, each page once.

    Args:
        items: in the order in which they were typed.
        papers: that the truth or a model has.
        names: that the truth, the rubric, an alias or a model has.

    Raises:
        UsageError: an item is neither; says what is near.
    """
    return tuple(dict.fromkeys(_read(items, papers, names)))


def _read(
    items: Iterable[str], papers: Collection[str], names: Collection[str]
) -> Iterator[Selection]:
    refno, has_page = None, True
    for item in items:
        if item in papers:
            if not has_page:
                yield Selection(refno=refno)
            refno, has_page = item, False
        elif item in names:
            yield Selection(refno=refno, name=item)
            has_page = True
        else:
            raise UsageError(_unknown(item, papers, names))
    if not has_page:
        yield Selection(refno=refno)


def _unknown(item: str, papers: Iterable[str], names: Iterable[str]) -> str:
    near = difflib.get_close_matches(item, sorted({*papers, *names}))
    hint = "name a paper, and a property after it."
    if near:
        found = ", ".join(repr(clip(name, SHOWN)) for name in near)
        hint = f"the nearest {'are' if near[1:] else 'is'} {found}."
    return f"There is no paper and no property {clip(item, SHOWN)!r}; {hint}"
