"""What prepare counts, leaves out and says, on tables small enough to be read."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.screening.prepare import SetFolder, prepare_set
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError
from tests.jobs.screening.corpora import write_tables

TABLES = {
    "reviews": ["pmid,title", "1,First", "2,Second", "4,", "5,Alone"],
    "references": [
        "citing_pmid,ref_pmid",
        *("1,7", "1,8", "2,7", "2,8", "2,9", "3,7", "4,7", "4,10", "6,11", "6,12"),
    ],
    "papers": [
        "pmid,title,abstract",
        *('7,Seven,"blue, trial"', "8,Eight,red words", "9,Nine,NA", "10,Ten,green"),
        "11,Eleven, ",
    ],
}
"""3 and 6 have no row of their own, 4 has no title; 11 and 12 have no abstract."""


def folder(tmp_path: Path, **settings: Any) -> SetFolder:
    tables = write_tables(tmp_path / "tables", TABLES)
    return prepare_set(
        ScreeningSettings(tables=tables, **{"min_included": 1, **settings})
    )


def made(tmp_path: Path, **settings: Any) -> tuple[str, Any, list[dict[str, str]]]:
    """What is said, the summary, and the rows of the set."""
    out = tmp_path / "set"
    out.mkdir()
    told = folder(tmp_path, **settings).write(out)
    with (out / "validation_set.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary == told.json
    return told.text, summary, rows


def test_each_review_that_is_left_out_is_counted_by_why(tmp_path: Path) -> None:
    text, summary, rows = made(tmp_path, min_included_basis="all_references")
    # nothing can be read of 3 and 4; 6 cites only what cannot be read, and so has no
    # candidate before it has no text
    assert summary["set"]["dropped"] == {"no_candidates": 1, "no_text": 2}
    assert {row["review_pmid"] for row in rows} == {"1", "2"}
    assert summary["near_misses"]["reviews_analysed"] == 5
    assert "\nleft out       1 no_candidates, 2 no_text\n" in text
    assert "2 reviews with citations but without title and abstract\n" in text
    assert summary["inputs"]["reviews_without_citations"] == 1


def test_a_review_without_any_readable_paper_is_never_in_the_set(
    tmp_path: Path,
) -> None:
    criteria = tmp_path / "criteria.jsonl"
    criteria.write_text('{"review_pmid": "6", "question": "Q"}\n')
    _, summary, rows = made(
        tmp_path,
        criteria=criteria,
        min_included_basis="all_references",
        keep_without_negatives=True,
        review=("6",),
    )
    assert summary["set"]["dropped"] == {"no_text": 1}
    assert rows == []


def test_what_is_short_is_counted_by_kind(tmp_path: Path) -> None:
    text, summary, rows = made(tmp_path, per_review=2, review=("1",))
    assert [(row["kind"], row["paper_pmid"]) for row in rows] == [
        ("included", "7"),
        ("included", "8"),
        ("near-miss", "10"),
        ("near-miss", "9"),
    ]
    assert summary["set"]["short"] == {"1": {"random": 2}}
    assert (
        "\nshort          1 review with fewer papers than requested, "
        "all sampled: 0 of 2 random asked for in 1 review\n"
    ) in text


def test_who_asks_for_more_than_there_are_is_told_what_there_is(tmp_path: Path) -> None:
    text, summary, rows = made(tmp_path, per_review=1_000_000, review=("1",))
    near = sum(row["kind"] == "near-miss" for row in rows)
    assert f"{near} of 1,000,000 near-miss asked for in 1 review" in text
    assert "missing" not in text
    assert summary["set"]["short"]["1"]["near-miss"] == 1_000_000 - near


def test_the_candidates_of_reviews_that_are_not_analysed_are_told_apart(
    tmp_path: Path,
) -> None:
    text, summary, _ = made(tmp_path, min_included=2)
    near = summary["near_misses"]
    assert near["total"] < near["all_reviews_total"]
    total = f"total {near['total']} ({near['all_reviews_total']} of all reviews) mean"
    assert total in text


def test_hubs_are_told_and_relate_nothing(tmp_path: Path) -> None:
    text, summary, rows = made(tmp_path, max_paper_degree=2)
    assert summary["inputs"]["hubs_ignored"] == 1
    assert summary["inputs"]["largest_paper_degree"] == 4
    assert "1 hub paper did not relate reviews\n" in text
    near = [r for r in rows if r["review_pmid"] == "1" and r["kind"] == "near-miss"]
    # 10 came by the hub alone; what is related still shares the hub
    assert [(r["paper_pmid"], r["n_links"], r["n_shared"]) for r in near] == [
        ("9", "1", "2")
    ]


def test_texts_and_reasons_of_exclusions_reach_the_set(tmp_path: Path) -> None:
    path = tmp_path / "excluded.csv"
    path.write_text(
        "review_pmid,pmid,status,reason,reason_code,title,abstract\n"
        "1,099,,Wrong patients,,T,blue text\n"
        "1,98,Excluded,=Wrong patients,language,T,text\n"
        "1,97,AWAITING ASSESSMENT,,,T,text\n"
        "1,96,excluded,,,No abstract,\n"
        "1,9,excluded,,,,\n"
        "1,7,excluded,No trial,,,\n"
    )
    text, summary, rows = made(
        tmp_path, excluded=path, negatives=("near-miss", "true-excluded"), per_review=9
    )
    true = [row for row in rows if row["kind"] == "true-excluded"]
    assert [(r["paper_pmid"], r["reason_code"], r["also_near_miss"]) for r in true] == [
        ("099", "population", "0"),
        ("9", "", "1"),
        ("98", "language", "0"),
    ]
    # a spreadsheet would run it
    assert true[2]["reason"] == "'=Wrong patients"
    papers = (tmp_path / "set" / "papers.jsonl").read_text(encoding="utf-8")
    assert '{"pmid": "099", "title": "T", "abstract": "blue text", "year": null}' in (
        papers.splitlines()
    )
    assert summary["inputs"]["exclusions"] == 5
    assert summary["inputs"]["exclusions_with_text"] == 2
    assert summary["inputs"]["awaiting_or_ongoing"] == 1
    assert summary["reason_codes"] == {
        "population": 1,
        "language": 1,
        "study_design": 1,
    }
    assert summary["contamination"]["confirmed"] == 1
    assert "5 known exclusions (2 in the paper table), 1 awaiting" in text
    # one review of four has confirmed one of its two candidates, of eight in all
    assert "share confirmed 0.125, mean of 4 reviews 0.125\n" in text
    assert "A review both includes and excludes a paper; it stays included." in text


def test_drift_can_be_left_out(tmp_path: Path) -> None:
    text, summary, rows = made(tmp_path, drift=False)
    assert summary["topic_drift"] == {
        "reviews": 0,
        "macro": {"jaccard": None},
        "too_easy": {},
    }
    assert "topic drift" not in text
    assert {row["similarity"] for row in rows} == {""}


def test_papers_of_stop_words_alone_have_no_drift(tmp_path: Path) -> None:
    papers = ["pmid,title,abstract", "7,,the of", "8,,and"]
    tables = write_tables(tmp_path / "tables", {**TABLES, "papers": papers})
    out = tmp_path / "set"
    out.mkdir()
    told = prepare_set(ScreeningSettings(tables=tables, min_included=1)).write(out)
    assert told.json["topic_drift"] == {
        "reviews": 0,
        "macro": {"jaccard": None},
        "too_easy": {},
    }


def test_an_unknown_review_is_refused_with_its_nearest(tmp_path: Path) -> None:
    # already when the inputs are read: nothing has been written by then
    with pytest.raises(DatasetError, match="No review '22' cites any paper"):
        folder(tmp_path, review=("1", "22"))


def test_records_are_one_set_in_any_order_of_files(tmp_path: Path) -> None:
    header = "pubmedID,title,abstract,year,label_included\n"
    first, second = tmp_path / "Sleep.csv", tmp_path / "77.csv"
    first.write_text(f"{header}1,A,text,1999.0,1\n2,B,text,,0\n1,A,text,,0\n")
    second.write_text(f"{header}1,Other,text,,1\n3,C,text,,1\n")
    built = []
    for number, paths in enumerate([(first, second), (second, first)]):
        out = tmp_path / str(number)
        out.mkdir()
        settings = ScreeningSettings(
            records=paths, min_included=1, negatives=("near-miss", "true-excluded")
        )
        told = prepare_set(settings).write(out)
        built.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert built[0] == built[1]
    # a file's name is the title, unless it is a number
    rows = built[0]["validation_set.csv"].decode().splitlines()[1:]
    assert [row.split(",")[:4] for row in rows] == [
        ["Sleep", "1", "1", "included"],
        ["Sleep", "3", "0", "near-miss"],
        ["Sleep", "2", "0", "true-excluded"],
    ]
    assert b'"title": "Sleep"' in built[0]["reviews.jsonl"]
    assert told.json["set"]["dropped"] == {"no_candidates": 1}  # type: ignore[index] - JSON
    assert "it stays included. Sleep.csv: 1" in told.text
