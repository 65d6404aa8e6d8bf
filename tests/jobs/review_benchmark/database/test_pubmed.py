"""PubMed XML: what a record says of itself, and what a hostile file must not do.

A large file is read in another process, which is never left alone.
"""

from __future__ import annotations

import gzip
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs.kit.inputs import pubmed
from jobs.review_benchmark.database import formats
from jobs.review_benchmark.database.formats import read_file, read_papers
from jobs.review_benchmark.database.papers import (
    DeletedRecords,
    ImportedRecord,
    ReadRecord,
    UnreadableRecord,
    paper_format,
)
from runner.errors import DatasetError

DOCTYPE = (
    "<!DOCTYPE PubmedArticleSet PUBLIC "
    '"-//NLM//DTD PubMedArticle, 1st January 2019//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_190101.dtd">'
)

RICH = """<PubmedArticle>
 <MedlineCitation>
  <PMID Version="1">0077</PMID>
  <Article>
   <Journal><Title>Journal of Tests</Title>
    <JournalIssue><PubDate><MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate>
    </JournalIssue></Journal>
   <ArticleTitle>Growth of <i>E. coli</i> in H<sub>2</sub>O &amp; salt.</ArticleTitle>
   <ELocationID EIdType="pii">S1</ELocationID>
   <ELocationID EIdType="doi" ValidYN="N">10.1/wrong</ELocationID>
   <ELocationID EIdType="doi" ValidYN="Y">10.1/place</ELocationID>
   <Abstract>
    <AbstractText Label="AIM">To <b>see</b>
     more.</AbstractText>
    <AbstractText Label="RESULT"></AbstractText>
    <AbstractText>Seen.</AbstractText>
    <CopyrightInformation>Nobody</CopyrightInformation>
   </Abstract>
   <AuthorList>
    <Author><LastName>Größe</LastName><Initials>AB</Initials></Author>
    <Author><CollectiveName>The Group</CollectiveName></Author>
   </AuthorList>
  </Article>
  <CommentsCorrectionsList><CommentsCorrections><PMID>99</PMID></CommentsCorrections>
  </CommentsCorrectionsList>
 </MedlineCitation>
 <PubmedData>
  <ReferenceList><Reference><ArticleIdList>
   <ArticleId IdType="pubmed">55</ArticleId><ArticleId IdType="doi">10.1/ref</ArticleId>
  </ArticleIdList></Reference></ReferenceList>
 </PubmedData>
</PubmedArticle>"""

BOOK = """<PubmedBookArticle><BookDocument>
 <PMID>88</PMID>
 <ArticleIdList><ArticleId IdType="doi">10.1/book</ArticleId></ArticleIdList>
 <Book><BookTitle>Whole book</BookTitle><PubDate><Year>2011</Year></PubDate></Book>
 <ArticleTitle>A chapter</ArticleTitle>
 <Abstract><AbstractText>Text.</AbstractText></Abstract>
</BookDocument></PubmedBookArticle>"""


def article(pmid: object = 1, title: str = "One", data: str = "") -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article><ArticleTitle>"
        f"{title}</ArticleTitle></Article></MedlineCitation>{data}</PubmedArticle>"
    )


def pubmed_set(*records: str, doctype: str = DOCTYPE) -> str:
    inside = "".join(records)
    return (
        f'<?xml version="1.0"?>{doctype}<PubmedArticleSet>{inside}</PubmedArticleSet>'
    )


def found(folder: Path, text: str) -> list[ReadRecord]:
    path = folder / "some.xml.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return list(read_papers(path, paper_format(path), {}))


def test_a_record_says_what_it_is_and_nothing_of_what_it_cites(tmp_path: Path) -> None:
    assert found(tmp_path, pubmed_set(RICH)) == [
        ImportedRecord(
            source_id="0077",
            pmid="0077",
            doi="10.1/place",
            title="Growth of E. coli in H2O & salt.",
            abstract="AIM: To see more.\nSeen.",
            authors=("Größe AB", "The Group"),
            journal="Journal of Tests",
            year=1998,
        )
    ]


def test_the_doi_of_the_article_list_comes_first(tmp_path: Path) -> None:
    data = (
        "<PubmedData><ArticleIdList><ArticleId IdType='doi'>10.1/own</ArticleId>"
        "</ArticleIdList></PubmedData>"
    )
    both = RICH.replace("<PubmedData>", data.removesuffix("</PubmedData>"))
    (entry,) = found(tmp_path, pubmed_set(both))
    assert isinstance(entry, ImportedRecord)
    assert entry.doi == "10.1/own"


def test_chapters_are_papers_and_deleted_ones_are_counted(tmp_path: Path) -> None:
    deleted = "<DeleteCitation><PMID>1</PMID><PMID>2</PMID></DeleteCitation>"
    assert found(tmp_path, pubmed_set(BOOK, deleted)) == [
        ImportedRecord(
            source_id="88",
            pmid="88",
            doi="10.1/book",
            title="A chapter",
            abstract="Text.",
            journal="Whole book",
            year=2011,
        ),
        DeletedRecords(n=2),
    ]


def test_a_record_without_anything_to_tell_it_by_is_bad(tmp_path: Path) -> None:
    empty = "<PubmedArticle><MedlineCitation/></PubmedArticle>"
    _, bad = found(tmp_path, pubmed_set(article(), empty))
    assert isinstance(bad, UnreadableRecord)
    assert bad.number == 2


def test_records_come_out_while_the_file_is_still_read(tmp_path: Path) -> None:
    many = [article(n, "word " * 400) for n in range(1, 400)]
    path = tmp_path / "cut.xml"
    path.write_text(pubmed_set(*many)[:-3000])
    records = read_papers(path, "pubmed", {})
    first = next(records)
    assert isinstance(first, ImportedRecord)
    assert first.pmid == "1"
    with pytest.raises(DatasetError, match=r"cut\.xml: not XML"):
        list(records)


@pytest.mark.parametrize(
    "inside",
    [
        '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">',
        '<!ENTITY x SYSTEM "file:///etc/hostname">',
        '<!ENTITY % x SYSTEM "http://localhost/x.dtd"> %x;',
        '<!ATTLIST PMID long CDATA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">',
        "<!ELEMENT PubmedArticle ANY>",
    ],
    ids=["bomb", "external", "parameter", "default", "element"],
)
def test_a_document_type_of_its_own_is_refused(tmp_path: Path, inside: str) -> None:
    hostile = f"<!DOCTYPE PubmedArticleSet [{inside}]>"
    with pytest.raises(DatasetError, match=r"some\.xml\.gz: it declares .* refused"):
        found(tmp_path, pubmed_set(article(title="&x;"), doctype=hostile))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (pubmed_set(article(title="&unknown;")), "not XML, undefined entity"),
        ("<html><PubmedArticle/></html>", "html instead of PubmedArticleSet"),
        ("", "not XML, no element found"),
        ("PMID- 1\nTI  - x", "not XML"),
        ('<?xml version="1.0" encoding="UF-8"?><a/>', "not XML, unknown encoding"),
        ('<?xml version="1.0" encoding="shift_jis"?><a/>', "not XML, multi-byte"),
        (pubmed_set("<a>" * 300 + "</a>" * 300), "nested deeper than"),
    ],
    ids=["entity", "root", "empty", "format", "encoding", "bytes", "depth"],
)
def test_what_is_no_pubmed_file_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(DatasetError, match=said):
        found(tmp_path, text)


def test_a_record_without_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubmed, "RECORD_BYTES", 1 << 20)
    endless: Sequence[str] = (article(), "<PubmedArticle>" + " " * (3 << 20))
    with pytest.raises(DatasetError, match="a record is longer than"):
        found(tmp_path, pubmed_set(*endless))


def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml.gz"
    path.write_bytes(gzip.compress(pubmed_set(article()).encode())[:-12])
    with pytest.raises(DatasetError, match="check the path"):
        list(read_papers(path, "pubmed", {}))


def test_who_stops_reading_ends_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.csv"
    path.write_text("pmid\n" + "".join(f"{number}\n" for number in range(1, 9000)))
    monkeypatch.setattr(formats, "LEAST_BYTES", 0)
    records = read_file(path, "csv", {})
    first = [next(records) for _ in range(formats.BATCH + 1)]
    assert first[-1] == ImportedRecord(source_id="501", pmid="501")
    (reader,) = multiprocessing.active_children()
    records.close()  # type: ignore[attr-defined]
    assert reader.exitcode == 0
    monkeypatch.undo()
    assert list(read_file(path, "csv", {}))[: len(first)] == first
    assert next(read_papers(path, "csv", {})) == first[0]


def test_a_reader_that_was_ended_is_said_to_be() -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sender.close()
    with receiver, pytest.raises(DatasetError, match=r"a\.csv: .* was ended"):
        formats._received(receiver, Path("a.csv"))
