"""Data that leave metrics nothing to divide by go through every job's whole output.

No positives, one class, one item, one model, replies that all fail or say nothing:
each must end in a scoring with its files, report and figures, and in no finding that a
figure failed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import jobs
from tests.commands import command
from tests.jobs.screening.commanded import some_records

JOBS = Path(jobs.__file__).parent

Row: TypeAlias = dict[str, str]
Words: TypeAlias = tuple[object, ...]


def sample(job: str) -> Path:
    """The data that ship with a job."""
    return JOBS / job.replace("-", "_") / "sample"


def filtered(source: Path, target: Path, edit: Callable[[Row], Row | None]) -> Path:
    """A copy of a CSV file with some rows changed or left out."""
    with source.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or ()
        rows = [row for each in reader if (row := edit(each)) is not None]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return target


def lines(source: Path, target: Path, keep: Callable[[Any], bool]) -> Path:
    """A copy of some lines of a JSONL file."""
    kept = [line for line in source.read_text().splitlines() if keep(json.loads(line))]
    target.write_text("".join(f"{line}\n" for line in kept))
    return target


def screening(folder: Path, keep: Callable[[Row], bool]) -> Words:
    """The sample's set, with some records only."""
    made = some_records(folder, lambda _, row: keep(row))
    return ("screening", "--validation-set", made, "--title-criteria")


def evidence(
    folder: Path,
    judge: Callable[[Row], str],
    posts: Callable[[str], bool] = lambda _: True,
) -> Words:
    """The sample's posts, with other judgements, or some posts only."""
    source = sample("evidence-retrieval")

    def judged(row: Row) -> Row | None:
        return {**row, "groundtruth": judge(row)} if posts(row["post_id"]) else None

    gold = filtered(source / "gold.csv", folder / "gold.csv", judged)
    some = filtered(
        source / "posts.csv",
        folder / "posts.csv",
        lambda row: row if posts(row["post_id"]) else None,
    )
    sentences = lines(
        source / "sentences.jsonl",
        folder / "sentences.jsonl",
        lambda line: posts(line["post_id"]),
    )
    return (
        "evidence-retrieval",
        *("--posts", some, "--sentences", sentences, "--gold", gold),
        *("--criteria", source / "criteria.json", "--n-folds", 2),
    )


def investigation(
    folder: Path,
    papers: Callable[[str], bool],
    variants: Callable[[list[str]], list[str]] = lambda every: every,
    questions: Callable[[Any], bool] = lambda _: True,
) -> Words:
    """The sample's papers, with other variants or questions."""
    source = sample("paper-investigation")
    bench = folder / "bench.jsonl"
    own = []
    for line in (source / "variant_bench.jsonl").read_text().splitlines():
        paper = json.loads(line)
        if papers(paper["pmcid"]):
            own.append({**paper, "variants": variants(paper["variants"])})
    bench.write_text("".join(f"{json.dumps(paper)}\n" for paper in own))
    asked = folder / "questions"
    for path in sorted((source / "questions").rglob("*.jsonl")):
        target = asked / path.relative_to(source / "questions")
        target.parent.mkdir(parents=True, exist_ok=True)
        lines(path, target, questions)
    return (
        "paper-investigation",
        *("--bench", bench, "--papers", source / "papers", "--questions", asked),
    )


def reviews(folder: Path, edit: Callable[[Any], Any | None]) -> Words:
    """The sample's reviews, some of them or changed."""
    source = sample("review-benchmark")
    truth = folder / "truth"
    truth.mkdir()
    for path in sorted((source / "truth").glob("*.json")):
        review = edit(json.loads(path.read_text()))
        if review is not None:
            (truth / path.name).write_text(json.dumps(review))
    return (
        "review-benchmark",
        *("--truth", truth, "--database", source / "papers.db"),
    )


def properties(folder: Path, edit: Callable[[Row], Row | None]) -> Words:
    """The sample's papers, with other curated values."""
    source = sample("property-extraction")
    truth = filtered(source / "truth.csv", folder / "truth.csv", edit)
    return (
        "property-extraction",
        *("--papers", source / "papers", "--truth", truth),
        *("--rubric", source / "rubric.csv"),
    )


def _unfindable(review: Any) -> Any:
    """A review none of whose studies is among the papers."""
    truth = review.get("ground_truth", review)
    for name, value in list(truth.items()):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            truth[name] = [
                {"title": f"A study of nothing in particular, part {place}"}
                for place, _ in enumerate(value)
            ]
    return review


DATA: Mapping[str, Callable[[Path], Words]] = {
    "screening: one record, included": lambda folder: screening(
        folder, lambda row: row["paper_pmid"] == "0097000007"
    ),
    "screening: one record, excluded": lambda folder: screening(
        folder,
        lambda row: (
            (row["review_pmid"], row["kind"], row["paper_pmid"])
            == ("9800001", "random", _first("random"))
        ),
    ),
    "screening: no positives": lambda folder: screening(
        folder, lambda row: row["label"] == "0"
    ),
    "screening: no negatives": lambda folder: screening(
        folder, lambda row: row["label"] == "1"
    ),
    "screening: all stages": lambda folder: (
        *screening(folder, lambda row: row["paper_pmid"] == "0097000007"),
        *("--stages", "title,abstract,fulltext", "--criteria-source", "llm"),
        *("--fulltext", sample("screening") / "fulltext"),
    ),
    "evidence: no positives": lambda folder: evidence(folder, lambda _: "0"),
    "evidence: one class": lambda folder: evidence(folder, lambda _: "1"),
    "evidence: a criterion without a positive": lambda folder: evidence(
        folder, lambda row: "0" if row["criterion"] == "A.1" else row["groundtruth"]
    ),
    "evidence: one positive": lambda folder: evidence(
        folder,
        lambda row: str(int((row["post_id"], row["sid"]) == ("post_01", "2"))),
    ),
    "evidence: two posts": lambda folder: evidence(
        folder,
        lambda row: row["groundtruth"],
        lambda post: post in {"post_01", "post_02"},
    ),
    "evidence: whole posts": lambda folder: (
        *evidence(folder, lambda _: "0"),
        *("--set", "batch=post"),
    ),
    "evidence: ranking by vectors": lambda folder: (
        *evidence(folder, lambda _: "1"),
        *("--tasks", "embed,rerank", "--embed-model", "baseline/lexical"),
    ),
    "paper: one paper": lambda folder: investigation(
        folder, lambda pmcid: pmcid == "PMC0000001"
    ),
    "paper: no questions": lambda folder: investigation(
        folder, lambda _: True, questions=lambda _: False
    ),
    "paper: nothing right": lambda folder: investigation(
        folder, lambda _: True, variants=lambda _: ["rs999999999"]
    ),
    "paper: one question": lambda folder: investigation(
        folder,
        lambda pmcid: pmcid == "PMC0000001",
        questions=lambda line: str(line.get("question_id")) == "1",
    ),
    "paper: questions alone": lambda folder: (
        *investigation(
            folder,
            lambda pmcid: pmcid == "PMC0000001",
            questions=lambda line: str(line.get("question_id")) == "1",
        ),
        *("--mode", "questions"),
    ),
    "paper: variants alone": lambda folder: (
        *investigation(folder, lambda _: True, variants=lambda _: ["rs999999999"]),
        *("--mode", "extract"),
    ),
    "review: one review": lambda folder: reviews(
        folder, lambda review: review if "CD990001" in json.dumps(review) else None
    ),
    "review: nothing to find": lambda folder: reviews(folder, _unfindable),
    "property: one row": lambda folder: properties(
        folder,
        lambda row: (
            row if row["label"] == "space group" and row["refno"] == "SL-001" else None
        ),
    ),
    "property: nothing right": lambda folder: properties(
        folder, lambda row: {**row, "property_value": "never so written"}
    ),
    "property: pairs of names": lambda folder: (
        *("property-extraction", "--mode", "verify"),
        *("--candidates", _one_pair(folder)),
        *("--truth", sample("property-extraction") / "truth.csv"),
    ),
    "property: other papers": lambda folder: properties(
        folder, lambda row: {**row, "refno": f"not-{row['refno']}"}
    ),
}
"""By name: makes the data in a folder and gives the words of the command line."""


def _one_pair(folder: Path) -> Path:
    seen: list[Row] = []

    def first(row: Row) -> Row | None:
        seen.append(row)
        return row if len(seen) == 1 else None

    source = sample("property-extraction") / "candidates.csv"
    return filtered(source, folder / "candidates.csv", first)


def _first(kind: str) -> str:
    path = sample("screening") / "set" / "validation_set.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return next(
            row["paper_pmid"]
            for row in csv.DictReader(file)
            if (row["review_pmid"], row["kind"]) == ("9800001", kind)
        )


def replies(folder: Path, text: str | None, run: Path) -> str:
    """A model that answers every first-stage task with *text*, or none at all."""
    path = folder / "replies.jsonl"
    keys = [("none", "none")]
    if text is not None:
        done = command(
            "tasks", "failed", "--runs-dir", run, "--json", "--limit", 100_000
        )
        told = [json.loads(line) for line in done.out.splitlines()]
        keys = [(task["stage"], task["key"]) for task in told]
    path.write_text(
        "".join(
            json.dumps({"stage": stage, "key": key, "response": text or ""}) + "\n"
            for stage, key in keys
        )
    )
    return f"recorded:{path}"


def scored(folder: Path, name: str, *words: object) -> None:
    """Run, score and explain; nothing may raise, and no figure may fail."""
    run = folder / "runs"
    done = command("run", *words, "--run-id", name, "--runs-dir", run)
    said = done.out + done.err
    assert "Traceback" not in said, said
    assert "figure could not be drawn" not in said, said
    assert done.code in {0, 3, 5}, said  # 3: tasks failed, 5: replies are useless
    assert (run / name / "scores" / "1" / "report.html").exists(), said
    task = json.loads(
        command(
            "tasks", name, "--runs-dir", run, "--json", "--limit", 1
        ).out.splitlines()[0]
    )
    shown = command("explain", name, task["key"], "--runs-dir", run)
    assert "Traceback" not in shown.err, shown.err


@pytest.mark.parametrize("case", DATA)
def test_degenerate_data_are_scored_whole(case: str, tmp_path: Path) -> None:
    words, run = DATA[case](tmp_path), tmp_path / "runs"
    scored(tmp_path, "failed", *words, "--model", replies(tmp_path, None, run))
    empty = replies(tmp_path, "{}", run)
    scored(tmp_path, "both", *words, "--model", empty, "--model", "baseline/lexical")
    told = command("compare", "failed", "both", "--runs-dir", run)
    assert "Traceback" not in told.err, told.err
