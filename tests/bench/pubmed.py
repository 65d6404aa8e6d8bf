"""Invented PubMed files: words as frequent as words are, no two titles alike."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

WORDS = 60_000
SENTENCES = 30_000

_ARTICLE = """<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM">\
<PMID Version="1">{pmid}</PMID><DateCompleted><Year>{year}</Year><Month>06</Month>\
<Day>01</Day></DateCompleted><Article PubModel="Print"><Journal><ISSN IssnType="Print">\
0000-0000</ISSN><JournalIssue CitedMedium="Print"><Volume>12</Volume><Issue>3</Issue>\
<PubDate><Year>{year}</Year><Month>Jun</Month></PubDate></JournalIssue><Title>Journal \
of {journal}</Title><ISOAbbreviation>J {journal}</ISOAbbreviation></Journal>\
<ArticleTitle>{title}</ArticleTitle><Pagination><MedlinePgn>1-9</MedlinePgn>\
</Pagination>{abstract}<AuthorList CompleteYN="Y">{authors}</AuthorList>\
<Language>eng</Language><PublicationTypeList><PublicationType UI="D016428">Journal \
Article</PublicationType></PublicationTypeList></Article><MeshHeadingList>{mesh}\
</MeshHeadingList></MedlineCitation><PubmedData><History><PubMedPubDate \
PubStatus="pubmed"><Year>{year}</Year><Month>6</Month><Day>1</Day></PubMedPubDate>\
</History><PublicationStatus>ppublish</PublicationStatus><ArticleIdList><ArticleId \
IdType="pubmed">{pmid}</ArticleId><ArticleId IdType="doi">10.{registrant}/{journal}.\
{pmid}</ArticleId></ArticleIdList></PubmedData></PubmedArticle>
"""
_AUTHOR = (
    '<Author ValidYN="Y"><LastName>{}</LastName><ForeName>{}</ForeName>'
    "<Initials>{}</Initials></Author>"
)
_MESH = (
    '<MeshHeading><DescriptorName UI="D{}" MajorTopicYN="N">{}</DescriptorName>'
    "</MeshHeading>"
)
_SYLLABLES = [
    a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en")
]


class Library:
    """The words that records are made of, drawn by seed."""

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        # the rank of a word says how frequent it is, so ranks come first and are told
        # apart by their syllables
        self.words = list(dict.fromkeys(self._word() for _ in range(2 * WORDS)))
        self.words = self.words[:WORDS]
        self._sentences = [self.text(18).capitalize() + "." for _ in range(SENTENCES)]

    def text(self, n: int) -> str:
        """*n* words, by Zipf's law."""
        draw, words = self._chance.random, self.words
        return " ".join([words[int(len(words) ** draw()) - 1] for _ in range(n)])

    def records(self, first: int, n: int) -> Iterator[str]:
        """Articles with the PMIDs from *first*; a fifth has no abstract."""
        chance = self._chance
        for pmid in range(first, first + n):
            parts = chance.sample(self._sentences, 10) if chance.random() < 0.8 else ()
            names = [chance.choice(self.words).capitalize() for _ in range(5)]
            yield _ARTICLE.format(
                pmid=pmid,
                year=chance.randint(1975, 2025),
                journal=self.words[pmid % 5000].capitalize(),
                title=f"{self.text(12).capitalize()}.",
                abstract=f"<Abstract><AbstractText>{' '.join(parts)}</AbstractText>"
                "</Abstract>"
                if parts
                else "",
                authors="".join(_AUTHOR.format(n, n[::-1], n[0]) for n in names),
                mesh="".join(_MESH.format(pmid, name) for name in names * 2),
                registrant=1000 + pmid % 97,
            )

    def _word(self) -> str:
        return "".join(
            self._chance.choices(_SYLLABLES, k=self._chance.choice((2, 3, 4)))
        )


def write_pubmed(path: Path, library: Library, first: int, n: int) -> None:
    """A compressed file of *n* articles, as PubMed offers them."""
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<PubmedArticleSet>\n')
        file.writelines(library.records(first, n))
        file.write("</PubmedArticleSet>\n")
