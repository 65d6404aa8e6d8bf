"""Whatever a file holds, its reader gives records or says in a sentence why not.

JSON and JSONL files of papers, and results of agents as files of papers. RIS and BibTeX
files of papers, and what is said without their libraries. CSV and TSV files of papers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.kit.inputs import references
from jobs.review_benchmark.database.formats import mapped_columns, read_papers
from jobs.review_benchmark.database.papers import (
    DeletedRecords,
    ImportedRecord,
    PaperFormat,
    ReadRecord,
    UnreadableRecord,
    normalise_record,
    paper_format,
)
from runner.errors import DatasetError, UsageError

PIECES: dict[PaperFormat, list[bytes]] = {
    "json": [b'{"papers":', b'[{"pmid":1}', b'"\\ud800"', b"null", b"]}", b",", b"[["],
    "jsonl": [b'{"pmid":1}', b'{"year":', b"1e999", b"}", b"\n", b'{"papers":[3]}'],
    "csv": [b"pmid,title\n", b"1,a\n", b'"', b",", b"\r", b"\x00", b"doi"],
    "tsv": [b"pmid\ttitle\n", b"1\ta\n", b'"', b"\t", b"\n"],
    "pubmed": [
        *(b"<?xml version='1.0' encoding='UF-8'?>", b"<!DOCTYPE x [", b"]>", b"&x;"),
        *(b"<PubmedArticleSet>", b"<PubmedArticle>", b"<MedlineCitation>", b"<PMID>1"),
        *(b"</PMID>", b"</MedlineCitation></PubmedArticle>", b"</PubmedArticleSet>"),
    ],
    "ris": [
        b"TY  - JOUR\n",
        b"TI  - a\n",
        b"ER  - \n",
        b"  b\n",
        b"UR  - a;b\n",
        b"\r",
    ],
    "bibtex": [
        *(b"@article{k,", b"title = {a},", b"@string{x=", b'"', b"}\n", b"\\", b"$"),
        *(b"title = x # ", b"\n", b"{", b"\\begin{a}", b"%"),
    ],
}


@pytest.mark.parametrize("form", get_args(PaperFormat))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_reader_never_fails_otherwise(
    tmp_path: Path, form: PaperFormat, data: st.DataObject
) -> None:
    piece = st.one_of(st.sampled_from(PIECES[form]), st.binary(max_size=3))
    path = tmp_path / "any"
    path.write_bytes(b"".join(data.draw(st.lists(piece, max_size=12))))
    said = path.name
    try:
        found = list(read_papers(path, form, {}))
    except DatasetError as error:
        found, said = [], str(error)
    assert path.name in said
    for each in found:
        if isinstance(each, ImportedRecord):
            # whatever SQLite takes can be encoded
            "".join(map(str, normalise_record(each).paper.row)).encode()
        else:
            assert isinstance(each, UnreadableRecord | DeletedRecords)


PAPER = {"pmid": 7, "title": " One ", "year": 1999.0, "authors": ["A", " ", "B"]}
ENTRY = ImportedRecord(
    source_id="1", pmid="7", title="One", year=1999, authors=("A", "B")
)


def found(folder: Path, name: str, text: str) -> list[ReadRecord]:
    path = folder / name
    path.write_text(text)
    return list(read_papers(path, paper_format(path), {}))


def bad(folder: Path, text: str) -> UnreadableRecord:
    """The last record of a JSONL file, which is bad."""
    *_, last = found(folder, "some.jsonl", text)
    assert isinstance(last, UnreadableRecord)
    return last


@pytest.mark.parametrize(
    "value",
    [
        [PAPER],
        {"papers": [PAPER], "included_document_ids": [1]},
        {"cochrane_id": "CD1", "included_papers": [PAPER], "excluded_papers": []},
        {"included": [], "excluded": [PAPER]},
    ],
    ids=["list", "papers", "lists", "aliases"],
)
def test_papers_are_a_list_or_an_agents_result(tmp_path: Path, value: object) -> None:
    text = json.dumps(value)
    assert found(tmp_path, "some.json", text) == [ENTRY]
    if isinstance(value, dict):
        assert found(tmp_path, "some.jsonl", f"\n{text}\n") == [ENTRY]


def test_included_papers_come_first_and_records_are_numbered_through(
    tmp_path: Path,
) -> None:
    value = {
        "excluded_papers": [{"title": "b"}, {"title": "c", "document_id": 9}],
        "included_papers": [{"title": "a"}],
    }
    entries = found(tmp_path, "some.json", json.dumps(value))
    assert entries == [
        ImportedRecord(source_id="1", title="a"),
        ImportedRecord(source_id="2", title="b"),
        ImportedRecord(source_id="9", title="c"),
    ]


def test_a_table_with_gaps_has_numbers_for_ids(tmp_path: Path) -> None:
    lines = (
        '{"pmid": 123.0, "year": "1999.0"}\n{"pmid": null, "title": "x", "year": ""}'
    )
    first, second = found(tmp_path, "some.jsonl", lines)
    assert first == ImportedRecord(source_id="1", pmid="123.0", year=1999)
    assert second == ImportedRecord(source_id="2", title="x")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("3", "a number instead of an object"),
        ('{"papers": [[]]}', "a list instead of an object"),
        ('{"pmid": true}', "pmid is true or false"),
        ('{"title": ["x"]}', "title is a list"),
        ('{"pmid": 1, "year": "soon"}', "year is 'soon'"),
        ('{"pmid": 1, "year": 20001}', "year is 20001 (four digits"),
        ('{"pmid": 1, "year": {}}', "year is an object"),
        ('{"pmid": 1, "authors": [1]}', "authors is something else"),
        ('{"pmid": "PMC1", "title": "?", "abstract": "x"}', "neither PMID nor DOI"),
    ],
)
def test_a_bad_record_says_what_is_wrong(
    tmp_path: Path, line: str, reason: str
) -> None:
    last = bad(tmp_path, '{"pmid": 1}\n' + line)
    assert last.number == 2
    assert reason in last.reason


@pytest.mark.parametrize("text", ["{}", "3", '{"papers": 3}', "[", "[" * 100_000])
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DatasetError, match=r"some\.json: (neither|not valid JSON)"):
        found(tmp_path, "some.json", text)


def test_a_name_that_says_no_format_needs_it_said() -> None:
    assert paper_format(Path("some.XML.gz")) == "pubmed"
    with pytest.raises(UsageError, match="--format"):
        paper_format(Path("some.txt"))


def one(folder: Path, name: str, text: str) -> ImportedRecord:
    (entry,) = found(folder, name, text)
    assert isinstance(entry, ImportedRecord)
    return entry


def ris(*lines: str) -> str:
    return "\r\n".join(("TY  - JOUR", *lines, "ER  - ", ""))


def test_both_names_of_a_ris_tag_are_read(tmp_path: Path) -> None:
    first = ris(
        "TI  - One title",
        "      over two lines",
        "AU  - A, B",
        "AU  - C, D",
        "PY  - 2001/05//",
        "AB  - Text.",
        "DO  - https://doi.org/10.1/A",
        "JO  - Journal",
        "ID  - x1",
    )
    second = ris("T1  - Other", "A1  - E, F", "Y1  - 1999", "N2  - More.", "T2  - J")
    assert found(tmp_path, "some.ris", "Provider: X\r\n" + first + "\r\n" + second) == [
        ImportedRecord(
            source_id="x1",
            doi="https://doi.org/10.1/A",
            title="One title over two lines",
            abstract="Text.",
            authors=("A, B", "C, D"),
            journal="Journal",
            year=2001,
        ),
        ImportedRecord(
            source_id="2",
            title="Other",
            abstract="More.",
            authors=("E, F",),
            journal="J",
            year=1999,
        ),
    ]


@pytest.mark.parametrize(
    ("lines", "pmid"),
    [
        (["AN  - 123"], "123"),
        (["AN  - 123", "DB  - PubMed"], "123"),
        (["AN  - 123", "DB  - Ovid MEDLINE(R)"], "123"),
        (["AN  - 123", "DB  - Embase"], ""),
        (["AN  - 2012345678"], ""),
        (["AN  - rayyan-123"], ""),
        (["AN  - WOS:000123"], ""),
        (["C2  - PMC123"], ""),
        (["C2  - PMID: 123", "DB  - Embase"], "123"),
        (["AN  - L4", "C2  - 123"], "123"),
    ],
)
def test_a_number_of_another_database_is_no_pmid(
    tmp_path: Path, lines: list[str], pmid: str
) -> None:
    assert one(tmp_path, "some.ris", ris("TI  - x", *lines)).pmid == pmid


def test_a_ris_record_without_end_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    bad, good = found(tmp_path, "some.ris", "TY  - JOUR\nTI  - a\n" + ris("TI  - b"))
    assert isinstance(bad, UnreadableRecord)
    assert (bad.number, "no end" in bad.reason) == (1, True)
    assert good == ImportedRecord(source_id="2", title="b")
    (bad,) = found(tmp_path, "some.ris", "TY  - JOUR\n  lost\nTI  - a")
    assert isinstance(bad, UnreadableRecord)


def test_latex_becomes_plain_text(tmp_path: Path) -> None:
    entry = one(
        tmp_path,
        "some.bib",
        r"""% a comment
@comment{nothing}
@STRING{jt = "Journal of Tests"}
@Article{key1,
  Author = {M{\"u}ller, J{\'o}rg and {O'Neil}, P.},
  title  = {The {DNA} of 50% of \emph{patients}: \textit{E.~coli} \& 10\% more},
  journal = jt,
  abstract = "It costs $5
     and {\O}re",
  date = {2001-05},
  pmid = {123},
  doi = {10.1/a\_b},
}
""",
    )
    assert entry == ImportedRecord(
        source_id="key1",
        pmid="123",
        doi="10.1/a_b",
        title="The DNA of 50% of patients: E. coli & 10% more",
        abstract="It costs $5 and Øre",
        authors=("Müller, Jórg", "O'Neil, P."),
        journal="Journal of Tests",
        year=2001,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (r"$\alpha$-blockers, $p < 0.05$", "α-blockers, p < 0.05"),
        (r"a $5 note", "a $5 note"),
        (r"\$5 and $x$", "$5 and x"),
        (r"caf\'{e} na\"ive", "café naïve"),
        (r"\unknown{kept}", "kept"),
    ],
)
def test_dollars_are_mathematics_where_they_pair(
    tmp_path: Path, value: str, text: str
) -> None:
    entry = one(tmp_path, "some.bib", f"@article{{k, title = {{{value}}}}}")
    assert entry.title == text


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("@article{k, title = {open", "not to be parsed"),
        ("@article{k, title = {a}, title = {b}}", "not to be parsed"),
        (f"@article{{k, title = {{{'{' * 5000}{'}' * 5000}}}}}", "nested too deep"),
        ("@article{k}", "neither PMID nor DOI nor title"),
    ],
    ids=["open", "twice", "deep", "empty"],
)
def test_a_bad_entry_is_told_and_the_next_is_read(
    tmp_path: Path, entry: str, reason: str
) -> None:
    bad, good = found(tmp_path, "some.bib", f"{entry}\n@misc{{m, title = {{b}}}}\n")
    assert isinstance(bad, UnreadableRecord)
    assert bad.number == 1
    assert reason in bad.reason
    assert good == ImportedRecord(source_id="m", title="b")


@pytest.mark.parametrize("name", ["some.ris", "some.bib"])
def test_a_file_without_any_record_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match="begins with"):
        found(tmp_path, name, "pmid,title\n1,a\n")


@pytest.mark.parametrize("name", ["some.ris", "some.bib"])
def test_without_its_library_the_extra_is_named(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> None:
        assert name in {"rispy", "bibtexparser"}

    monkeypatch.setattr(references, "find_spec", nothing)
    with pytest.raises(DatasetError, match=rf"{name}: .*siftlog\[refs\]"):
        found(tmp_path, name, "")


def table_found(folder: Path, name: str, text: str, *mapped: str) -> list[ReadRecord]:
    path = folder / name
    path.write_text(text)
    return list(read_papers(path, paper_format(path), mapped_columns(mapped)))


def test_columns_go_by_several_names(tmp_path: Path) -> None:
    text = (
        "\ufeffRecord_ID,PubMed ID,Title,authors,year,label_included\n"
        '5,7.0,"One, and two",A B; C D;,2001.0,1\n'
        ",,Other,,,0\n"
    )
    expected = [
        ImportedRecord(
            source_id="5",
            pmid="7.0",
            title="One, and two",
            authors=("A B", "C D"),
            year=2001,
        ),
        ImportedRecord(source_id="2", title="Other"),
    ]
    assert table_found(tmp_path, "some.csv", text) == expected
    tabbed = text.replace(", and", " and").replace(",", "\t").replace('"', "")
    first, second = table_found(tmp_path, "some.tsv", tabbed)
    assert isinstance(first, ImportedRecord)
    assert (first.title, second) == ("One and two", expected[1])


def test_a_mapped_column_takes_the_place_of_a_known_one(tmp_path: Path) -> None:
    text = "title,Name of paper,pubmedID\nlabel,One,7\n"
    assert table_found(tmp_path, "some.csv", text, "title = Name of paper") == [
        ImportedRecord(source_id="1", pmid="7", title="One")
    ]


def test_a_row_of_another_width_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    one, bad, three = table_found(tmp_path, "some.csv", "pmid,title\n1,a\n2,b,c\n3,d\n")
    assert isinstance(bad, UnreadableRecord)
    assert (bad.number, bad.reason[:35]) == (2, "3 fields where the header has 2 (qu")
    assert [one, three] == [
        ImportedRecord(source_id="1", pmid="1", title="a"),
        ImportedRecord(source_id="3", pmid="3", title="d"),
    ]


@pytest.mark.parametrize(
    ("text", "mapped", "said"),
    [
        ("", (), "is empty"),
        ("a,b\n1,2\n", (), "row 1: none of pmid, doi and title among a, b .*--map"),
        ("pmid,PubMed ID\n1,2\n", (), "two columns are pmid .*--map pmid=column"),
        ("pmid,pmid\n1,2\n", (), "two columns are pmid"),
        ("pmid\n1\n", ("title=Name",), "no column Name among pmid"),
        ('pmid\n"1\n', (), "not CSV"),
    ],
    ids=["empty", "no key", "alias", "twice", "map", "quote"],
)
def test_a_header_that_does_not_do_is_refused(
    tmp_path: Path, text: str, mapped: tuple[str, ...], said: str
) -> None:
    with pytest.raises(DatasetError, match=said):
        table_found(tmp_path, "some.csv", text, *mapped)


@pytest.mark.parametrize("text", ["title", "title=", "name=Title"])
def test_what_is_mapped_must_be_said_in_full(text: str) -> None:
    with pytest.raises(UsageError, match="write name=column"):
        mapped_columns([text])
