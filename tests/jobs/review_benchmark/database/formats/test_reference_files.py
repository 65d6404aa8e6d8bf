"""RIS and BibTeX files of papers, and what is said without their libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.review_benchmark.database import formats
from jobs.review_benchmark.database.formats import read_papers
from jobs.review_benchmark.database.papers import (
    ImportedRecord,
    ReadRecord,
    UnreadableRecord,
    paper_format,
)
from runner.errors import DatasetError


def found(folder: Path, name: str, text: str) -> list[ReadRecord]:
    path = folder / name
    path.write_text(text)
    return list(read_papers(path, paper_format(path), {}))


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

    monkeypatch.setattr(formats, "find_spec", nothing)
    with pytest.raises(DatasetError, match=rf"{name}: .*siftlog\[refs\]"):
        found(tmp_path, name, "")
