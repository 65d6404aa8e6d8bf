"""A segment as a file: what was written, or nothing.

Which segments lead on from where one has read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.errors import CorruptLog
from store.log.integrity import EventRow, genesis, link
from store.segments.segment import (
    LogPosition,
    Segment,
    SegmentOrigin,
    SegmentRange,
    commits_after,
    commits_bytes,
    contiguous_from,
    decode_segment,
    encode_segment,
    joined_commits,
)
from store.slices import Shard
from store.union.source import BlobRow, CommitRange, LogIdentity

EXAMPLES = 300 if "SIFTLOG_PROVE" in os.environ else 15

IDENTITY = LogIdentity(
    log=bytes(range(16)), run_id="r1", config_sha256=b"c" * 32, created_us=17
)
ORIGIN = SegmentOrigin(
    log=IDENTITY,
    shard=Shard(index=1, count=4, slices="256-511"),
    host="node7",
    pid=4711,
    siftlog_version="0.1.0",
)
GENESIS = genesis("r1", b"c" * 32, 17)

_INTS = st.integers(0, 2**62)


@st.composite
def _rows(draw: st.DrawFn, seq: int) -> EventRow:
    body = draw(st.none() | st.binary(max_size=40))
    return EventRow(
        seq=seq,
        ts_us=draw(_INTS),
        epoch=draw(st.integers(1, 3)),
        kind=draw(st.text(max_size=9)),
        ver=draw(_INTS),
        task=draw(st.none() | _INTS),
        attempt=draw(st.none() | _INTS),
        prev=draw(st.none() | _INTS),
        enc=0 if body is None else 1,
        blen=len(body or b""),
        facts=draw(st.binary(max_size=40)),
        body=body,
    )


@st.composite
def stretches(draw: st.DrawFn, after: int, head: bytes, parts: int) -> CommitRange:
    """Up to three commits after event *after*, and some parts; perhaps nothing."""
    rows: list[EventRow] = []
    links = []
    for size in draw(st.lists(st.integers(1, 3), max_size=3)):
        start = after + len(rows) + 1
        commit = [draw(_rows(seq)) for seq in range(start, start + size)]
        head = link(head, commit)
        rows += commit
        links.append((commit[-1].seq, head))
    blob = st.builds(
        BlobRow, st.binary(min_size=32, max_size=32), st.just(1), _INTS, st.binary()
    )
    blobs = draw(st.lists(blob, max_size=3))
    return CommitRange(
        rows=rows,
        blobs=blobs,
        links=links,
        writers={row.epoch: bytes([row.epoch]) * 16 for row in rows},
        blobs_upto=parts + len(blobs),
    )


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    start = draw(
        st.sampled_from([LogPosition(), LogPosition(0, 3), LogPosition(41, 7)])
    )
    head = GENESIS if start.seq == 0 else draw(st.binary(min_size=32, max_size=32))
    stretch = draw(stretches(start.seq, head, start.parts))
    return Segment(
        origin=draw(st.sampled_from([ORIGIN, replace(ORIGIN, shard=None)])),
        made_us=draw(_INTS),
        start=start,
        link_before=head,
        commits=stretch,
    )


@settings(max_examples=EXAMPLES)
@given(segments())
def test_a_segment_is_read_as_it_was_written(segment: Segment) -> None:
    span = segment.span()
    assert decode_segment(encode_segment(segment), span, "place") == segment


@settings(max_examples=EXAMPLES)
@given(segments(), st.data())
def test_flipped_and_missing_bytes_are_noticed(
    segment: Segment, data: st.DataObject
) -> None:
    written = encode_segment(segment)
    at = data.draw(st.integers(0, len(written) - 1))
    flipped = bytearray(written)
    flipped[at] ^= data.draw(st.integers(1, 255))
    for broken in (bytes(flipped), written[:at], written + b"\0"):
        with pytest.raises(CorruptLog, match=r"place/seg/.* is no sound segment"):
            decode_segment(broken, segment.span(), "place")


def _three() -> Segment:
    """Events 42 to 44, the last two in one commit."""
    rows = [
        EventRow(seq, seq * 10, 1, "run_paused", 1, None, None, None, 0, 0, b"{}", None)
        for seq in (42, 43, 44)
    ]
    first = link(b"b" * 32, rows[:1])
    links = [(42, first), (44, link(first, rows[1:]))]
    return Segment(
        origin=ORIGIN,
        made_us=9,
        start=LogPosition(41, 7),
        link_before=b"b" * 32,
        commits=CommitRange(
            rows=rows, links=links, writers={1: b"w" * 16}, blobs_upto=7
        ),
    )


def _changed(**fields: object) -> Segment:
    three = _three()
    return replace(three, commits=replace(three.commits, **fields))  # type: ignore[arg-type]


ROWS, LINKS = _three().commits.rows, _three().commits.links


@pytest.mark.parametrize(
    ("segment", "why"),
    [
        (_changed(rows=[ROWS[0]._replace(ts_us=1), *ROWS[1:]]), "event 42 is not"),
        (_changed(rows=[ROWS[0], ROWS[2]]), "events are missing"),
        (_changed(links=LINKS[:1]), "event 43 stands outside"),
        (_changed(writers={}), "does not name its writers"),
        (replace(_three(), link_before=b"x" * 32), "event 42 is not"),
        (replace(_three(), start=LogPosition(0, 7)), "does not begin as its run does"),
    ],
)
def test_a_segment_whose_parts_disagree_is_refused(segment: Segment, why: str) -> None:
    with pytest.raises(CorruptLog, match=why):
        decode_segment(encode_segment(segment), segment.span(), "place")


def test_a_segment_under_anothers_name_is_refused() -> None:
    with pytest.raises(CorruptLog, match="other events than its name says"):
        decode_segment(
            encode_segment(_three()), replace(_three().span(), log=bytes(16)), "place"
        )


def test_the_links_around_its_commits_are_known() -> None:
    segment = _three()
    assert segment.link_at(41) == b"b" * 32
    assert segment.link_at(43) is None
    assert segment.link_at(44) == segment.link


@settings(max_examples=EXAMPLES)
@given(stretches(41, b"b" * 32, 7), st.integers(0, 4))
def test_what_follows_an_event_is_told_apart(
    stretch: CommitRange, commits: int
) -> None:
    seqs = [41, *(seq for seq, _ in stretch.links)]
    seq = seqs[min(commits, len(seqs) - 1)]
    rest = commits_after(stretch, seq)
    assert [row.seq for row in rest.rows] == list(range(seq + 1, seqs[-1] + 1))
    assert [last for last, _ in rest.links] == [last for last in seqs if last > seq]
    assert set(rest.writers) == {row.epoch for row in rest.rows}
    assert rest.blobs == stretch.blobs


@settings(max_examples=EXAMPLES)
@given(
    st.lists(stretches(0, b"b" * 32, 0), max_size=6),
    st.integers(0, 200),
)
def test_neighbours_are_joined_up_to_a_weight(
    found: list[CommitRange], most: int
) -> None:
    together = list(joined_commits(found, most))
    for what in ("rows", "blobs", "links"):
        assert [x for s in together for x in getattr(s, what)] == [
            x for s in found for x in getattr(s, what)
        ]
    ends = list(accumulate(commits_bytes(stretch) for stretch in found))
    for stretch in together:
        assert commits_bytes(stretch) <= most or commits_bytes(stretch) in {
            end - start for start, end in zip([0, *ends], ends, strict=False)
        }
    for one, other in pairwise(together):
        assert commits_bytes(one) + commits_bytes(other) > most


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
