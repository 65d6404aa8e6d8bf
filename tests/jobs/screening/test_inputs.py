"""What is read from tables and records, by what `prepare` makes of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.screening.inputs import load
from jobs.screening.prepare import summary_text
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError
from tests.commands import command
from tests.csv_files import rows, write_csv
from tests.jobs.screening.commanded import prepare
from tests.jobs.screening.tables import EDGES, OPTIONS, PAPERS, tables, text


def summary(folder: Path, *words: object) -> dict[str, Any]:
    """What is printed of a set that is built beside its tables."""
    out = folder.parent / "set"
    done = prepare("--out", out, "--force", "--json", *OPTIONS, *words)
    found: dict[str, Any] = json.loads(done.out)
    return found


def built(tmp_path: Path, *words: object, **parts: Any) -> dict[str, Any]:
    folder = tables(tmp_path / "tables", **parts)
    return summary(folder, "--tables", folder, *words)


def papers(tmp_path: Path, review: str, kind: str) -> list[str]:
    """The papers of a review that were drawn."""
    return [
        row["paper_pmid"]
        for row in rows(tmp_path / "set" / "validation_set.csv")
        if (row["review_pmid"], row["kind"]) == (review, kind)
    ]


def found(said: dict[str, Any]) -> dict[str, int]:
    """Codes of what was noticed, with counts."""
    return {each["code"]: each["n"] for each in said["findings"]}


def test_ids_are_texts_and_so_is_their_order(tmp_path: Path) -> None:
    said = built(
        tmp_path,
        edges=[*EDGES, ("A", " 10 "), ("B", "9"), ("B", "10.0")],
        papers=[*map(text, PAPERS), text("10"), text("9"), text("10.0")],
    )
    assert papers(tmp_path, "A", "included") == ["01", "1", "10", "3"]
    assert papers(tmp_path, "A", "near-miss") == ["10.0", "4", "5", "9"]
    assert said["inputs"]["papers"] == len(PAPERS) + 3
    assert found(said) == {}


def test_rows_that_repeat_or_cite_nothing_are_counted_and_collapsed(
    tmp_path: Path,
) -> None:
    said = built(
        tmp_path,
        edges=[*EDGES, EDGES[0], ("A", ""), ("C", " ")],
        papers=[text("3", " "), *map(text, PAPERS)],
    )
    assert (said["inputs"]["edges"], said["inputs"]["edges_unique"]) == (9, 8)
    assert found(said) == {"empty_references": 2, "repeated_rows": 1}
    # a paper has an abstract if any of its rows has one
    assert papers(tmp_path, "A", "included") == ["01", "1", "3"]


@pytest.mark.parametrize("abstract", ["", " ", "\t\n "])
def test_a_blank_abstract_is_missing_and_relates_nothing(
    tmp_path: Path, abstract: str
) -> None:
    lacking = [text(pmid, abstract if pmid == "3" else None) for pmid in PAPERS]
    said = built(tmp_path, papers=lacking)
    assert said["near_misses"]["total"] == 0
    assert said["inputs"]["shared_papers"] == 0
    assert papers(tmp_path, "A", "included") == ["01", "1"]


@pytest.mark.parametrize("abstract", ["NA", "null", "0", "-"])
def test_no_other_word_is_missing(tmp_path: Path, abstract: str) -> None:
    odd = [text(pmid, abstract if pmid == "3" else None) for pmid in PAPERS]
    assert built(tmp_path, papers=odd)["near_misses"]["total"] == 4


def test_a_review_without_a_row_stays_in_the_graph(tmp_path: Path) -> None:
    said = built(tmp_path, reviews=[text("A", ""), text("D", "")])
    assert said["inputs"]["reviews"] == 2
    assert said["inputs"]["reviews_citing"] == 3
    assert said["inputs"]["reviews_without_citations"] == 1
    # it still brings its papers near, but nobody could be told what it asks for
    assert papers(tmp_path, "A", "near-miss") == ["4", "5"]
    assert said["set"]["dropped"] == {"no_text": 2}


def test_reviews_that_only_a_list_knows_are_told(tmp_path: Path) -> None:
    listed = write_csv(
        tmp_path / "excluded.csv",
        ("review_pmid", "pmid"),
        [("X", "1"), ("X", "3"), ("a", "1"), ("A", "1")],
    )
    criteria = tmp_path / "criteria.jsonl"
    criteria.write_text('{"review_pmid": "Y"}\n{"review_pmid": "C"}\n')
    said = built(tmp_path, "--excluded", listed, "--criteria", criteria)
    assert [
        (each["where"], each["n"], each["example"])
        for each in said["findings"]
        if each["code"] == "unknown_reviews"
    ] == [("excluded.csv", 2, "X"), ("criteria.jsonl", 1, "Y")]


def test_criteria_are_told_as_they_are_written(tmp_path: Path) -> None:
    criteria = tmp_path / "criteria.jsonl"
    criteria.write_text(
        '{"review_pmid": "A", "inclusion": "adults | teens", "exclusion": ["x", " "], '
        '"pico": {"outcome": null, "population": " p "}}\n'
    )
    assert found(built(tmp_path, "--criteria", criteria)) == {}
    first = (tmp_path / "set" / "reviews.jsonl").read_text("utf-8").splitlines()[0]
    told = json.loads(first)
    assert (told["inclusion"], told["exclusion"]) == (["adults | teens"], ["x"])
    assert told["pico"] == {"population": "p"}


def test_nothing_to_analyse_divides_by_nothing(tmp_path: Path) -> None:
    said = built(tmp_path, "--min-included", 9)
    near = said["near_misses"]
    assert (near["reviews_analysed"], near["share_with_candidates"]) == (0, None)
    assert (near["mean"], near["median"], near["std"]) == (None, None, None)
    assert said["set"]["records"] == 0
    assert said["set"]["dropped"] == {"too_few_included": 3}
    assert "no review is left: take other --negatives" in summary_text(said, {})
    # and nothing is asked or measured either
    with pytest.raises(DatasetError, match="set holds no record: build the set with"):
        load(ScreeningSettings(validation_set=tmp_path / "set"))
    # and a review without candidates counts in the mean
    said = built(tmp_path)
    assert said["near_misses"]["mean"] == pytest.approx(4 / 3)


def test_exclusions_bring_texts_and_never_become_random(tmp_path: Path) -> None:
    listed = write_csv(
        tmp_path / "excluded.csv",
        ("review_pmid", "pmid", "status", "title", "abstract"),
        [
            ("A", "x1", "", "Own text", "An abstract."),
            ("A", "x2", "excluded", "No text", ""),
            ("A", "6", "EXCLUDED", "", ""),
            ("A", "7", "Awaiting assessment", "", ""),
            ("A", "4", "ongoing", "", ""),
            ("A", "1", "excluded", "", ""),
        ],
    )
    kinds = ("near-miss", "random", "true-excluded")
    words = ("--excluded", listed, "--negatives", ",".join(kinds), "--ratio", 9)
    said = built(tmp_path, *words)
    assert papers(tmp_path, "A", "included") == ["01", "1", "3"]
    assert papers(tmp_path, "A", "true-excluded") == ["6", "x1"]
    assert papers(tmp_path, "A", "near-miss") == ["5"]
    assert papers(tmp_path, "A", "random") == []
    assert found(said) == {"included_and_excluded": 1}
    texts = {
        json.loads(line)["pmid"]: json.loads(line)["abstract"]
        for line in (tmp_path / "set" / "papers.jsonl").read_text("utf-8").splitlines()
    }
    assert texts["x1"] == "An abstract."
    # what is known is kept out of random ones even if it is not drawn itself
    said = built(tmp_path, "--excluded", listed, "--ratio", 9)
    assert papers(tmp_path, "A", "near-miss") == ["4", "5"]
    assert papers(tmp_path, "A", "random") == []
    assert said["set"]["short"]["A"]["random"] == 27


def test_packed_tables_and_other_names_of_columns(tmp_path: Path) -> None:
    plain = built(tmp_path)
    folder = tables(tmp_path / "packed", columns={"references": ("review", "ref_pmid")})
    for path in sorted(folder.iterdir()):
        data = b"\xef\xbb\xbf" + path.read_bytes()
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data))
        path.unlink()
    packed = summary(folder, "--tables", folder, "--map", "citing_pmid=review")
    assert packed == plain


LABELS = ("pubmedID", "title", "abstract", "year", "label_included")


def test_labelled_records_are_a_file_a_review(tmp_path: Path) -> None:
    stage = (*LABELS, "label_abstract_screening", "authors")
    one = [
        (p, "t", "text", "2001", int(p != "5"), 1, "x") for p in ("1", "2", "3", "5")
    ]
    one.append(("6", "t", "text", "", 1, 0, "x"))
    two = [(p, "t", "text", "", 1) for p in ("3", "7")] + [("8", "t", "", "", 0)]
    files = (
        write_csv(tmp_path / "in" / "R1.csv", stage, one),
        write_csv(tmp_path / "in" / "R2.csv", LABELS, two),
    )
    criteria = tmp_path / "criteria.jsonl"
    criteria.write_text(
        "".join(json.dumps({"review_pmid": name}) + "\n" for name in ("R1", "R2"))
    )
    words = ("--criteria", criteria, "--negatives", "near-miss,true-excluded")
    # the shell expands *.csv: several plain words after a flag
    said = summary(tmp_path / "in", "--records", *files, *words)
    assert papers(tmp_path, "R1", "included") == ["1", "2", "3", "6"]
    assert papers(tmp_path, "R1", "near-miss") == ["7"]
    assert papers(tmp_path, "R1", "true-excluded") == ["5"]
    assert papers(tmp_path, "R2", "true-excluded") == []
    assert found(said)["included_after_exclusion"] == 1
    again = summary(
        tmp_path / "in",
        *("--records", files[0], *words),
        *("--positive-label", "label_abstract_screening"),
    )
    assert papers(tmp_path, "R1", "true-excluded") == ["6"]
    assert again["inputs"]["reviews"] == 1


GOOD_ROW = text("9")
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an empty id": (
        {"papers": [*[GOOD_ROW] * 3, text("  ")]},
        "referenced_paper_abstracts.csv row 5: pmid is missing",
    ),
    "nobody who cites": (
        {"edges": [("A", "1"), ("", "1")]},
        "cochrane_pubmed_references.csv row 3: citing_pmid is missing",
    ),
    "a column that is missing": (
        {"columns": {"references": ("citing", "cited")}},
        "(found: citing, cited; nearest: citing); name it in the header, or pass",
    ),
    "an id with a colon": (
        {"edges": [("A:1", "1")]},
        "row 2: citing_pmid is 'A:1', and a colon parts review and paper",
    ),
    "an id with an invisible character": (
        {"edges": [("A", "1\x1f2")]},
        "row 2: ref_pmid is '1\\x1f2', with an invisible character (remove it)",
    ),
    "rows that are empty": (
        {"edges": [("A", "1"), (), ("A", "2"), (), ("", "1")]},
        "cochrane_pubmed_references.csv row 6: citing_pmid is missing",
    ),
    "a row that is too short": (
        {"edges": [("A",)]},
        "row 2: 1 field where the header has 2 (complete the row).",
    ),
    "a row that is too long": (
        {"papers": [(*GOOD_ROW, "more")]},
        "referenced_paper_abstracts.csv row 2: 5 fields where the header has 4",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, case: str
) -> None:
    parts, sentence = BAD[case]
    folder = tables(tmp_path / "tables", **parts)
    refused(tmp_path, sentence, "--tables", folder)


@pytest.mark.parametrize(
    ("option", "name", "content", "sentence"),
    [
        (
            "--criteria",
            "criteria.jsonl",
            '{"review_pmid": "A"}\n\n\n{"review_pmid": \n',
            "criteria.jsonl line 4: not valid JSON",
        ),
        (
            "--criteria",
            "criteria.jsonl",
            '{"review_pmid": "A", "pico": {"who": "all"}}\n',
            "criteria.jsonl line 1: pico has a key 'who' (one of population,",
        ),
        (
            "--excluded",
            "excluded.csv",
            "review_pmid,pmid,status\nA,9,perhaps\n",
            "excluded.csv row 2: status is 'perhaps' (one of excluded, awaiting,",
        ),
        (
            "--excluded",
            "excluded.csv",
            "review_pmid,pmid\rA,9\r",
            (
                "excluded.csv line 1: not CSV, a carriage return without a "
                "line feed (check"
            ),
        ),
        (
            "--excluded",
            "excluded.csv",
            "review_pmid,pmid,reason_code\nA,9,boring\n",
            "excluded.csv row 2: reason_code is 'boring' (one of meets_criteria,",
        ),
    ],
)
def test_a_bad_list_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, option: str, name: str, content: str, sentence: str
) -> None:
    folder = tables(tmp_path / "tables")
    (tmp_path / name).write_text(content, "utf-8")
    refused(tmp_path, sentence, "--tables", folder, option, tmp_path / name)


@pytest.mark.parametrize(
    ("name", "line", "sentence"),
    [
        ("R1.csv", ("1", "yes", "1"), "R1.csv row 2: label_included is 'yes'"),
        ("R1.csv", ("1", "", "1"), "R1.csv row 2: label_included is missing"),
        ("R1.csv", ("1", "0", "2"), "row 2: label_abstract_screening is '2' (0 or 1"),
        ("R:1.csv", ("1", "1", "1"), "the review's id, is 'R:1', and a colon parts"),
        ("R\n1.csv", ("1", "1", "1"), "is 'R\\n1', with an invisible character"),
        (" .csv", ("1", "1", "1"), "the file's name is the review's id, and it is em"),
    ],
)
def test_wrong_labels_and_names_of_records_are_one_sentence(
    tmp_path: Path, name: str, line: tuple[str, ...], sentence: str
) -> None:
    columns = ("pmid", "label_included", "label_abstract_screening")
    refused(
        tmp_path, sentence, "--records", write_csv(tmp_path / name, columns, [line])
    )


def test_two_records_of_one_name_are_refused(tmp_path: Path) -> None:
    columns, lines = ("pmid", "label_included"), [("1", 1)]
    first = write_csv(tmp_path / "R1.csv", columns, lines)
    packed = first.with_name("R1.csv.gz")
    packed.write_bytes(gzip.compress(first.read_bytes()))
    refused(tmp_path, "another file is called R1 too", "--records", first, packed)


def test_one_layout_at_a_time(tmp_path: Path) -> None:
    folder = tables(tmp_path / "tables")
    records = write_csv(tmp_path / "R1.csv", LABELS, [])
    both = ("--tables", folder, "--records", records)
    refused(
        tmp_path, "Name either tables or labelled records, not both.", *both, code=2
    )
    for pair, sentence in (
        ("x", "--map x: write OLD=NEW"),
        ("year=id", "--map year=id: there is no field id (fields: pmid, title,"),
        ("id=pmid", "--map id=pmid: no file has a column id (found: pmid, title,"),
        ("title=Titel", "--map title=Titel: there is no field Titel (fields: "),
        ("label_included=Labl", "no file has a column Labl (found: "),
        ("Abstrct=abstract", "; nearest: abstract"),
    ):
        refused(tmp_path, sentence, *both[:2], "--map", pair, code=2)
    lone = ("--reviews", folder / "cochrane_pubmed_abstracts.csv")
    refused(tmp_path, "Name the folder of the three tables", *lone, code=2)


def refused(tmp_path: Path, sentence: str, *words: object, code: int = 1) -> None:
    """The command fails with one sentence, and leaves what was there as it was."""
    out = tmp_path / "out" / "set"
    done = command("prepare", "screening", "--out", out, *words)
    assert (done.code, done.out) == (code, "")
    assert done.err.count("\n") == 1, done.err
    assert sentence in done.err
    assert not out.parent.exists()
