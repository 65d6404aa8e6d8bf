"""Whatever a file holds, its reader gives records or says in a sentence why not."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.review_benchmark.database.formats import read_papers
from jobs.review_benchmark.database.papers import (
    DeletedRecords,
    ImportedRecord,
    PaperFormat,
    UnreadableRecord,
    normalise_record,
)
from runner.errors import DatasetError

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
