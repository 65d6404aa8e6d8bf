"""The folder that `siftlog prepare screening` writes, and how it is read again.

The sample that ships: what it holds, and runs that start from it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jobs.screening.data import REASON_CODES, ScreeningJudgement
from jobs.screening.inputs import SAMPLE, load, read_set
from jobs.screening.parsing import parse_screen
from jobs.screening.prompts import describe_review
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError
from runner.messages import ParseFailure, Reply
from tests.commands import command
from tests.csv_files import rows
from tests.jobs.screening.commanded import prepare, some_records
from tests.jobs.screening.tables import OPTIONS, tables

FILES = (
    *("candidates.csv", "contamination.csv", "manifest.json", "near_miss_stats.csv"),
    *("papers.jsonl", "reviews.jsonl", "summary.json", "topic_drift.csv"),
    "validation_set.csv",
)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A set of the small world."""
    folder = tables(tmp_path / "tables")
    prepare("--tables", folder, "--out", tmp_path / "set", *OPTIONS)
    return tmp_path / "set"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_set_needs_a_place_and_replaces_another_only_by_force(
    tmp_path: Path, made: Path
) -> None:
    words = ("prepare", "screening", "--tables", tmp_path / "tables", *OPTIONS)
    done = command(*words)
    assert (done.code, done.err) == (
        2,
        "siftlog: screening builds a folder; say where with --out.\n",
    )
    before = (made / "validation_set.csv").read_bytes()
    done = command(*words, "--seed", 7, "--out", made)
    assert done.code == 2
    assert "exists already: name another --out, or use --force." in done.err
    assert (made / "validation_set.csv").read_bytes() == before
    done = command(*words, "--negatives", "near-miss", "--out", made, "--force")
    assert done.code == 0
    assert (made / "validation_set.csv").read_bytes() != before
    assert names(made) == [*FILES]
    assert names(tmp_path) == ["set", "tables"]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))
from runner.cli.main import exit_code
sys.exit(exit_code(sys.argv[1:]))
"""


def test_a_disk_that_takes_no_more_leaves_the_old_set(
    tmp_path: Path, made: Path
) -> None:
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    words = ("--tables", tmp_path / "tables", "--out", made, "--force", *OPTIONS)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "prepare", "screening", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"siftlog: {made} cannot be written: File too large.\n"
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before
    assert names(tmp_path) == ["set", "tables"]


def test_neither_a_time_nor_a_path_is_in_the_files(tmp_path: Path, made: Path) -> None:
    for path in made.iterdir():
        text = path.read_text("utf-8")
        assert str(tmp_path) not in text
        assert "T00:" not in text
    manifest = json.loads((made / "manifest.json").read_text("utf-8"))
    assert manifest["sampler_version"] == 1
    assert manifest["options"]["seed"] == 42
    assert manifest["inputs"]["papers"]["file"] == "referenced_paper_abstracts.csv"
    assert not {"stages", "unclear", "tables", "reask"} & manifest["options"].keys()


def test_a_set_is_read_as_it_was_written() -> None:
    found = read_set(SAMPLE / "set")
    assert len(found.records) == 375
    assert len({each.key for each in found.records}) == 375
    assert [each.id for each in found.reviews] == sorted(
        {each.review for each in found.records}
    )
    assert {each.paper for each in found.records} == found.papers.keys()
    criteria = {each.id: each.criteria for each in found.reviews}
    assert criteria["9800002"] is None
    assert criteria["9800001"] is not None
    assert criteria["9800001"].headings == {"Setting": "any"}


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("validation_set.csv", ",1,included", ",0,included", "label contradicts"),
        ("validation_set.csv", "near-miss", "hard", "kind is 'hard'"),
        ("validation_set.csv", "A,1,", "A,01,", "A:01 occurs a second time"),
        ("validation_set.csv", "A,1,", "A,77,", "the paper 77 has no text in papers"),
        ("reviews.jsonl", '"B"', '"b"', "the review B has no text in reviews"),
        ("summary.json", "{", "", "summary.json: not valid JSON"),
        ("manifest.json", "{", "", "manifest.json: not valid JSON"),
        # what is readable, and no contradiction, is known by its hash
        ("validation_set.csv", ",near-miss,", ",random,", r"set\.csv is not the file"),
        ("papers.jsonl", "abstract of 01", "", r"papers\.jsonl is not the file that"),
        ("summary.json", "2", "3", r"summary\.json is not the file that siftlog prep"),
    ],
)
def test_a_set_that_was_tampered_with_is_refused(
    made: Path, file: str, old: str, new: str, sentence: str
) -> None:
    text = (made / file).read_text("utf-8")
    assert old in text
    (made / file).write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DatasetError, match=sentence):
        read_set(made)


def test_a_set_that_lost_rows_is_refused_unless_it_is_ones_own(made: Path) -> None:
    path = made / "validation_set.csv"
    rows = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(rows[:-1]), "utf-8")
    with pytest.raises(DatasetError, match=r"wrote there \(build the set again\)\."):
        read_set(made)
    (made / "manifest.json").unlink()
    assert len(read_set(made).records) == len(rows) - 2


def test_a_set_that_lacks_a_file_is_none(made: Path) -> None:
    (made / "papers.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"has no papers\.jsonl: name a folder"):
        read_set(made)


def test_full_texts_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "01.txt").write_text("text", "utf-8")
    (tmp_path / "01.md").write_text("not this one", "utf-8")
    (tmp_path / "2.3.md").write_text("caf\u00e9", "latin-1")
    (tmp_path / "4.pdf").write_text("", "utf-8")
    found = load(ScreeningSettings(stages=("fulltext",), fulltext=tmp_path))
    assert sorted(found.fulltexts) == ["01", "2.3"]
    assert (found.fulltext("01"), found.fulltext("2.3")) == ("text", "caf\ufffd")
    assert not load(ScreeningSettings(fulltext=tmp_path)).fulltexts
    with pytest.raises(DatasetError, match="no such folder"):
        load(ScreeningSettings(stages=("fulltext",), fulltext=tmp_path / "none"))


MODELS = ("alder-9b", "sorrel-70b")


def test_the_tables_hold_every_oddity() -> None:
    tables = SAMPLE / "tables"
    reviews = {row["pmid"] for row in rows(tables / "cochrane_pubmed_abstracts.csv")}
    edges = rows(tables / "cochrane_pubmed_references.csv")
    papers = rows(tables / "referenced_paper_abstracts.csv")
    cited: dict[str, set[str]] = {}
    for row in edges:
        if row["ref_pmid"]:
            cited.setdefault(row["citing_pmid"], set()).add(row["ref_pmid"])
    texts: dict[str, str] = {}
    for row in papers:
        texts[row["pmid"]] = texts.get(row["pmid"], "") or row["abstract"].strip()
    assert (len(cited), len(texts)) == (12, 150)
    assert len(cited.keys() - reviews) == 1
    assert sum(not text for text in texts.values()) == 8
    assert sum(not row["ref_pmid"] for row in edges) == 10
    n_edges = sum(map(len, cited.values()))
    assert len(papers) - len(texts) + len(edges) - 10 - n_edges == 3
    assert [review for review, own in cited.items() if review in own] == ["9800008"]
    degree = Counter(paper for own in cited.values() for paper in own)
    assert max(degree.values()) == 5
    readable = {r: {p for p in own if texts[p]} for r, own in cited.items()}
    assert [r for r, own in readable.items() if len(own) < 5] == ["9800006"]
    assert len(readable["9800006"]) == 4
    assert all(degree[paper] == 1 for paper in cited["9800012"])
    assert any(pmid.startswith("0") for pmid in texts)
    abstracts, titles = texts.values(), [row["title"] for row in papers]
    assert sum("Ignore all previous instructions" in text for text in abstracts) == 1
    assert sum("\x1b" in title for title in titles) == 1
    assert sum("\x1b" in text for text in abstracts) == 1
    assert sum(title.startswith("=") for title in titles) == 1


def test_exclusions_have_reasons_of_every_code() -> None:
    written = {
        (row["review_pmid"], row["paper_pmid"]): row["reason_code"]
        for row in rows(SAMPLE / "set" / "validation_set.csv")
    }
    assert {*written.values()} - {""} == {*REASON_CODES}
    statuses = Counter(row["status"].lower() for row in rows(SAMPLE / "excluded.csv"))
    assert statuses["awaiting"] + statuses["awaiting assessment"] == 2
    assert statuses["ongoing"] == 1
    # one paper has the title of an included one, one the study
    summary = json.loads((SAMPLE / "set" / "summary.json").read_text("utf-8"))
    assert summary["contamination"]["duplicate_suspect"] == 2
    with (SAMPLE / "criteria.jsonl").open(encoding="utf-8") as lines:
        assert len({json.loads(line)["review_pmid"] for line in lines}) == 10


def test_a_review_that_only_its_title_tells_of_is_flagged() -> None:
    settings = ScreeningSettings(validation_set=SAMPLE / "set")
    dataset = load(settings)
    sources = Counter(
        describe_review(settings, dataset.review(review)).source
        for review in dataset.screened
    )
    assert sources == {"file": 9, "sections": 1, "title": 1}
    (found,) = dataset.findings
    assert (found.code, found.n, found.example) == ("criteria_from_title", 1, "9800011")


@pytest.mark.parametrize("model", MODELS)
def test_recorded_replies_answer_every_record(model: str) -> None:
    path = SAMPLE / "replies" / f"{model}.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["key"] for line in lines] == [
        f"{row['review_pmid']}:{row['paper_pmid']}"
        for row in rows(SAMPLE / "set" / "validation_set.csv")
    ]


def test_recorded_replies_take_every_branch_of_the_parser() -> None:
    seen: set[str] = set()
    for model in MODELS:
        text = (SAMPLE / "replies" / f"{model}.jsonl").read_text("utf-8")
        for line in map(json.loads, text.splitlines()):
            reply = Reply(
                text=line["response"], finish_reason=line.get("finish_reason", "stop")
            )
            found = parse_screen(reply)
            if isinstance(found, ParseFailure):
                seen.add(found.reason)
            elif isinstance(found, ScreeningJudgement):
                seen |= {found.rule, found.decision, *found.issues}
    assert seen == {
        *("json", "line", "word", "include", "exclude", "unclear"),
        *("empty", "refusal", "ambiguous", "bad_decision", "no_decision", "truncated"),
        *("bad_confidence", "inconsistent", "bad_reason_code"),
    }


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, ...]:
    return ("--runs-dir", str(tmp_path), "--no-score", "--run-id", "x")


def states(tmp_path: Path) -> dict[str, dict[str, int]]:
    """Tasks by stage and state, skips by reason."""
    done = command("tasks", "x", "--runs-dir", tmp_path, "--json", "--limit", 5000)
    assert done.code == 0, done.err
    found: dict[str, Counter[str]] = {}
    for line in done.out.splitlines():
        task = json.loads(line)
        state = task["reason"] if task["state"] == "skipped" else task["state"]
        found.setdefault(task["stage"], Counter())[state] += 1
    return {stage: dict(counts) for stage, counts in found.items()}


def test_a_run_without_inputs_screens_the_sample(
    tmp_path: Path, runs: tuple[str, ...]
) -> None:
    done = command("run", "screening", *runs, "--limit", 12)
    assert done.code == 0, done.err
    assert "using the sample that ships with screening" in done.err
    assert states(tmp_path) == {"abstract": {"completed": 12}}
    told = command("explain", "x", "9800001", "9800001/9700", "--runs-dir", tmp_path)
    assert told.code == 2
    assert "no record '9800001/9700'; the nearest is 9800001:97" in told.err
    told = command("explain", "x", "9800001", "--runs-dir", tmp_path)
    assert (told.code, told.out.count("\n  missed     ")) == (0, 1)


def test_stages_follow_each_other(tmp_path: Path, runs: tuple[str, ...]) -> None:
    words = ("--stages", "title,abstract,fulltext", "--criteria-source", "llm")
    made = some_records(tmp_path, lambda place, _: place < 40)
    words += ("--validation-set", str(made), "--fulltext", str(SAMPLE / "fulltext"))
    done = command("run", "screening", *runs, *words)
    assert done.code == 0, done.err
    found = states(tmp_path)
    assert found["title"] == {"completed": 40}
    assert sum(found["abstract"].values()) == 40
    alive = found["abstract"]["completed"]
    assert 0 < alive < 40
    assert found["abstract"]["excluded_earlier"] == 40 - alive
    assert sum(found["fulltext"].values()) == alive
    assert found["fulltext"]["no_fulltext"] > 0
    assert found["criteria"]["completed"] == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--tables", SAMPLE / "tables"), "A run needs --library, files of records"),
        (
            ("--validation-set", SAMPLE / "set", "--stages", "fulltext"),
            "Stage fulltext needs --fulltext",
        ),
        (("--validation-set", SAMPLE), "has no validation_set.csv: name a folder"),
        (("--stages", "abstract,title"), "each once and in this order"),
    ],
)
def test_a_run_that_cannot_start_is_told_in_a_sentence(
    tmp_path: Path, runs: tuple[str, ...], words: tuple[object, ...], sentence: str
) -> None:
    done = command("run", "screening", *runs, *words)
    assert done.code in {1, 2}
    assert sentence in done.err
    assert not [*tmp_path.iterdir()]
