"""Which segments lead on from where one has read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.segments.segment import LogPosition, SegmentRange, contiguous_from

LOG = bytes(range(16))


def _span(
    start: LogPosition, end: LogPosition, *, is_rolled: bool = False
) -> SegmentRange:
    return SegmentRange(log=LOG, start=start, end=end, is_rolled=is_rolled)


_NUMBERS = st.integers(0, 10**12 - 1)


@given(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, st.booleans())
def test_a_span_is_read_from_its_name(
    before: int, after: int, parts: int, more: int, is_rolled: bool
) -> None:
    first, last = sorted((before, after))
    fewer, most = sorted((parts, more))
    span = _span(
        LogPosition(first, fewer), LogPosition(last, most), is_rolled=is_rolled
    )
    held = SegmentRange.parse(span.name)
    if span.start == span.end or first + 1 >= 10**12:
        assert held is None
    else:
        assert held == span


@pytest.mark.parametrize(
    "name",
    [
        "seg/notes.txt",
        f"seg/{LOG.hex()}/000000000001-000000000002.zst",
        f"seg/{LOG.hex()}/000000000000-000000000002.0-1.zst",
        f"seg/{LOG.hex()}/000000000005-000000000002.0-1.zst",
        f"seg/{LOG.hex()}/000000000003-000000000002.1-1.zst",
        f"seg/{LOG.hex()[2:]}/000000000001-000000000002.0-1.zst",
        f"done/{LOG.hex()}/000000000001-000000000002.0-1.zst",
    ],
)
def test_other_names_are_of_no_span(name: str) -> None:
    assert SegmentRange.parse(name) is None


@st.composite
def _cuts(draw: st.DrawFn) -> list[SegmentRange]:
    """One log up to event and part 6, cut in its own way."""
    marks = [LogPosition(), LogPosition(6, 6)]
    for _ in range(draw(st.integers(0, 5))):
        low = draw(st.sampled_from(marks[:-1]))
        high = marks[marks.index(low) + 1]
        marks.append(
            LogPosition(
                draw(st.integers(low.seq, high.seq)),
                draw(st.integers(low.parts, high.parts)),
            )
        )
        marks = sorted(set(marks))
    return [_span(start, end) for start, end in pairwise(marks)]


def _furthest(spans: Sequence[SegmentRange], mark: LogPosition) -> LogPosition:
    """By trying all of them, over and over."""
    for _ in spans:
        for span in spans:
            if mark.reaches(span.start):
                mark = mark.joined(span.end)
    return mark


@given(_cuts(), _cuts(), st.data())
def test_segments_lead_on_as_far_as_there_is_no_gap(
    one: list[SegmentRange], other: list[SegmentRange], data: st.DataObject
) -> None:
    spans = data.draw(st.permutations([*one, *other]))
    kept = spans[: data.draw(st.integers(0, len(spans)))]
    mark = reached = data.draw(
        st.sampled_from([LogPosition(), LogPosition(2, 1), LogPosition(6, 6)])
    )
    for span in contiguous_from(kept, mark):
        assert reached.reaches(span.start)
        assert not reached.reaches(span.end)
        reached = reached.joined(span.end)
    assert reached == _furthest(kept, mark)


def test_a_large_segment_is_read_instead_of_the_small_ones_it_holds() -> None:
    small = [_span(LogPosition(n, n), LogPosition(n + 1, n + 1)) for n in range(8)]
    large = _span(LogPosition(), LogPosition(8, 8), is_rolled=True)
    assert contiguous_from([*small, large], LogPosition()) == [large]
    assert contiguous_from([*small, large], LogPosition(7, 7)) == [large]
    assert contiguous_from([*small, large], LogPosition(8, 8)) == []
