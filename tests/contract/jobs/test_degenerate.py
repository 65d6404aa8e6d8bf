"""Data that leave metrics nothing to divide by go through every job's whole output.

No positives, one class, one item, one model, replies that all fail or say nothing:
each must end in a scoring with its files, report and figures, and in no finding that a
figure failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.report import figures
from runner.scorecard import Figure
from tests.commands import command
from tests.contract.jobs.data import (
    Edit,
    Row,
    Words,
    edited_csv,
    evidence,
    investigation,
    properties,
    reviews,
    sample,
    screening,
    treatments,
)
from tests.contract.jobs.jobs import SampleRun, run


def only(**cells: str) -> Edit:
    """Leaves the rows with these cells."""
    return lambda row: row if cells.items() <= row.items() else None


def gold(row: Row) -> str:
    return row["groundtruth"]


def unfindable(review: Any) -> Any:
    """A review none of whose studies is among the papers."""
    truth = review.get("ground_truth", review)
    for name, value in list(truth.items()):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            truth[name] = [
                {"title": f"A study of nothing in particular, part {place}"}
                for place, _ in enumerate(value)
            ]
    return review


def one_pair(folder: Path) -> Path:
    """The first pair of names."""
    rows = iter([True])
    source = sample("property-extraction") / "candidates.csv"
    target = folder / "candidates.csv"
    return edited_csv(source, target, lambda row: row if next(rows, None) else None)


ONE_RECORD = only(paper_pmid="0097000007")
ONE_PAPER = only(pmcid="PMC0000001")


def missed(paper: Any) -> Any:
    """A paper of the bench none of whose variants can be found."""
    return {**paper, "variants": ["rs999999999"]}


def one_question(line: Any) -> Any:
    return line if str(line.get("question_id")) == "1" else None


DATA: Mapping[str, Callable[[Path], Words]] = {
    "screening: one record, included": partial(screening, records=ONE_RECORD),
    "screening: one record, excluded": partial(
        screening, records=only(review_pmid="9800001", paper_pmid="97000062")
    ),
    "screening: no positives": partial(screening, records=only(label="0")),
    "screening: no negatives": partial(screening, records=only(label="1")),
    "screening: all stages": lambda folder: (
        *screening(folder, ONE_RECORD),
        *("--stages", "title,abstract,fulltext", "--criteria-source", "llm"),
        *("--fulltext", sample("screening") / "fulltext"),
    ),
    "evidence: no positives": partial(evidence, judge=lambda _: "0"),
    "evidence: one class": partial(evidence, judge=lambda _: "1"),
    "evidence: a criterion without a positive": partial(
        evidence, judge=lambda row: "0" if row["criterion"] == "A.1" else gold(row)
    ),
    "evidence: one positive": partial(
        evidence,
        judge=lambda row: str(int((row["post_id"], row["sid"]) == ("post_01", "2"))),
    ),
    "evidence: two posts": partial(
        evidence, judge=gold, posts=lambda post: post in {"post_01", "post_02"}
    ),
    "evidence: whole posts": lambda folder: (
        *evidence(folder, lambda _: "0"),
        *("--set", "batch=post"),
    ),
    "evidence: ranking by vectors": lambda folder: (
        *evidence(folder, lambda _: "1"),
        *("--tasks", "embed,rerank", "--embed-model", "baseline/lexical"),
    ),
    "paper: one paper": partial(investigation, papers=ONE_PAPER),
    "paper: no questions": partial(investigation, questions=lambda _: None),
    "paper: nothing right": partial(investigation, papers=missed),
    "paper: one question": partial(
        investigation, papers=ONE_PAPER, questions=one_question
    ),
    "paper: questions alone": lambda folder: (
        *investigation(folder, ONE_PAPER, one_question),
        *("--mode", "questions"),
    ),
    "paper: variants alone": lambda folder: (
        *investigation(folder, missed),
        *("--mode", "extract"),
    ),
    "review: one review": partial(
        reviews,
        edit=lambda review: review if "CD990001" in json.dumps(review) else None,
    ),
    "review: nothing to find": partial(reviews, edit=unfindable),
    "property: one row": partial(
        properties, truth=only(label="space group", refno="SL-001")
    ),
    "property: nothing right": partial(
        properties, truth=lambda row: {**row, "property_value": "never so written"}
    ),
    "property: pairs of names": lambda folder: (
        *("property-extraction", "--mode", "verify", "--candidates", one_pair(folder)),
        *("--truth", sample("property-extraction") / "truth.csv"),
    ),
    "property: other papers": partial(
        properties, truth=lambda row: {**row, "refno": f"not-{row['refno']}"}
    ),
    "treatments: one row": partial(treatments, edit=only(id="a1")),
    "treatments: no truth": partial(
        treatments, edit=lambda row: {**row, "drug": "", "dose": ""}
    ),
}
"""By name: makes the data in a folder and gives the words of the command line."""


def replies(folder: Path, text: str, failed: SampleRun | None) -> str:
    """A model that answers each task that *failed* with *text*, or none at all."""
    path = folder / "replies.jsonl"
    keys = [("none", "none")]
    if failed is not None:
        keys = [(task["stage"], task["key"]) for task in failed.tasks()]
    path.write_text(
        "".join(
            json.dumps({"stage": stage, "key": key, "response": text}) + "\n"
            for stage, key in keys
        )
    )
    return f"recorded:{path.name}"


def scored(folder: Path, name: str, *words: object) -> SampleRun:
    """Run, score and explain; nothing may raise, and no figure may fail."""
    made = run(folder, *words, name=name)
    said = made.done.out + made.done.err
    assert "figure could not be drawn" not in said, said
    assert made.done.code in {0, 3, 5}, said  # 3: tasks failed, 5: replies are useless
    assert (made.scoring() / "report.html").exists(), said
    shown = made.command("explain", made.tasks()[0]["key"])
    assert "Traceback" not in shown.err, shown.err
    return made


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[bytes]]:
    """The files of each figure that was drawn, by what it shows."""
    return {}


@pytest.fixture
def _each_figure_once(
    one_format: None, drawn: dict[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws once what several data show: the second time nothing else can fail."""
    del one_format
    save = figures._save

    def once(
        figure: Figure, folder: Path, formats: Sequence[figures.FigureFormat]
    ) -> None:
        shown = repr((figure.panels, figure.columns))
        files = [folder / f"{figure.name}.{suffix}" for suffix in formats]
        if shown not in drawn:
            save(figure, folder, formats)
            drawn[shown] = [file.read_bytes() for file in files]
        for file, content in zip(files, drawn[shown], strict=True):
            file.write_bytes(content)

    monkeypatch.setattr(figures, "_save", once)


@pytest.mark.usefixtures("_each_figure_once")
@pytest.mark.parametrize("case", DATA)
def test_degenerate_data_are_scored_whole(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = DATA[case](tmp_path)
    refused = replies(tmp_path, "", None)
    failed = scored(tmp_path, "failed", *words, "--model", refused)
    empty = replies(tmp_path, "{}", failed)
    scored(tmp_path, "both", *words, "--model", empty, "--model", "baseline/lexical")
    compared = command("compare", "failed", "both", "--runs-dir", failed.runs)
    assert "Traceback" not in compared.err, compared.err
