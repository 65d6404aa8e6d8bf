"""Chunks of long texts: nothing is lost, nothing is too long."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.inputs.chunks import Chunking, split
from runner.money.tokens import text_tokens

TEXTS = st.lists(
    st.text(st.sampled_from("ab. \n!1"), max_size=400)
    | st.text(st.characters(codec="utf-8"), max_size=60),
    max_size=12,
).map("".join)


@given(TEXTS, st.integers(50, 120), st.integers(0, 20))
def test_chunks_cover_the_text_and_are_short(text: str, tokens: int, lap: int) -> None:
    chunks = split(text, Chunking(tokens=tokens, overlap=lap))
    assert [chunk.number for chunk in chunks] == list(range(1, len(chunks) + 1))
    assert (chunks[0].span.start, chunks[-1].span.end) == (0, len(text))
    for before, after in pairwise(chunks):
        assert before.span.start < after.span.start <= before.span.end
        assert before.span.end < after.span.end
        shared = text[after.span.start : before.span.end]
        assert text_tokens(shared) <= lap + 1
    for chunk in chunks:
        assert text_tokens(text[chunk.span.start : chunk.span.end]) <= tokens


def test_a_chunk_begins_with_the_end_of_the_one_before() -> None:
    text = " ".join(f"Sentence {n} is here." for n in range(50))
    chunks = split(text, Chunking(tokens=60, overlap=12))
    first, second = chunks[0].span, chunks[1].span
    assert second.start < first.end
    assert text[second.start :].startswith("Sentence")


def test_a_short_text_is_one_chunk() -> None:
    assert len(split("Short.", Chunking(tokens=50))) == 1
    assert len(split("a " * 999, None)) == 1
