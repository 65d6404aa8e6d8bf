"""Files of work made elsewhere, written, read and scored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.kit.testing import MemoryAnswers
from jobs.paper_investigation.importer import importer
from jobs.paper_investigation.inputs import load
from jobs.paper_investigation.score import score
from jobs.paper_investigation.settings import InvestigationSettings
from runner.job import ImportedAnswer
from runner.scorecard import Metric, Scorecard


def write(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(*files: Path, **options: Any) -> list[ImportedAnswer]:
    settings = options.pop("settings", InvestigationSettings())
    chosen = {"model": None, "form": None, "replicates": {}, **options}
    return list(importer.read(files, settings, **chosen))


def scored(*files: Path, settings: InvestigationSettings | None = None) -> Scorecard:
    settings = settings or InvestigationSettings()
    answers = MemoryAnswers.of_import(read(*files, settings=settings))
    return score(load(settings), answers)


def metrics(card: Scorecard) -> dict[str, Metric]:
    (found,) = card.models.values()
    return {metric.path: metric for metric in found}


CHOICE = {
    "question_id": 7,
    "pmcid": "PMC1",
    "blanked_sentence": "______ was studied.",
    "option_a": "w",
    "option_b": "x",
    "option_c": "y",
    "option_d": "z",
    "correct_answer": "B ",
    "response": "b",
    "model": "lab/one",
    "correct": True,
}
