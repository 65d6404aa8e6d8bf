"""PDF, text and XML files of reviews: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from jobs.kit.inputs.documents import read_document
from jobs.kit.inputs.pdf import PdfLimits, pdf_pages
from runner.errors import DatasetError
from tests.pdf_pages import assembled, nested, pdf

SAMPLE = Path(jobs.__file__).parent / "review_benchmark" / "sample" / "extraction"

PAGE = "\n".join(["word " * 10] * 8)


def test_the_samples_pdf_is_made_from_its_text_and_reads_the_same() -> None:
    text = (SAMPLE / "review.txt").read_text("utf-8")
    assert pdf(text.split("\f")) == (SAMPLE / "review.pdf").read_bytes()
    from_pdf, from_text = (
        read_document(SAMPLE / f"review.{suffix}") for suffix in ("pdf", "txt")
    )
    assert from_pdf.text.split() == from_text.text.split()
    assert len(from_pdf.starts) == 6
    for word in ("O B J E C T I V E S", "10.5555/ilr.2021.1"):
        pages = {each.page(each.text.index(word)) for each in (from_pdf, from_text)}
        assert len(pages) == 1


@pytest.mark.parametrize(
    ("content", "limits", "complaint"),
    [
        (b"not a PDF at all", PdfLimits(), "no PDF, or a broken one"),
        (pdf(["a few words"] * 3), PdfLimits(), "most pages hold no text, as scanned"),
        (pdf([PAGE] * 3), PdfLimits(pages=2), "it has 3 pages, more than 2 ("),
        (pdf([PAGE] * 3), PdfLimits(chars=500), "more than 500 characters"),
        (
            assembled(
                [b"<< /Type /Catalog >>"],
                trailer=b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (%s) /U (%s)"
                b" >> /ID [(a) (a)]" % (b"o" * 32, b"u" * 32),
            ),
            PdfLimits(),
            "it is encrypted (save it without a password",
        ),
        (nested(levels=9, calls=10), PdfLimits(seconds=0.5), "took more than 0.5 s"),
        (pdf(["x"]), PdfLimits(memory_bytes=4 << 20), "needed more than 4 MB"),
    ],
    ids=["broken", "scanned", "pages", "characters", "encrypted", "hangs", "memory"],
)
def test_a_pdf_that_cannot_be_read_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, limits: PdfLimits, complaint: str
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        pdf_pages(path, limits)
    said = str(caught.value)
    assert said.startswith("a.pdf: ")
    assert complaint in said
    assert "\n" not in said


def test_xml_is_read_as_lines_with_references_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        '<!DOCTYPE article PUBLIC "-//X//DTD//EN" "http://localhost/x.dtd">'
        "<article><title>Objectives</title><p>To test\n <italic>light</italic>.</p>"
        "<ref-list><title>References to studies included in this review</title>"
        "<ref><label>1</label><element-citation><name><surname>Alder</surname>"
        "<given-names>AB</given-names></name><article-title>One</article-title>"
        "<pub-id>10.5555/a</pub-id></element-citation></ref></ref-list></article>"
    )
    assert read_document(path).text.split("\n") == [
        "Objectives",
        "To test light.",
        "References to studies included in this review",
        "1 Alder AB One 10.5555/a",
    ]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.xml", "<a><b></a>", "a.xml line 1, column 8: it is not well-formed XML"),
        (
            "a.xml",
            '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
            "a.xml: it declares entities",
        ),
        (
            "a.xml",
            '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>',
            "a.xml: it declares entities",
        ),
        (
            "a.xml",
            '<!DOCTYPE a [<!ATTLIST a b CDATA "long">]><a>words</a>',
            "a.xml: it declares entities",
        ),
        ("a.xml", "<a>" * 20_000 + "</a>" * 20_000, "a.xml: it holds no text"),
        ("a.doc", "words", "a.doc: .doc is not read (give a .pdf, .txt or .xml)"),
        ("a.txt", " \n", "a.txt: it holds no text"),
        ("a.txt", "\udcff", "a.txt: byte 0 is not UTF-8"),
    ],
)
def test_other_files_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: str, complaint: str
) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8", errors="surrogateescape")
    with pytest.raises(DatasetError) as caught:
        read_document(path)
    assert str(caught.value).startswith(complaint)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none\.pdf: no such file"):
        read_document(tmp_path / "none.pdf")
