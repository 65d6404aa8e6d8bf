"""The chain tells any two different histories apart."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from store.log.integrity import EventRow, genesis, link

_NUMBERS = st.integers(0, 3)
_BYTES = st.binary(max_size=3)
_ROWS = st.lists(
    st.builds(
        EventRow,
        seq=_NUMBERS,
        ts_us=_NUMBERS,
        epoch=_NUMBERS,
        kind=st.sampled_from(["a", "ab", ""]),
        ver=_NUMBERS,
        task=st.none() | _NUMBERS,
        attempt=st.none() | _NUMBERS,
        prev=st.none() | _NUMBERS,
        enc=_NUMBERS,
        blen=_NUMBERS,
        facts=_BYTES,
        body=_BYTES,
    ),
    max_size=3,
)


@given(_ROWS, _ROWS)
def test_different_rows_give_different_links(
    one: list[EventRow], other: list[EventRow]
) -> None:
    assume(one != other)
    assert link(bytes(32), one) != link(bytes(32), other)


@given(_ROWS)
def test_a_link_depends_on_all_before_it(rows: list[EventRow]) -> None:
    assert link(bytes(32), rows) == link(bytes(32), list(rows))
    assert link(bytes(32), rows) != link(b"\1" + bytes(31), rows)


def test_the_first_link_follows_the_runs_identity() -> None:
    first = genesis("run", b"c" * 32, 7)
    assert first == genesis("run", b"c" * 32, 7)
    others = [
        genesis("other", b"c" * 32, 7),
        genesis("run", b"d" * 32, 7),
        genesis("run", b"c" * 32, 8),
    ]
    assert first not in others
