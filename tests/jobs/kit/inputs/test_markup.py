"""Papers in JATS, TEI, docling JSON, HTML and Markdown keep sections and pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.inputs.documents import Document, cleaned_document, read_paper
from jobs.kit.inputs.marked_text import HEADING, PAGE, UNPRINTED
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError

JATS = """<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS-archivearticle1.dtd">
<article><front><journal-meta><journal-title>Moss</journal-title></journal-meta>
<article-meta><article-id pub-id-type="pmid">123</article-id>
<article-id pub-id-type="doi">10.5555/x</article-id>
<title-group><article-title>On <italic>wet</italic> moss</article-title></title-group>
<pub-date><year>2021</year></pub-date>
<abstract><sec><title>Methods</title><p>Moss was watered.</p></sec></abstract>
</article-meta></front><body><p>A lead paragraph.</p>
<sec><label>1</label><title>Methods</title><sec><title>Plots</title>
<p>There were 40 plots<xref>1</xref>.</p><table-wrap><caption><title>Yield</title>
</caption><table><tr><th>Arm</th><th>n</th></tr><tr><td>Wet</td><td>20</td></tr></table>
</table-wrap></sec></sec></body><back><ack><p>We thank all.</p></ack>
<ref-list><title>Literature</title><ref><mixed-citation>Old moss.
1999.</mixed-citation></ref></ref-list></back></article>"""

TEI = """<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt>
<title>Dry moss</title></titleStmt><sourceDesc><biblStruct><idno type="DOI">10.5555/y
</idno></biblStruct></sourceDesc></fileDesc><profileDesc><abstract><div><p>
<s>Moss dried.</s><s>It lived.</s></p></div></abstract></profileDesc></teiHeader>
<text><body><div><head n="1" coords="1,1,1,1,1">Introduction</head><p>Moss dries
<ref>(1)</ref>.</p></div><div><head n="1.1">Plots</head><p coords="3,1,1,1,1">There were
40 plots.</p></div></body><back><div><listBibl><biblStruct><title>Old moss</title>
<date>1999</date></biblStruct></listBibl></div></back></text></TEI>"""

HTML = """<html><head><title>Moss | A site</title><script>if (a<b) x()</script>
<meta name="citation_title" content="Wet moss"></head><body><nav><h2>Menu</h2></nav>
<h1>Wet moss</h1><p>It <b>gr</b>ew.<h2>Methods</h2><ul><li>There were 40 plots<li>or so
</ul><table><tr><th>Arm<th>n<tr><td>Wet<td>20</table></body></html>"""

MARKDOWN = """# Wet moss

Methods
-------

```
# no heading
```
### Plots
There were 40 plots.
"""

DOCLING = {
    "schema_name": "DoclingDocument",
    "body": {"children": [{"$ref": f"#/{name}"} for name in (
        "texts/0", "texts/1", "groups/0", "tables/0", "texts/3", "texts/4"
    )]},
    "groups": [{"children": [{"$ref": "#/texts/2"}]}],
    "texts": [
        {"label": "title", "text": "Wet moss", "prov": [{"page_no": 1}]},
        {"label": "section_header", "level": 1, "text": "Methods"},
        {"label": "text", "text": "There were 40 plots.", "prov": [{"page_no": 3}]},
        {"label": "page_footer", "text": "3", "prov": [{"page_no": 3}]},
        {"label": "caption", "text": "Table 1. Arms."},
    ],
    "tables": [{"captions": [{"$ref": "#/texts/4"}], "data": {"table_cells": [
        {"text": text, "start_row_offset_idx": 0, "start_col_offset_idx": column}
        for column, text in enumerate(("Wet", "20"))
    ]}}],
    "pages": {"1": {}, "3": {}},
}  # fmt: skip


def read(folder: Path, name: str, text: str) -> Document:
    path = folder / name
    path.write_text(text, "utf-8")
    return read_paper(path, InputFindings())


@pytest.mark.parametrize(
    ("name", "text", "title", "place"),
    [
        ("a.xml", JATS, "On wet moss", "Methods > Plots"),
        ("a.tei", TEI, "Dry moss", "page 3, Introduction > Plots"),
        ("a.html", HTML, "Wet moss", "Methods"),
        ("a.md", MARKDOWN, "Wet moss", "Methods > Plots"),
        ("a.json", json.dumps(DOCLING), "Wet moss", "page 3, Methods"),
    ],
)
def test_a_quote_has_the_place_that_its_file_gives(
    tmp_path: Path, name: str, text: str, title: str, place: str
) -> None:
    document = read(tmp_path, name, text)
    assert document.metadata["title"] == title
    assert str(document.place(document.text.index("40 plots"))) == place
    assert not set(document.text) & {HEADING, UNPRINTED, PAGE}


def test_the_parts_of_a_jats_paper_are_kept_apart(tmp_path: Path) -> None:
    document = read(tmp_path, "a.nxml", JATS)
    assert document.metadata == {
        "title": "On wet moss",
        "abstract": "Methods\nMoss was watered.",
        "journal": "Moss",
        "year": "2021",
        "doi": "10.5555/x",
    }
    assert document.text.startswith("On wet moss\nMethods\nMoss was watered.\nA lead")
    assert "Arm | n\nWet | 20\n" in document.text
    places = {
        text: str(document.place(document.text.index(text)))
        for text in ("On wet", "Moss was", "A lead", "Yield", "We thank", "Old moss. 1")
    }
    assert places == {
        "On wet": "",
        "Moss was": "Abstract > Methods",
        "A lead": "",
        "Yield": "Methods > Plots",
        "We thank": "Acknowledgements",
        "Old moss. 1": "Literature",
    }


def test_tei_sentences_form_paragraphs_and_references_lines(tmp_path: Path) -> None:
    document = read(tmp_path, "a.xml", TEI)
    assert "Moss dried. It lived.\nIntroduction\nMoss dries (1).\n" in document.text
    assert document.text.endswith("Old moss 1999")
    assert document.metadata["doi"] == "10.5555/y"


def test_html_leaves_out_navigation_and_scripts(tmp_path: Path) -> None:
    assert read(tmp_path, "a.htm", HTML).text == (
        "Wet moss\nIt grew.\nMethods\nThere were 40 plots\nor so\nArm | n\nWet | 20"
    )


def test_html_in_a_declared_encoding_is_read_and_another_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.html"
    path.write_bytes('<meta charset="latin-1"><p>5 µg'.encode("latin-1"))
    assert read_paper(path, InputFindings()).text == "5 µg"
    path.write_bytes("<p>5 µg".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"a\.html: it is not in the encoding utf-8"):
        read_paper(path, InputFindings())


@given(st.text(alphabet="<>/ahtdrpble1=\"' -!&;\n", max_size=120))
def test_any_html_is_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.html"
    path.write_text(f"<p>text</p><table>{text}", "utf-8")
    assert "text" in read_paper(path, InputFindings()).text


MARKS = (HEADING, HEADING * 2, f"{HEADING}x{UNPRINTED}", PAGE, UNPRINTED)

MARKED = st.lists(
    st.one_of(
        st.text(alphabet="ab \n", max_size=6),
        st.sampled_from(MARKS),
    )
)


@given(MARKED)
def test_marks_become_ascending_offsets_inside_the_text(pieces: list[str]) -> None:
    document = cleaned_document("a.xml", "".join(pieces).split(PAGE))
    offsets = [section.start for section in document.sections]
    assert offsets == sorted(offsets)
    assert all(offset <= len(document.text) for offset in offsets)
    assert HEADING not in document.text


def test_a_docling_table_follows_its_caption_and_page_numbers_are_left_out(
    tmp_path: Path,
) -> None:
    assert read(tmp_path, "a.json", json.dumps(DOCLING)).text == (
        "Wet moss\nMethods\n\nThere were 40 plots.\nTable 1. Arms.\nWet | 20"
    )
