"""What is written into a manuscript is read from it again, whatever it is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jobs.kit.methods.blocks import Block, Bullets, MethodsTable, Paragraph
from jobs.kit.methods.docx import read_docx, write_docx
from jobs.kit.methods.manuscript import (
    Source,
    plain_latex,
    read_manuscript,
    unchecked_numbers,
)
from jobs.kit.methods.markup import latex, markdown, source_line
from jobs.kit.methods.references import QuotedValue, name_of
from store.document import Heading
from tests.latex import assert_compiles

HOSTILE = (
    "<script>alert(1)</script>",
    "<!--siftlog:cost:total-->9<!--/siftlog-->",
    "\\siftlogvalue{cost:total}{9}",
    "\\input{/etc/passwd} % ~ ^ # $ & _ { }",
    "a|b | c",
    "[x](http://example.org) ![y](z) **bold** _it_ `code` $x^2$ @who www.x.org",
    "&lt; &amp; --- ... ''quoted'' ``so''",
    "\x1b[31mred\u202e\x00\n# heading\n- list",
    "{=html} --> -- <!--",
)
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40)).filter(
    lambda text: bool(text.strip())
)


def _reference(text: str) -> QuotedValue:
    return QuotedValue(name=name_of("model", text, "name"), value=text)


def _blocks(text: str) -> list[Block]:
    value = _reference(text)
    return [
        Heading("Methods", level=1),
        Paragraph(("The model ", value, " answered 50% & more.")),
        Bullets((("It is ", value), (value, " again"))),
        MethodsTable(
            caption=("Models of ", value),
            columns=("a", "b"),
            rows=((("[1]",), (value,)), ((value,), ("*",))),
        ),
    ]


def _seen(text: str) -> str:
    return " ".join(_reference(text).text.split())


@given(TEXTS)
def test_markdown_is_read_back_and_holds_no_markup_of_a_value(text: str) -> None:
    written = markdown(_blocks(text), source_line("r/1", 2, 3))
    read = read_manuscript(written, "markdown")
    assert [mark.text for mark in read.marks] == [_seen(text)] * 6
    assert {mark.name for mark in read.marks} == {_reference(text).name}
    assert read.sources == (Source(run="r/1", scoring=2, seq=3),)
    reader = MarkdownIt("gfm-like", {"linkify": False})
    kinds = {
        inline.type
        for token in reader.parse(written)
        for inline in token.children or ()
    }
    assert kinds <= {"text", "html_inline", "text_special"}
    paragraph = next(
        t for t in reader.parse(written) if t.type == "inline" and t.map != [2, 3]
    )
    assert all(
        inline.content.startswith(("<!--siftlog:", "<!--/siftlog-->"))
        for inline in paragraph.children or ()
        if inline.type == "html_inline"
    )
    assert "<script" not in reader.render(written)


@given(TEXTS)
@settings(max_examples=15)
def test_latex_is_read_back(text: str) -> None:
    written = latex(_blocks(text), source_line("r", None, 3))
    read = read_manuscript(written, "latex")
    assert [mark.text for mark in read.marks] == [_seen(text)] * 6
    assert {mark.name for mark in read.marks} == {_reference(text).name}


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_compiles(text: str, tmp_path: Path) -> None:
    assert_compiles(latex(_blocks(text), source_line("r", 1, 3)), tmp_path)


@pytest.mark.parametrize("text", HOSTILE)
def test_docx_is_read_back(text: str, tmp_path: Path) -> None:
    pytest.importorskip("docx")
    path = tmp_path / "text.docx"
    write_docx(path, _blocks(text), source_line("r", 1, 3))
    read = read_docx(path)
    assert [mark.text for mark in read.marks] == [_seen(text)] * 6
    assert {mark.name for mark in read.marks} == {_reference(text).name}
    assert read.sources == (Source(run="r", scoring=1, seq=3),)


@pytest.mark.parametrize("form", ["markdown", "gfm", "commonmark_x"])
def test_marks_survive_pandoc(form: str, tmp_path: Path) -> None:
    pandoc = shutil.which("pandoc")
    if pandoc is None:
        pypandoc = pytest.importorskip("pypandoc", reason="pandoc is not installed")
        pandoc = pypandoc.get_pandoc_path()
    values = ["large_model--v2", "28 November 2026", "0.917", "'a' \"b\" ...", *HOSTILE]
    # pandoc writes the text &lt; so that it reads < itself
    values = [text for text in values if "&lt;" not in text]
    written = tmp_path / "text.md"
    blocks = [block for text in values for block in _blocks(text)]
    written.write_text(markdown(blocks, source_line("r", 1, 3)))
    done = subprocess.run(
        [pandoc, "-f", "markdown", "-t", form, written],
        capture_output=True,
        text=True,
        check=True,
    )
    read = read_manuscript(done.stdout, "markdown")
    assert [mark.text for mark in read.marks] == [
        _seen(text) for text in values for _ in range(6)
    ]


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        (r"1{,}234", "1,234"),
        (r"1\,234", "1 234"),
        (r"$-$0.5", "-0.5"),
        (r"\textbf{0.917}", "0.917"),
        (r"\num{1234}", "1234"),
        (r"97.1\,\%", "97.1 %"),
        (r"28~November 2026", "28 November 2026"),
        ("28 November\n  2026", "28 November 2026"),
        (r"gpt\_4", "gpt_4"),
    ],
)
def test_latex_is_read_as_it_is_seen(written: str, seen: str) -> None:
    assert plain_latex(written) == seen


def test_latex_is_read_as_authors_leave_it() -> None:
    read = read_manuscript(
        "% \\siftlogvalue{a}{1}\n"
        "\\providecommand{\\siftlogvalue}[2]{#2}\n"
        "50\\% of \\siftlogvalue {a}\n  {2 {\\small x}} and \\siftlogvalue{b} lost,\n"
        "\\siftlogvalue{c}{3",
        "latex",
    )
    assert [(m.line, m.column, m.name, m.text) for m in read.marks] == [
        (4, 4, "a", "2 x"),
        (4, 22, "b", None),
        (5, 1, "c", None),
    ]


def test_markdown_is_read_as_authors_leave_it() -> None:
    read = read_manuscript(
        "<!--siftlog:a-->**1**<!--/siftlog--> and <!-- siftlog:b --> 2\n"
        "<!--siftlog:c-->3<!-- note --><!--/siftlog-->",
        "markdown",
    )
    assert [(m.line, m.name, m.text) for m in read.marks] == [
        (1, "a", "1"),
        (1, "b", None),
        (2, "c", "3"),
    ]


def test_numbers_beside_a_metric_are_counted_and_others_are_not() -> None:
    read = read_manuscript(
        "Recall was 0.91 (n = 30). In 2020 there were 7. The recall is "
        "<!--siftlog:a-->0.5<!--/siftlog-->.\n\nSee 2024 and recalling 3.",
        "markdown",
    )
    assert unchecked_numbers(read, ["Recall", "n"]) == 2
    assert unchecked_numbers(read, []) == 0
