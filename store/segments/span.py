"""Which part of a log a segment holds, and which segments lead on without a gap.

Pure: names in, names out. The same part may be held twice, in other cuts: small
segments and the larger one they were rolled up into. A reader takes whichever leads on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

FOLDER = "seg"

_NAME = re.compile(
    rf"{FOLDER}/([0-9a-f]{{32}})/"
    r"([0-9]{12})-([0-9]{12})\.([0-9]+)-([0-9]+)(\.rolled)?\.zst"
)


class Mark(NamedTuple):
    """How far a log has been read."""

    seq: int = 0  #: the last event
    parts: int = 0  #: the last message part, by its number in the log

    def reaches(self, other: Mark) -> bool:
        """Whether nothing up to *other* lies beyond this one."""
        return self.seq >= other.seq and self.parts >= other.parts

    def joined(self, other: Mark) -> Mark:
        """As far as either."""
        return Mark(max(self.seq, other.seq), max(self.parts, other.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What lies between two marks of a log: the name of a segment."""

    log: bytes
    start: Mark
    end: Mark
    is_rolled: bool = False  #: several segments in one

    @property
    def name(self) -> str:
        """Where it is kept in a place: first and last event, then the parts."""
        events = f"{self.start.seq + 1:012}-{self.end.seq:012}"
        parts = f"{self.start.parts}-{self.end.parts}"
        rolled = ".rolled" if self.is_rolled else ""
        return f"{FOLDER}/{self.log.hex()}/{events}.{parts}{rolled}.zst"

    @classmethod
    def named(cls, name: str) -> Span | None:
        """The span of that *name*; None: it is no segment's."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        first, last, before, parts = map(int, found.groups()[1:5])
        start, end = Mark(first - 1, before), Mark(last, parts)
        if first == 0 or start == end or not end.reaches(start):
            return None
        return cls(
            log=bytes.fromhex(found[1]), start=start, end=end, is_rolled=bool(found[6])
        )


def leading_on(spans: Iterable[Span], mark: Mark) -> list[Span]:
    """Those of one log's *spans* that lead on from *mark* without a gap, in order.

    Of several that begin at one mark the one that leads furthest is taken.
    """
    waiting = sorted(
        spans, key=lambda span: (span.start, -span.end.seq, -span.end.parts)
    )
    taken: list[Span] = []
    found = True
    while found:
        # cuts of two kinds may cross, so that one pass need not reach the end
        found = False
        for span in waiting:
            if mark.reaches(span.start) and not mark.reaches(span.end):
                taken.append(span)
                mark = mark.joined(span.end)
                found = True
    return taken


def end_of(led: Iterable[Span]) -> Mark:
    """How far segments lead that lead on from a log's beginning."""
    return reduce(Mark.joined, (span.end for span in led), Mark())
