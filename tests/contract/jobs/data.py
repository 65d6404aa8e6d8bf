"""Copies of the shipped samples with something changed, and the options that name them.

Each builder writes into a folder and returns the words of a command line, from the job
on. An edit gets a row or a line, and gives what stands in its place, or None.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jobs
from tests.jobs.ask.make_sample import PAPERS

Row: TypeAlias = dict[str, str]
Words: TypeAlias = tuple[object, ...]
Edit: TypeAlias = Callable[[Any], Any]


def same(value: Any) -> Any:
    """No edit."""
    return value


def sample(job: str) -> Path:
    """The data that ship with a job."""
    return Path(jobs.__file__).parent / job.replace("-", "_") / "sample"


def edited_csv(source: Path, target: Path, edit: Edit) -> Path:
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


def edited_lines(source: Path, target: Path, edit: Edit) -> Path:
    """A copy of a JSONL file with some lines changed or left out."""
    lines = map(edit, map(json.loads, source.read_text("utf-8").splitlines()))
    kept = "".join(f"{json.dumps(line)}\n" for line in lines if line is not None)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(kept)
    return target


def edited_texts(source: Path, target: Path, edit: Edit) -> Path:
    """A copy of a folder of plain texts, each changed."""
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_text(edit(path.read_text("utf-8")), "utf-8")
    return target


def screening(folder: Path, records: Edit, texts: Edit = same) -> Words:
    """The sample's set, with other records or texts."""
    source, made = sample("screening") / "set", folder / "set"
    shutil.copytree(source, made)
    edited_csv(source / "validation_set.csv", made / "validation_set.csv", records)
    for name in ("papers.jsonl", "reviews.jsonl"):
        edited_lines(source / name, made / name, texts)
    manifest = json.loads((made / "manifest.json").read_text())
    for name in manifest["files"]:
        digest = hashlib.sha256((made / name).read_bytes()).hexdigest()
        manifest["files"][name] = digest
    (made / "manifest.json").write_text(json.dumps(manifest))
    return ("screening", "--validation-set", made, "--title-criteria")


def evidence(
    folder: Path,
    judge: Callable[[Row], str],
    posts: Callable[[str], bool] = lambda _: True,
    texts: Edit = same,
) -> Words:
    """The sample's posts, with other judgements or texts, or some posts only."""
    source = sample("evidence-retrieval")

    def judged(row: Row) -> Row | None:
        return {**row, "groundtruth": judge(row)} if posts(row["post_id"]) else None

    def kept(line: Any) -> Any:
        return texts(line) if posts(line["post_id"]) else None

    criteria = json.loads((source / "criteria.json").read_text("utf-8"))
    criteria["criteria"] = [*map(texts, criteria["criteria"])]
    (folder / "criteria.json").write_text(json.dumps(criteria))
    gold = edited_csv(source / "gold.csv", folder / "gold.csv", judged)
    named = edited_csv(source / "posts.csv", folder / "posts.csv", kept)
    split = edited_lines(source / "sentences.jsonl", folder / "sentences.jsonl", kept)
    return (
        "evidence-retrieval",
        *("--posts", named, "--sentences", split, "--gold", gold),
        *("--criteria", folder / "criteria.json", "--n-folds", 2),
    )


def investigation(
    folder: Path, papers: Edit = same, questions: Edit = same, texts: Edit = same
) -> Words:
    """The sample's papers, with other lines of the bench, questions or texts."""
    source, asked = sample("paper-investigation"), folder / "questions"
    name = "variant_bench.jsonl"
    bench = edited_lines(source / name, folder / name, papers)
    for path in sorted((source / "questions").rglob("*.jsonl")):
        edited_lines(path, asked / path.relative_to(source / "questions"), questions)
    read = edited_texts(source / "papers", folder / "papers", texts)
    return (
        "paper-investigation",
        *("--bench", bench, "--papers", read, "--questions", asked),
    )


def reviews(folder: Path, edit: Edit) -> Words:
    """The sample's reviews, some of them or changed."""
    source, truth = sample("review-benchmark"), folder / "truth"
    truth.mkdir()
    for path in sorted((source / "truth").glob("*.json")):
        review = edit(json.loads(path.read_text()))
        if review is not None:
            (truth / path.name).write_text(json.dumps(review))
    return (
        "review-benchmark",
        *("--truth", truth, "--database", source / "papers.db"),
    )


def properties(folder: Path, truth: Edit, texts: Edit = same) -> Words:
    """The sample's papers, with other curated values or texts."""
    source = sample("property-extraction")
    curated = edited_csv(source / "truth.csv", folder / "truth.csv", truth)
    read = edited_texts(source / "papers", folder / "papers", texts)
    return (
        "property-extraction",
        *("--papers", read, "--truth", curated, "--rubric", source / "rubric.csv"),
    )


TREATMENTS = """id,paper,text,drug,dose
a1,p1,Warfarin 5 mg daily.,warfarin,5
a2,p1,Given aspirin at 100 mg.,aspirin,100
b1,p2,They received insulin.,insulin,
b2,p2,No treatment.,,
"""


def asking(folder: Path, gold: Edit = same, texts: Edit = same) -> Words:
    """The sample as plain texts, with other right values or texts."""
    source, papers = sample("ask"), folder / "papers"
    papers.mkdir()
    for path in sorted((source / "papers").iterdir()):
        is_pdf = path.suffix == ".pdf"
        text = "\n".join(PAPERS[path.name]) if is_pdf else path.read_text("utf-8")
        (papers / f"{path.stem}.txt").write_text(texts(text), "utf-8")
    edited_csv(source / "gold.csv", folder / "gold.csv", gold)
    shutil.copy(source / "recipe.toml", folder)
    return ("ask", "--recipe", folder / "recipe.toml")


def prompted(folder: Path, edit: Edit = same) -> Words:
    """The sample's prompts with their replies, some changed."""
    source = sample("replies") / "replies.jsonl"
    return "replies", "--rows", edited_lines(source, folder / "replies.jsonl", edit)


def treatments(folder: Path, edit: Edit = same) -> Words:
    """The rows of the example job."""
    source = folder / "all.csv"
    source.write_text(TREATMENTS)
    rows = edited_csv(source, folder / "rows.csv", edit)
    return ("treatments", "--rows", rows)
