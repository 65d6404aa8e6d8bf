"""Inputs of a few lines for whole runs, and what such a run leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

JOB = "paper-investigation"
ENGINE = ("--run-id=r", "--model=m", "--concurrency=1")

Rows = Sequence[Mapping[str, Any]]


def question(name: str, pmcid: str, variant: str, **changes: Any) -> dict[str, Any]:
    """A multiple-choice row that a prompt can be known by; its key is b."""
    return {
        "question_id": name,
        "pmcid": pmcid,
        "variant": variant,
        "blanked_sentence": f"______ is the gap of question {name}.",
        "option_a": "aspirin",
        "option_b": "warfarin",
        "option_c": "heparin",
        "option_d": "digoxin",
        "correct_answer": "B ",
        **changes,
    }


def inputs(folder: Path, bench: Mapping[str, list[str]], questions: Rows) -> list[str]:
    """Write the inputs of a run, and give the options that name them."""
    papers = folder / "papers"
    papers.mkdir()
    for pmcid in bench:
        (papers / f"{pmcid}.md").write_text(f"# Paper {pmcid}\n\nIts text.\n")
    rows = [{"pmcid": pmcid, "variants": names} for pmcid, names in bench.items()]
    return [
        f"--bench={write_rows(folder / 'bench.jsonl', rows)}",
        f"--papers={papers}",
        f"--mcq-drug={write_rows(folder / 'drug.jsonl', questions)}",
        "--pipelines=mcq_drug",
        "--boot-b=50",
    ]


def write_rows(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def is_about(name: str, prompt: str) -> bool:
    return f"the gap of question {name}." in prompt


def listing(*variants: str) -> Callable[[str], str | int]:
    """A model that lists *variants* for every paper and picks b in every question."""
    return lambda prompt: "b" if "<question-" in prompt else json.dumps(variants)


def scorecard(cwd: Path, scoring: int, run: str = "r") -> dict[str, Any]:
    path = cwd / "runs" / run / "scores" / str(scoring) / "scorecard.json"
    return json.loads(path.read_bytes())


def values(card: dict[str, Any], model: str = "m") -> dict[str, float | None]:
    metrics = card["models"][model]["metrics"]
    return {path: metric["value"] for path, metric in metrics.items()}
