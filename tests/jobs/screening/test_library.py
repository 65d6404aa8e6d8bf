"""A library without labels is screened, written back, and scored when labels come."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.inputs.rows import InputFindings
from jobs.screening.labels import read_criteria_file
from jobs.screening.library import LibraryRecord, first_tag, read_library
from runner.errors import DatasetError
from tests.commands import Done, command

RIS = """TY  - JOUR
ID  - r1
TI  - Therapy for insomnia in adults: a randomised trial
AU  - Doe, J
PY  - 2019/03/01
KW  - sleep
AB  - In a randomised trial, adults with insomnia
  received therapy.
C7  - e42
ER  -

TY  - JOUR
T1  - A survey of nurses
DO  - 10.1/x:y
ER  -
"""

NBIB = """
PMID- 111
TI  - Therapy for insomnia
      in adults
DP  - 2019 Mar
AB  - A trial.
FAU - Doe, Jane
LID - 10.1/abc [doi]
OT  - sleep

PMID- 222
TI  - Another
"""

XML = """<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://x/p.dtd">
<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>111</PMID><Article>
<Journal><JournalIssue><PubDate><Year>2019</Year></PubDate></JournalIssue></Journal>
<ArticleTitle>Therapy <i>for</i> insomnia</ArticleTitle>
<Abstract><AbstractText Label="METHODS">A trial.</AbstractText>
<AbstractText>It worked.</AbstractText></Abstract>
<AuthorList><Author><LastName>Doe</LastName><Initials>J</Initials></Author></AuthorList>
</Article></MedlineCitation><PubmedData><ArticleIdList>
<ArticleId IdType="doi">10.1/abc</ArticleId></ArticleIdList></PubmedData>
</PubmedArticle></PubmedArticleSet>
"""

CSV = """Key,Title,Abstract Note,Publication Year,DOI,Author
K1,Therapy for insomnia,A trial.,2019,10.1/abc,"Doe, J; Roe, R"
K2,Another,,,,
"""

BIB = """@article{doe2019,
  title = {Therapy for insomnia}, author = {Doe, J and Roe, R}, year = 2019,
  abstract = {A trial.}, doi = {10.1/abc}
}
"""

CRITERIA = """Does therapy help adults with insomnia?
Population: adults with insomnia
Inclusion:
- Randomised trials
- Design: at least two arms
# Exclusion
1. Surveys
Setting:
hospitals
"""


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, "utf-8")
    return path


def read(*paths: Path) -> Sequence[LibraryRecord]:
    return read_library(paths, InputFindings(), {})


def test_a_ris_record_keeps_every_field(tmp_path: Path) -> None:
    one, other = read(write(tmp_path, "a.ris", RIS))
    assert (one.id, other.id) == ("r1", "10.1/x_y")
    assert one.text.abstract.endswith("adults with insomnia received therapy.")
    assert one.text.year == 2019
    assert first_tag(one.tags, "C7") == "e42"
    assert other.text.title == "A survey of nurses"


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("a.nbib", NBIB, "111"),
        ("a.xml", XML, "111"),
        ("a.csv", CSV, "K1"),
        ("a.bib", BIB, "doe2019"),
    ],
)
def test_pubmed_and_tables_are_read_alike(
    tmp_path: Path, name: str, content: str, key: str
) -> None:
    first = read(write(tmp_path, name, content))[0]
    assert first.id == key
    assert first.text.title.startswith("Therapy for insomnia")
    assert "A trial." in first.text.abstract
    assert first.text.year == 2019
    assert first_tag(first.tags, "DO") == "10.1/abc"
    assert first_tag(first.tags, "AU").startswith("Doe")


def test_a_text_file_is_ris_or_pubmed_by_its_first_line(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.txt", NBIB))[0].id == "111"
    assert read(write(tmp_path, "b.txt", RIS))[0].id == "r1"


def test_a_record_of_two_files_is_screened_once(tmp_path: Path) -> None:
    blank = "TY  - JOUR\nID  - 111\nTI  - Therapy for insomnia in adults.\nER  - \n"
    findings = InputFindings()
    paths = [write(tmp_path, "a.ris", blank), write(tmp_path, "b.nbib", NBIB)]
    records = read_library(paths, findings, {})
    assert [record.id for record in records] == ["111", "222"]
    assert records[0].text.has_abstract
    assert {finding.code for finding in findings.findings()} == {"repeated_records"}


values = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=5))
def test_every_ris_value_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]]
) -> None:
    lines = [
        f"TY  - JOUR\nID  - {at}\nTI  - {title}\nXX  - {value}\nER  - \n"
        for at, (title, value) in enumerate(texts)
    ]
    path = write(tmp_path_factory.mktemp("ris"), "a.ris", "\n".join(lines))
    found = [
        (first_tag(record.tags, "TI"), first_tag(record.tags, "XX"))
        for record in read(path)
    ]
    assert found == texts


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.ris", "TI  - x\n", "a.ris line 1: no RIS record begins here"),
        ("a.ris", "TY  - JOUR\nTI  - x\n", "a.ris line 1: the record has no end"),
        ("a.ris", "", "a.ris: no record in it (name another file)."),
        ("a.nbib", "x\n", "a.nbib line 1: no PubMed record begins here"),
        ("a.xml", "<a>", "a.xml: a instead of PubmedArticleSet"),
        ("a.csv", "Name,x\na,b\n", "a.csv: column 'title' is missing (found: Name, x)"),
        ("a.pdf", "", "a.pdf: .pdf is not read as a library"),
        (
            "a.ris",
            "TY  - JOUR\nAB  - x\nER  -\n",
            "a.ris line 1: neither id, DOI nor title",
        ),
        (
            "a.csv",
            "id,title\n1,x\n1,y\n",
            "a.csv row 3: the id 1 is that of a.csv row 2 too, which has another title",
        ),
    ],
)
def test_a_library_that_cannot_be_read_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str, sentence: str
) -> None:
    with pytest.raises(DatasetError) as raised:
        read(write(tmp_path, name, content))
    assert sentence in str(raised.value)


def test_a_text_of_criteria_has_parts(tmp_path: Path) -> None:
    criteria = read_criteria_file(write(tmp_path, "c.txt", CRITERIA))
    assert criteria.question == "Does therapy help adults with insomnia?"
    assert criteria.pico == {"population": "adults with insomnia"}
    assert criteria.inclusion == ("Randomised trials", "Design: at least two arms")
    assert criteria.exclusion == ("Surveys",)
    assert criteria.headings == {"Setting": "hospitals"}


def test_criteria_are_fields_too(tmp_path: Path) -> None:
    fields = 'question = "Q"\ninclusion = ["a", "b"]\n'
    criteria = read_criteria_file(write(tmp_path, "c.toml", fields))
    assert (criteria.question, criteria.inclusion) == ("Q", ("a", "b"))
    for name, content, sentence in (
        ("c.toml", "inclusoin = []", "c.toml: there is no field inclusoin (nearest"),
        ("c.json", "[]", "c.json: not an object with question"),
        ("c.txt", "\n", "c.txt: it states no criteria"),
    ):
        with pytest.raises(DatasetError) as raised:
            read_criteria_file(write(tmp_path, name, content))
        assert sentence in str(raised.value)


def screen(folder: Path, *words: object, content: str = RIS) -> Done:
    """A run over a library, by the offline model."""
    library = write(folder, "lib.ris", content)
    criteria = write(folder, "criteria.txt", CRITERIA)
    return command(
        *("run", "screening", "--library", library, "--criteria", criteria),
        *("--runs-dir", folder / "runs", "--run-id", "r", *words),
    )


def scored(folder: Path, number: int) -> Path:
    return folder / "runs" / "r" / "scores" / str(number)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def test_a_library_becomes_a_ranking_and_ris_with_tags(tmp_path: Path) -> None:
    done = screen(tmp_path, "--no-report")
    assert done.code == 0, done.err
    folder = scored(tmp_path, 1)
    assert [row["paper_pmid"] for row in rows(folder / "ranking.csv")] == [
        "r1",
        "10.1/x_y",
    ]
    assert {row["label"] for row in rows(folder / "decisions.csv")} == {""}
    assert not (folder / "false_negatives.csv").exists()
    back = {record.id: record for record in read(folder / "screened.ris")}
    before = {record.id: record for record in read(tmp_path / "lib.ris")}
    for key, record in before.items():
        n = len(record.tags)
        assert back[key].tags[:n] == record.tags
        assert back[key].tags[n][0] == "KW"
    assert ("KW", "siftlog-include") in back["r1"].tags
    by_file = [
        len([*(folder / f"{name}.ris").read_text().split("TY  - ")][1:])
        for name in ("include", "exclude", "unclear")
    ]
    assert sum(by_file) == 2


def metrics(folder: Path, number: int) -> Any:
    card = json.loads((scored(folder, number) / "scorecard.json").read_text())
    return card["models"]["baseline/lexical"]


def test_labels_come_later_or_for_some_records_only(tmp_path: Path) -> None:
    third = "TY  - JOUR\nID  - r3\nTI  - Therapy\nER  - \n"
    screen(tmp_path, "--no-report", content=f"{RIS}\n{third}")
    labels = write(
        tmp_path, "labels.csv", "id,decision\nr1,included\n10.1/x:y,no\nr3,\n"
    )
    done = command(
        *("score", "r", "--labels", labels, "--runs-dir", tmp_path / "runs"),
        "--no-report",
    )
    assert done.code == 0, done.err
    assert "No truth given" not in done.out
    card = json.loads((scored(tmp_path, 2) / "scorecard.json").read_text())
    found = {f["code"]: f["n"] for f in card["findings"]}
    assert found["unlabelled_records"] == 1
    listed = rows(scored(tmp_path, 2) / "decisions.csv")
    assert [row["label"] for row in listed] == ["1", "0", ""]
    assert len(rows(scored(tmp_path, 2) / "ranking.csv")) == 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("id,label\n10.1/x,1\n", "row 2: id 10.1/x is no record; nearest: 10.1/x_y"),
        ("id,label\nr1,maybe\n", "labels.csv row 2: label is 'maybe' (1 or 0, or"),
        ("id,label\nr1,1\nr1,0\n", "row 3: label contradicts an earlier row about r1"),
        ("id,x\nr1,1\n", "labels.csv: column 'label' is missing"),
        ("id,label,kind\nr1,0,included\n", "kind 'included' contradicts the label"),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_a_sentence(
    tmp_path: Path, content: str, sentence: str
) -> None:
    done = screen(tmp_path, "--labels", write(tmp_path, "labels.csv", content))
    assert done.code == 1
    assert sentence in done.err
    assert not (tmp_path / "runs").exists()


def test_a_library_needs_criteria_and_no_set(tmp_path: Path) -> None:
    library = write(tmp_path, "lib.ris", RIS)
    for words, sentence in (
        ((), "A library needs --criteria, a text file"),
        (
            ("--question", "Q", "--criteria-source", "llm"),
            "A library has no abstract of a review to state criteria from",
        ),
        (
            ("--validation-set", tmp_path),
            "Name either --library or --validation-set, not both.",
        ),
    ):
        done = command("run", "screening", "--library", library, *words)
        assert (done.code, done.err) == (2, done.err)
        assert sentence in done.err
