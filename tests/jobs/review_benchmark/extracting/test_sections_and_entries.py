"""Sections by headings, entries by borders, chunks by both."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.inputs.documents import Document, TextSpan
from jobs.review_benchmark.extraction.review_text import (
    OVERLAP,
    chunks,
    entries,
    sections,
)


def _document(text: str) -> Document:
    return Document(name="a.txt", text=text, starts=(0,))


def _cut(text: str) -> dict[str, str]:
    document = _document(text)
    return {name: document.piece(span) for name, span in sections(document).items()}


@pytest.mark.parametrize(
    "heading",
    [
        "Authors' conclusions",
        "Authors\u2019 conclusions",
        "A U T H O R S '   C O N C L U S I O N S",
        "AUTHORS' CONCLUSIONS:",
        "7. Authors' conclusions",
    ],
)
def test_a_heading_is_known_however_it_is_printed(heading: str) -> None:
    assert _cut(f"before\n{heading}\nIt works.\nAcknowledgements\nnone") == {
        "conclusions": "It works."
    }


def test_the_section_counts_and_neither_its_contents_line_nor_the_abstracts() -> None:
    found = _cut(
        "Objectives . . . . . 3\nReferences to studies included in this review . 9\n"
        "Abstract\nObjectives\nShort.\nMain results\nSome.\n"
        "Objectives\nThe whole of it, at length.\nMethods\nCriteria for considering "
        "studies for this review\nTypes of studies\nTrials.\nTypes of participants\n"
        "Adults.\nSearch methods for identification of studies\nNone.\n"
        "References to studies included in this review\nAlder 2008 {x}\nOne.\n"
        "references\nstay.\nReferences to studies excluded from this review\nTwo.\n"
        "Characteristics of excluded studies [ordered by study ID]\nOak 2016 why"
    )
    assert found == {
        "objectives": "The whole of it, at length.",
        "criteria": "Types of studies\nTrials.\nTypes of participants\nAdults.",
        "included": "Alder 2008 {x}\nOne.\nreferences\nstay.",
        "excluded": "Two.",
        "reasons": "Oak 2016 why",
    }


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Alder 2008 {published data only}\nA.\nAB 12 {x}\nB.", ["Alder", "AB 12"]),
        ("Alder 2008\nA. Title. J 2008.\nOak 2009a\nB.", ["Alder", "Oak"]),
        ("Only 2008 {x}\nA.", ["Only"]),
        ("1. Alder A. One.\nmore\n2. Oak B. Two.", ["1. Alder", "2. Oak"]),
        ("[1] Alder A.\n[2] Oak B.", ["[1]", "[2]"]),
        ("Alder one\nmore\n\nOak two\n", ["Alder", "Oak"]),
        ("Alder AB, Oak C. One.\nmore\nOak C. Two.", ["Alder AB", "Oak C. Two"]),
        ("no border at all", ["no border"]),
    ],
)
def test_entries_begin_at_the_first_kind_of_border_that_there_is(
    text: str, starts: list[str]
) -> None:
    document = _document(text)
    found = entries(document, document.whole)
    assert len(found) == len(starts)
    for span, start in zip(found, starts, strict=True):
        assert document.piece(span).startswith(start)
    assert found[-1].end == len(text)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(5, 30))
def test_chunks_hold_every_entry_end_at_borders_and_overlap(
    sizes: list[int], size: int
) -> None:
    lines = [
        f"Alder {2000 + n} {{x}}\n" + "Birch AB,\nOak C. A title. J 2008.\n" * held
        for n, held in enumerate(sizes)
    ]
    document = _document("".join(lines))
    found = entries(document, document.whole)
    assert len(found) == len(sizes)
    made = chunks(document, found, size)
    starts, ends = [span.start for span in found], [span.end for span in found]
    assert made[0].start == 0
    assert made[-1].end == len(document.text)
    for before, after in pairwise(made):
        assert starts.index(after.start) > starts.index(before.start)
        shared = ends.index(before.end) - starts.index(after.start) + 1
        assert 0 <= shared <= OVERLAP
    for span in made:
        held = sizes[starts.index(span.start) : ends.index(span.end) + 1]
        assert sum(held[:-1]) < size


def test_spans_know_what_stands_in_both() -> None:
    assert TextSpan(start=0, end=3).overlaps(TextSpan(start=2, end=5))
    assert not TextSpan(start=0, end=3).overlaps(TextSpan(start=3, end=5))
