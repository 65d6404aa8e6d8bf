"""Compressed bodies, however they are cut."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.unpacking import PIECE_BYTES, DamagedBody, Unpacker


def raw(data: bytes) -> bytes:
    """Deflated without the header of zlib, as some servers send it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


WAYS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw),
]


def unpacked(compression: str, packed: bytes, cut: int) -> bytes:
    unpacker = Unpacker(compression)
    pieces = [
        piece
        for at in range(0, len(packed), cut)
        for piece in unpacker.pieces(packed[at : at + cut])
    ]
    unpacker.end()
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


@given(
    data=st.one_of(st.binary(max_size=400), st.just(bytes(3 * PIECE_BYTES))),
    cut=st.integers(1, 500),
    way=st.sampled_from(WAYS),
)
def test_a_body_comes_back_however_it_is_cut(
    data: bytes, cut: int, way: tuple[str, Callable[[bytes], bytes]]
) -> None:
    compression, pack = way
    assert unpacked(compression, pack(data), cut) == data


@given(data=st.binary(min_size=1, max_size=400), cut=st.integers(1, 20))
def test_a_body_that_ends_early_is_damaged(data: bytes, cut: int) -> None:
    packed = gzip.compress(data)[:-cut]
    with pytest.raises(DamagedBody):
        unpacked("gzip", packed, 7)


def test_nothing_at_all_is_empty_and_what_follows_the_end_is_ignored() -> None:
    assert unpacked("gzip", b"", 1) == b""
    assert unpacked("gzip", gzip.compress(b"x") + b"more", 3) == b"x"
    with pytest.raises(DamagedBody):
        unpacked("deflate", b"\xff\xff\xff\xff", 2)
