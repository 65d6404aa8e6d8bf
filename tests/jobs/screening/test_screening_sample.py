"""The sample that ships: what it holds, and runs that start from it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from jobs.screening.data import REASON_CODES, ScreeningJudgement
from jobs.screening.inputs import SAMPLE, load
from jobs.screening.parsing import parse_screen
from jobs.screening.prompts import describe_review
from jobs.screening.settings import ScreeningSettings
from runner.messages import ParseFailure, Reply
from tests.jobs.screening.commanded import command, rows, some_records

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
        (("--tables", SAMPLE / "tables"), "A run needs --validation-set"),
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
