"""`prepare review-benchmark import`: what it prints, and what it leaves behind."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.review_benchmark import prepare
from jobs.review_benchmark.database import formats, reader
from jobs.review_benchmark.database.papers import NORMAL
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.prepare import ImportedPapers, PaperImport
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.errors import DatasetError, UsageError
from tests.commands import command
from tests.nobody import as_nobody, open_to_others
from tests.processes import siftlog, start

BMLIBRARIAN = "bmlibrarian/agent_runs/*__{}_library.json"


GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
    "pi rho sigma tau upsilon phi chi psi omega"
)


def silent(line: str) -> None:
    assert line


def imported(
    path: Path,
    /,
    *files: Path,
    progress: Callable[[str], None] = silent,
    **settings: Any,
) -> ImportedPapers:
    settings = {"database": path, **settings}
    return PaperImport.of(ReviewBenchmarkSettings(**settings)).read(files, progress)


def prepared(*words: object) -> str:
    """What a subcommand of `prepare` prints; it must go well."""
    done = command("prepare", "review-benchmark", *words)
    assert done.code == 0, done.err
    return done.out


def planned(
    review: str, groups: list[list[str]], pmids: Sequence[str] = ("1",)
) -> None:
    """A review's file, and the plan of one query that a recorded model has for it."""
    truth = {
        "cochrane_id": review,
        "title": review,
        "research_question": "Which?",
        "included_studies": [{"pmid": pmid} for pmid in pmids],
    }
    Path(f"cochrane_{review}.json").write_text(json.dumps(truth))
    plan = json.dumps({"queries": [{"all_of": groups}]})
    with Path("said.jsonl").open("a") as file:
        said = {"key": review, "stage": "plan", "response": plan}
        file.write(json.dumps(said) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text("pmid,title\n1,One\n2,Two\n1,Uno\n")
    (tmp_path / "b.jsonl").write_text(
        '{"doi": "10.1/b", "title": "Three", "pmid": "PMC7"}\n{"a": 1}\n'
    )
    return tmp_path


@pytest.mark.realdata
def test_the_commands_print_the_recorded_counts(tmp_path: Path, realdata: Path) -> None:
    job = ("prepare", "review-benchmark")
    files = sorted(realdata.glob(BMLIBRARIAN.format("pubmed_only")))
    printed = siftlog(*job, "import", "--database", "papers.db", *files, cwd=tmp_path)
    summed, holds, _ = printed.stdout.splitlines()[-3:]
    assert summed == (
        "all: 339 records, 315 new papers, 24 merged (24 by pmid), 6 further titles"
    )
    assert holds.startswith("database holds 315 papers: 315 with PMID, 230 with DOI, ")
    assert not printed.stderr
    truth = realdata / "bmlibrarian/ground_truth"
    words = ("coverage", "--database", "papers.db", "--truth", truth)
    out = ("--out", "papers.csv", "--fail-under", 1.0)
    done = siftlog(*job, *words, *out, cwd=tmp_path, check=False)
    assert done.returncode == 6
    assert "coverage finds 0.7958115183246073, where 1 is the least" in done.stderr
    cells = [line.split() for line in done.stdout.splitlines()[1:10]]
    assert {review: int(found) for review, _, found, *_ in cells} == {
        "CD008080": 26,
        "CD010452": 26,
        "CD012199": 41,
        "CD013328": 33,
        "CD013640": 5,
        "CD015016": 8,
        "CD015244": 3,
        "CD015249": 10,
        "all": 152,
    }
    assert cells[-1] == ["all", "191", "152", "79.6%", "118", "26", "8"]
    with (tmp_path / "papers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 191
    assert sum(row["method"] == "" for row in rows) == 39
    known = [(bool(row["pmid"]), bool(row["doi"])) for row in rows]
    assert sum(pmid for pmid, _ in known) == 118
    assert sum(doi for _, doi in known) == 130
    assert known.count((False, False)) == 39
    assert sum(len(NORMAL.title(row["title"])) >= 200 for row in rows) == 8


@pytest.mark.realdata
def test_a_full_library_has_all_truth_papers(tmp_path: Path, realdata: Path) -> None:
    papers, truth = tmp_path / "papers.db", realdata / "bmlibrarian/ground_truth"
    files = sorted(realdata.glob(BMLIBRARIAN.format("full")))
    assert prepared("import", "--database", papers, *files).splitlines()[-3] == (
        "all: 443 records, 416 new papers, 27 merged (2 by doi, 24 by pmid, 1 by "
        "title), 6 further titles"
    )
    words = ("coverage", "--database", papers, "--truth", truth)
    total = "all         191    191  100.0%      118   34     39"
    assert prepared(*words, "--fail-under", 1.0).splitlines()[-1] == total
    few = prepared(*words, "--review", "CD015244", "--keys", "pmid,doi", "--json")
    assert json.loads(few)["reviews"] == {
        "CD015244": {
            "truth": 4,
            "found": 2,
            "share": 0.5,
            "pmid": 2,
            "doi": 0,
            "title": 0,
        }
    }


@pytest.mark.realdata
def test_searches_of_real_abstracts_have_the_recorded_hits(
    tmp_path: Path, realdata: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = sorted(realdata.glob("near_miss/cohen2006/*.csv"))
    told = prepared("import", "--database", "papers.db", *files).splitlines()
    assert told[-3] == (
        "all: 3,034 records, 3,017 new papers, 17 merged (17 by pmid), 0 further titles"
    )
    assert told[-2] == (
        "database holds 3,017 papers: 3,017 with PMID, 0 with DOI, 391 without "
        "abstract, 108 without year"
    )
    top = ("11284462", "8912486", "10551439", "11284463", "11695077")
    planned("CD1", [["oxybutynin"], ["once daily", "controlled release"]])
    planned("CD2", [["sumatriptan", "rizatriptan"], ["placebo"]], pmids=top)
    planned("CD3", [["women's"]])
    own = ("--truth", ".", "--database", "papers.db", "--run-id", "r", "--top-k", 5)
    # no reply says a score, so every candidate's call fails
    command("generate", "review-benchmark", "--model", "recorded:said.jsonl", *own)
    pages = []
    for review, hits, expression in (
        ("CD1", 19, '(("oxybutynin") AND ("once daily" OR "controlled release"))'),
        ("CD2", 184, '(("sumatriptan" OR "rizatriptan") AND ("placebo"))'),
        ("CD3", 3, '(("women\'s"))'),
    ):
        page = command("explain", "r", review).out.splitlines()
        assert f"    1  {expression}" in page
        cells = [line.split() for line in page]
        assert ["1", str(hits), str(min(hits, 5))] in cells
        pages.append(cells)
    # rank, paper, score, whether included, and which of the five studies it is
    ranked = [(each[0], each[4]) for each in pages[1] if each[2:4] == ["failed", "-"]]
    assert ranked == [("1", "0"), ("2", "1"), ("3", "2"), ("4", "3"), ("5", "4")]


def test_autojunk_costs_a_long_title_its_likeness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    title = f"{GREEK} {GREEK}"
    changed = title.replace("beta", "changed", 1)
    Path("papers.csv").write_text(f"title\n{changed}\n")
    review = {
        "cochrane_id": "CD1",
        "title": "Letters",
        "research_question": "Which?",
        "included_studies": [{"title": title}],
    }
    Path("cochrane_CD1.json").write_text(json.dumps(review))
    prepared("import", "--database", "papers.db", "papers.csv")
    words = ("--database", "papers.db", "--truth", ".", "--title-cutoff", 0.4)
    ratios = []
    for autojunk in ("on", "off"):
        told = prepared("coverage", *words, "--set", f"autojunk={autojunk}", "--json")
        ratios += [paper["ratio"] for paper in json.loads(told)["papers"]]
    assert ratios == [0.4949698189134809, 0.9818913480885312]


def test_bad_records_take_their_file_back_or_are_left_out(folder: Path) -> None:
    database, files = folder / "papers.db", (folder / "a.csv", folder / "b.jsonl")
    with pytest.raises(DatasetError, match=r"b\.jsonl record 2: neither .* --skip-bad"):
        imported(database, *files)
    with closing(PaperDatabase(database)) as kept:
        assert len(kept) == 2
        unsigned = kept.content_hash
    found = imported(database, *files, skip_bad=True)
    assert found.stock.content_hash != unsigned
    told = found.text.splitlines()
    assert told[0].startswith("a.csv: 3 records, 0 new papers, 3 merged (3 by pmid)")
    assert told[1].startswith("b.jsonl: 1 record, 1 new paper, 0 merged, 0 further")
    assert "1 PMID without a PubMed number left out, 1 bad record left" in told[1]
    assert told[2].startswith("  left out record 2: neither PMID")
    again = imported(database, *files, skip_bad=True)
    assert again.stock == found.stock
    assert again.json["total"] == {
        "records": 4,
        "papers": 0,
        "merged": {"doi": 1, "pmid": 3},
        "conflicts": 0,
        "titles": 0,
        "no_pmid": 1,
        "deleted": 0,
        "bad": 1,
    }


def test_what_is_read_in_another_process_is_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    files = (folder / "a.csv", folder / "b.jsonl")
    here = imported(folder / "one.db", *files, skip_bad=True, progress=said.append)
    assert said == [
        "a.csv: 0 records",
        "b.jsonl: 0 records",
        "one.db: hashing all papers",
    ]
    monkeypatch.setattr(formats, "LEAST_BYTES", 0)
    there = imported(folder / "two.db", *files, skip_bad=True)
    assert there.stock == here.stock
    assert there.files == here.files
    (folder / "c.json").write_text("{")
    with pytest.raises(DatasetError, match=r"c\.json: not valid JSON"):
        imported(folder / "two.db", folder / "c.json")


def test_a_database_that_cannot_be_written_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DatasetError, match="unable to open"):
        imported(folder / "none" / "papers.db", folder / "a.csv")
    database = folder / "papers.db"
    imported(database, folder / "a.csv")
    monkeypatch.setattr(reader, "TIMEOUT_S", 0)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            DatasetError, match=r"papers\.db: database is locked .*again"
        ):
            imported(database, folder / "a.csv")
    rows = "".join(f"{number},{'x' * 900}\n" for number in range(9, 999))
    (folder / "big.csv").write_text(f"pmid,title\n{rows}")

    def on_a_small_disk(path: Path) -> sqlite3.Connection:
        made = reader.writer(path)
        made.execute("PRAGMA max_page_count = 60")
        return made

    monkeypatch.setattr(prepare, "writer", on_a_small_disk)
    with pytest.raises(
        DatasetError, match=r"papers\.db: database or disk is full .*room"
    ):
        imported(database, folder / "big.csv")
    with closing(PaperDatabase(database)) as kept:
        assert len(kept) == 2


def test_a_database_of_somebody_else_is_one_sentence(folder: Path) -> None:
    database = folder / "papers.db"
    imported(database, folder / "a.csv")
    open_to_others(database)

    def act() -> None:
        with pytest.raises(DatasetError, match="attempt to write a readonly database"):
            imported(database, folder / "a.csv")

    assert as_nobody(act) == 0


def test_a_killed_import_leaves_whole_files_and_the_next_one_mends_the_hash(
    folder: Path,
) -> None:
    whole = imported(folder / "whole.db", folder / "a.csv", folder / "a.csv")
    os.mkfifo(folder / "pipe.csv")
    words = ("import", "--database", "papers.db", "a.csv", "pipe.csv")
    process = start("prepare", "review-benchmark", *words, cwd=folder)
    with (folder / "pipe.csv").open("w") as pipe:
        # it has opened the second file, so the first is written
        pipe.write("pmid,title\n" + "3,Three\n" * 9000)
        pipe.flush()
        process.kill()
        process.wait(timeout=20)
    with closing(PaperDatabase(folder / "papers.db")) as kept:
        assert len(kept) == 2
        assert kept.content_hash == whole.stock.content_hash
    assert imported(folder / "papers.db", folder / "a.csv").stock == whole.stock


@pytest.mark.parametrize(
    ("settings", "files", "said"),
    [
        ({"database": None}, ("a.csv",), "--database FILE"),
        ({}, (), "Name the files"),
        ({}, ("a.csv", "notes.txt"), r"notes\.txt: its name ends in none of"),
        ({"map": ("x=y",)}, ("a.csv",), "--map x=y"),
    ],
    ids=["database", "files", "format", "map"],
)
def test_what_is_missing_is_said_before_anything_is_written(
    folder: Path, settings: dict[str, Any], files: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        imported(folder / "papers.db", *map(folder.joinpath, files), **settings)
    assert not (folder / "papers.db").exists()
