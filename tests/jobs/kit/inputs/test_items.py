"""Items are read from every format, and bad input is refused in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.inputs.items import Item, columns, read_items, text_template
from jobs.kit.inputs.rows import InputFindings
from runner.errors import DatasetError
from tests.pdf_pages import FONT, assembled, pdf

PAGE = "\n".join(["word " * 10] * 8)

RIS = """TY  - JOUR
ID  - k1
TI  - Moss
AB  - Wet moss grows.
ER  -
TY  - JOUR
TI  - Lichen
DO  - 10.5555/lichen
ER  -
"""

BIBTEX = """@article{k1, title={Moss}, abstract={Wet moss grows.}}
@article{k2, title={Lichen}, doi={10.5555/lichen}}
"""

PUBMED = """<?xml version="1.0"?><PubmedArticleSet><PubmedArticle><MedlineCitation>
<PMID>7</PMID><Article><ArticleTitle>Moss</ArticleTitle><Abstract><AbstractText>
Wet moss grows.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>
</PubmedArticleSet>"""

NBIB = """
PMID- 7
TI  - Moss
AB  - Wet moss
      grows.
FAU - Birch, A

PMID- 8
TI  - Lichen
LID - 10.5555/lichen [doi]
"""

ENCRYPTED = assembled(
    [b"<< /Type /Catalog >>"],
    trailer=b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (%s) /U (%s)"
    b" >> /ID [(a) (a)]" % (b"o" * 32, b"u" * 32),
)


@pytest.fixture(autouse=True)
def own_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def read(source: Path | str, **options: object) -> list[Item]:
    return list(read_items(source, findings=InputFindings(), **options))  # type: ignore[arg-type]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "keys"),
    [
        ("a.csv", "id,title,abstract\nk1,Moss,Wet moss grows.\n", ["k1"]),
        ("a.csv", "ID;Title;Abstract\nk1;Moss;Wet moss grows.\n", ["k1"]),
        ("a.tsv", "pmid\ttitle\tabstract\n7\tMoss\tWet moss grows.\n", ["7"]),
        ("a.jsonl", '{"id": 7, "title": "Moss", "abstract": "Wet moss grows."}', ["7"]),
        (
            "a.json",
            '[{"id": "k", "title": "Moss", "abstract": "Wet moss grows."}]',
            ["k"],
        ),
        ("a.ris", RIS, ["k1", "10.5555/lichen"]),
        ("a.bib", BIBTEX, ["k1", "k2"]),
        ("a.xml", PUBMED, ["7"]),
        ("a.nbib", NBIB, ["7", "8"]),
    ],
)
def test_a_table_gives_an_item_per_row_with_title_and_abstract_as_text(
    tmp_path: Path, name: str, content: str, keys: list[str]
) -> None:
    items = read(written(tmp_path, name, content))
    assert [item.key for item in items] == keys
    assert items[0].document.text == "Moss\n\nWet moss grows."
    assert items[0].document.place(0).page is None
    assert items[0].where.startswith(f"{name} ")


def test_parquet_is_read_in_batches_and_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame(
        {"id": range(2_500), "text": "Moss.", "n": [1.0, None] * 1_250}
    )
    frame.to_parquet(path)
    items = read(path, limit=2_100)
    assert [item.key for item in items] == [str(n) for n in range(2_100)]
    assert (items[0].fields["n"], items[1].fields["n"]) == ("1", "")
    assert items[2_099].where == "a.parquet row 2100"
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DatasetError, match=r"a\.parquet: .*siftlog\[parquet\]"):
        read(path)


def test_a_folder_gives_its_documents_sorted_and_reports_the_other_files(
    tmp_path: Path,
) -> None:
    written(tmp_path, "b.pdf", pdf([PAGE, PAGE + "\nWe enrolled 12 adults."]))
    written(tmp_path, "a.md", "# Moss\n\n## Methods\nWe watered 40 plots.\n")
    written(tmp_path, "labels.csv", "id\n1\n")
    findings = InputFindings()
    first, second = read_items(tmp_path, findings=findings)
    assert (first.key, second.key) == ("a", "b")
    assert first.fields == {"file": "a.md", "title": "Moss"}
    assert str(first.document.place(first.document.text.index("40"))) == "Methods"
    assert str(second.document.place(second.document.text.index("12"))) == "page 2"
    assert second.path == tmp_path / "b.pdf"
    assert [finding.code for finding in findings.findings()] == ["skipped_files"]
    assert len(read(f"{tmp_path}/*.pdf")) == 1


def test_a_column_may_name_the_file_of_each_row(tmp_path: Path) -> None:
    (tmp_path / "pdfs").mkdir()
    written(tmp_path / "pdfs", "x.pdf", pdf([PAGE]))
    table = written(tmp_path, "a.csv", "id,file,arm\nk1,pdfs/x.pdf,wet\n")
    (item,) = read(table, document="file")
    assert item.document.text.startswith("word")
    assert item.fields["arm"] == "wet"
    assert item.path == tmp_path / "pdfs" / "x.pdf"
    written(tmp_path, "a.csv", "id,file\nk1,pdfs/x.pdf\nk2,pdfs/y.pdf\n")
    with pytest.raises(DatasetError, match=r"a\.csv row 3: file names 'pdfs/y\.pdf'"):
        read(table, document="file")


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        (
            "a.csv",
            "id,text\n1,a\n2,b\n1,c\n",
            {},
            r"a\.csv row 4: id '1' also occurs in a\.csv row 2 \(ids must be unique",
        ),
        ("a.csv", "id,text\n1,a\n,b\n", {}, r"a\.csv row 3: id is blank"),
        ("a.csv", "id,text\n1,a,b\n", {}, r"a\.csv row 2: 3 fields where the header"),
        ("a.csv", "id,text\n", {}, r"a\.csv: no row in it"),
        (
            "a.csv",
            "name,text\nx,a\n",
            {},
            r"a\.csv: column 'id' is missing \(found: name.*with --id, or id of the",
        ),
        (
            "a.csv",
            "id,txt\nx,a\n",
            {},
            r"a\.csv: column 'text' is missing .*nearest: txt",
        ),
        (
            "a.csv",
            "id,text\nx,a\n",
            {"id": "idd"},
            r"column 'idd' is missing \(found: id, text; nearest: id\)",
        ),
        (
            "a.csv",
            "id,title\nx,a\n",
            {"text": "{titel}."},
            r"a\.csv: text = '{titel}\.' has a placeholder {titel}, .*nearest is title",
        ),
        ("a.csv", "id,title\nx,a\n", {"text": "{title"}, r"text = '{title': .*braces"),
        ("a.csv", "id,title\nx,a\n", {"document": "pdf"}, r"column 'pdf' is missing"),
        ("a.ris", "TY  - JOUR\nTI  - Moss\n", {}, r"a\.ris record 1: it has no end"),
        ("a.parquet", "id,text\n", {}, r"a\.parquet: not a Parquet file"),
        ("a.pdf", ENCRYPTED, {}, r"a\.pdf: it is encrypted \(save it without a pass"),
        ("a.pdf", b"%PDF-1.4 no", {}, r"a\.pdf: it is no PDF, or a broken one"),
        ("a.pdf", pdf([""] * 3), {}, r"a\.pdf: no page has a text layer.*run OCR"),
        (
            "a.pdf",
            pdf([PAGE] * 5),
            {"max_pages": 4},
            r"a\.pdf: it has 5 pages, more than 4 \(raise max_pages",
        ),
        ("a.docx", b"PK", {}, r"a\.docx: \.docx is not read \(give a \.pdf"),
        (
            "a.json",
            '{"schema_name": "DoclingDocument"}',
            {},
            r"a\.json: it is not a Doc",
        ),
        ("a.txt", " \n", {}, r"a\.txt: it holds no text"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    tmp_path: Path,
    name: str,
    content: str | bytes,
    options: dict[str, object],
    sentence: str,
) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(DatasetError, match=sentence) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)


def test_a_folder_without_papers_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file or folder"):
        read(tmp_path / "none")
    with pytest.raises(DatasetError, match=r"no paper in this folder \(put files"):
        read(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(
        DatasetError, match=r"to read subfolders, write '.*/\*\*/\*\.pdf'"
    ):
        read(tmp_path)
    written(tmp_path, "a.csv", "id,text\n")
    with pytest.raises(
        DatasetError, match=r"to read the rows of a table, name it: .*a"
    ):
        read(tmp_path)
    with pytest.raises(DatasetError, match="no file matches"):
        read(f"{tmp_path}/*.pdf")


def test_a_file_of_grobid_has_the_name_of_its_paper_as_key(tmp_path: Path) -> None:
    for name in ("a.tei.xml", "b.grobid.tei.xml"):
        written(tmp_path, name, "<TEI><text><body><p>Moss.</p></body></text></TEI>")
    assert [item.key for item in read(tmp_path)] == ["a", "b"]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "a.txt", "Moss.")
    written(tmp_path, "a.md", "Moss.")
    with pytest.raises(DatasetError, match=r"a\.txt: id 'a' also occurs in a\.md"):
        read(tmp_path)


def test_pages_without_text_are_counted_and_may_be_seen_instead(tmp_path: Path) -> None:
    path = written(tmp_path, "a.pdf", pdf([PAGE, "", ""]))
    findings = InputFindings()
    list(read_items(path, findings=findings))
    (finding,) = findings.findings()
    assert (finding.code, finding.severity, finding.n) == (
        "pages_without_text",
        "warn",
        2,
    )
    path = written(tmp_path, "a.pdf", pdf([""] * 3))
    (item,) = read(path, vision=True)
    assert not item.document.text.strip()


def two_columns(*, across: bool) -> bytes:
    """A page of two columns of prose, drawn line by line or column by column."""
    line = "the moss grew in plots that we watered daily"
    cells = [(x, y) for y in range(780, 400, -13) for x in (50, 310)]
    if not across:
        cells.sort()
    drawn = [f"BT /F1 10 Tf {x} {y} Td ({line}) Tj ET" for x, y in cells]
    content = "\n".join(drawn).encode()
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            FONT,
            (
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
                b"/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>"
            ),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    )


@pytest.mark.parametrize(
    ("across", "codes"), [(True, ["scrambled_columns"]), (False, [])]
)
def test_columns_that_are_read_across_are_a_finding(
    tmp_path: Path, across: bool, codes: list[str]
) -> None:
    path = written(tmp_path, "a.pdf", two_columns(across=across))
    findings = InputFindings()
    list(read_items(path, findings=findings))
    assert [finding.code for finding in findings.findings()] == codes


def test_columns_are_described_by_their_first_rows(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "a.csv",
        "id,n,arm,mass,on,note\n1,3,wet,1.5,2020-01-02,\n2,,dry,2,2021-05,\n",
    )
    kinds = {column.name: column.kind for column in columns(path)}
    assert kinds == {
        "id": "integer",
        "n": "integer",
        "arm": "text",
        "mass": "number",
        "on": "date",
        "note": "empty",
    }
    arm = columns(path)[2]
    assert (arm.distinct, arm.blank_n, arm.mean_chars) == (("wet", "dry"), 0, 3.0)


NAMES = st.text(alphabet="abc_1", min_size=1, max_size=4)


@given(st.dictionaries(NAMES, st.text(max_size=8), min_size=1), st.text(max_size=8))
def test_a_template_puts_every_field_in_its_place(
    fields: dict[str, str], between: str
) -> None:
    literal = between.replace("{", "{{").replace("}", "}}")
    text = literal + literal.join(f"{{{name}}}" for name in fields)
    template = text_template(text, tuple(fields), "a.csv")
    assert template.render(fields) == (between + between.join(fields.values())).strip()


def test_every_unreadable_paper_is_named(tmp_path: Path) -> None:
    written(tmp_path, "a.pdf", ENCRYPTED)
    written(tmp_path, "b.pdf", pdf([PAGE]))
    written(tmp_path, "c.pdf", b"%PDF no")
    sentence = r"^a\.pdf: it is encrypted .*; unreadable as well: c\.pdf\.$"
    with pytest.raises(DatasetError, match=sentence):
        read(tmp_path)
    table = written(tmp_path, "t.csv", "id,pdf\nk,c.pdf\n")
    with pytest.raises(DatasetError, match=r"t\.csv row 2: c\.pdf: it is no PDF"):
        read(table, document="pdf")


def test_papers_of_one_name_in_two_folders_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, "a.txt", "Moss.")
    with pytest.raises(DatasetError, match=r"id 'a' also occurs in .*one/a\.txt"):
        read(f"{tmp_path}/**/*.txt")
    assert len(read([tmp_path / "one", tmp_path / "one" / "a.txt"], limit=1)) == 1


def test_a_pdf_is_read_once_per_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path, "a.pdf", pdf([PAGE] * 3))
    before = read(path)
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/no/python")
        assert read(path) == before
        with pytest.raises(DatasetError, match="it has 3 pages, more than 2"):
            read(path, max_pages=2)
    (kept,) = (tmp_path / "cache").rglob("pdf/*")
    kept.write_bytes(b"broken")
    assert read(path) == before
