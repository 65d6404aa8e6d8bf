"""What replies of an extraction say; nothing a model writes makes a reader fail.

`siftlog prepare review-benchmark extract`: a run that ends in files of truth. Sections
by headings, entries by borders, chunks by both.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jobs
from jobs.kit.inputs.documents import Document, TextSpan
from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.data import QuestionParts
from jobs.review_benchmark.extraction.parsing import (
    References,
    ReviewMeta,
    SectionPlaces,
    parse_meta,
    parse_places,
    parse_references,
)
from jobs.review_benchmark.extraction.review_text import (
    OVERLAP,
    chunks,
    entries,
    sections,
)
from jobs.review_benchmark.truth_files import read_truth
from jobs.screening.citations import CitationCollector, read_exclusions
from runner.cli.main import exit_code
from runner.messages import ParseFailure, Reply
from tests.processes import siftlog

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["title", "references", "places", "pico", "section", "begin"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES | st.text())
def test_any_reply_is_read_or_refused_with_a_reason(value: object) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    for parse, kind in (
        (parse_places, SectionPlaces),
        (parse_meta, ReviewMeta),
        (parse_references, References),
    ):
        assert isinstance(parse(Reply(text=text)), kind | ParseFailure)


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("", "stop", "empty"),
        ("I cannot.", "refusal", "refusal"),
        ('{"references": [{"title": "a"', "length", "truncated"),
        ('{"references": "none"}', "stop", "no_references"),
        ("There are none.", "stop", "no_references"),
    ],
)
def test_a_list_that_cannot_be_read_says_why(
    text: str, finish: str, reason: str
) -> None:
    found = parse_references(Reply(text=text, finish_reason=finish))
    assert found == ParseFailure(reason=reason)


def test_references_are_read_from_prose_and_fences_with_numbers_as_written() -> None:
    text = (
        'Here:\n```json\n{"references": [{"title": "One\\n two", "pmid": 99000001, '
        '"year": 2008, "authors": "Alder AB", "doi": null}, "what?"]}\n```'
    )
    found = parse_references(Reply(text=text))
    assert isinstance(found, References)
    (own,) = found.read
    assert (own.title, own.pmid, own.year) == ("One two", "99000001", "2008")
    assert (own.authors, own.doi) == (("Alder AB",), "")
    assert found.unusable == 1


def test_a_record_is_read_and_what_is_no_text_is_empty() -> None:
    value = {
        "cochrane_id": "CD1",
        "title": ["no text"],
        "pico": {"population": "adults", "outcome": ["x"]},
        "inclusion_criteria": ["a", None, " b "],
        "date_range": [2020, 1990],
    }
    assert parse_meta(Reply(text=json.dumps(value))) == ReviewMeta(
        id="CD1", pico=QuestionParts(population="adults"), inclusion=("a", "b")
    )
    assert parse_meta(Reply(text='{"titel": 1}')) == ParseFailure(reason="no_review")


def test_places_are_whole_numbers_of_known_sections_the_first_of_each() -> None:
    value = {
        "places": [
            {"section": "included", "begin": 4, "end": None},
            {"section": "included", "begin": 9, "end": None},
            {"section": "objectives", "begin": 1.5, "end": 2},
            {"section": "weather", "begin": 1, "end": 2},
            "none",
        ]
    }
    found = parse_places(Reply(text=json.dumps(value)))
    assert found == SectionPlaces(lines={"included": (4, None)})


SAMPLE = Path(jobs.__file__).parent / "review_benchmark" / "sample" / "extraction"
PREPARE = ("prepare", "review-benchmark", "extract")


def test_a_wrong_and_an_ungrounded_reference_are_found_and_nothing_asked_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = (SAMPLE / "replies.jsonl").read_text("utf-8").splitlines()
    recording = tmp_path / "replies.jsonl"
    # at first one answer is not to be had
    recording.write_text("\n".join(replies[1:]), "utf-8")
    words: tuple[object, ...] = (
        *("--model", "recorded:replies.jsonl", "--run-id", "x", "--with-excluded"),
        *(SAMPLE / "review.pdf", "--out", "data", "--no-report"),
    )
    first = siftlog(*PREPARE, *words, cwd=tmp_path, check=False)
    assert first.returncode == 6
    assert "cannot be written, since title could not be read" in first.stderr
    recording.write_text("\n".join(replies[:1]), "utf-8")
    data = tmp_path / "data"
    assert not list(data.glob("cochrane_*"))
    (data / "cochrane_CD900001.json").write_text("made by hand", "utf-8")
    siftlog("retry", "x", cwd=tmp_path)
    words = ("--accept", "--no-report", "--output-dir", "data")
    resumed = siftlog("resume", "x", *words, cwd=tmp_path)
    assert (data / "cochrane_CD900001.json~").read_text("utf-8") == "made by hand"
    assert "which is now in cochrane_CD900001.json~" in resumed.stderr
    summary = siftlog("score", "x", "--no-record", cwd=tmp_path).stdout
    count = "10 references of 9 studies (abstract: 9); 1 dropped, 0 repeated"
    doi = "10.5555/ilr.2012.055"
    for line in (
        "Extraction: ACCEPTED",
        f"Included: {count}",
        f"  - Cedar 2012: DOI that is not in its reference was removed ({doi})",
        "  - Medlar 2018: does not occur in the text and was dropped (Medlar RS. Light",
    ):
        assert line in summary
    evidence = json.loads((data / "extraction_CD900001.json").read_text("utf-8"))
    assert [each["page"] for each in evidence["included"]] == [5] * 8 + [6] * 2
    assert [each["cochrane_ref_id"] for each in evidence["dropped"]] == ["Medlar 2018"]
    (review,) = read_truth(data, InputFindings())
    assert (review.id, len(review.studies)) == ("CD900001", 10)
    (cedar,) = (each for each in review.studies if each.ref_id == "Cedar 2012")
    assert (cedar.doi, cedar.title[:10]) == ("", "Évaluation")
    cited = CitationCollector().citations()
    excluded = read_exclusions(
        data / "excluded_CD900001.csv", cited, InputFindings(), {}
    )
    assert [(each.paper, each.reason) for each in excluded.exclusions] == [
        ("99000011", "No light was used in either group"),
        ("99000012", "Participants did not work at night"),
    ]
    runs = str(tmp_path / "runs")
    assert exit_code(["explain", "x", "CD900001", "--runs-dir", runs]) == 2
    assert "is in extraction_<id>.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("a.txt",), "builds files; say in which folder with --out."),
        (("--out", "x"), "reads one file; it was given 0."),
        (("a.txt", "b.txt", "--out", "x"), "reads one file; it was given 2."),
        (("--dry-run", "none.txt", "--out", "x"), "none.txt: no such file"),
        (("a.txt", "--out", "x", "--colour", "red"), "has no setting 'colour'"),
    ],
)
def test_words_that_make_no_run_are_refused(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*PREPARE, *words]) in {1, 2}
    assert complaint in capsys.readouterr().err


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
