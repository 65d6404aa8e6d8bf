"""A parser that trips over stored replies leaves them unparsed and scores the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.registry import load_job
from runner.score.scoring import effective_settings, replayed
from runner.scorecard import Verdict
from store.database import open_reader
from store.runs import RunFolder
from store.tables import last_seq
from tests.processes import siftlog

INNER = {
    "screening": ("jobs.screening.parsing.objects",),
    "property-extraction": ("jobs.property_extraction.parsing._whole",),
    "evidence-retrieval": ("jobs.evidence_retrieval.parsing.first_object",),
    "review-benchmark": ("jobs.review_benchmark.parsing.objects",),
    "paper-investigation": (
        "jobs.paper_investigation.parsing.arrays",
        "jobs.paper_investigation.parsing.last_object",
        "jobs.paper_investigation.parsing.last_object",
        "jobs.paper_investigation.parsing.objects",
    ),
}
"""What the parsers of a job call first."""


def _raises(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("name", INNER)
def test_scoring_counts_what_a_raising_parser_leaves_as_unparsed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    siftlog("generate", name, "--run-id", "r", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    job = load_job(name)
    folder = RunFolder(tmp_path / "runs" / "r")
    settings = effective_settings(job, folder, {})

    def scored() -> tuple[set[str], tuple[str, ...]]:
        with open_reader(folder.log) as reader:
            made = replayed(job, reader, settings, [], through_seq=last_seq(reader))
            details = list(made.scorecard.details)
        rules = {each.rule for each in details if isinstance(each, Verdict)}
        return rules, made.parser_faults

    rules, faults = scored()
    assert "parser_error" not in rules
    assert faults == ()
    for inner in INNER[name]:
        monkeypatch.setattr(inner, _raises)
    rules, faults = scored()
    assert "parser_error" in rules
    package = f"jobs/{name.replace('-', '_')}"
    place = rf"ZeroDivisionError at {package}/[\w/]+\.py:\d+"
    assert all(re.fullmatch(place, fault) for fault in faults), faults
    assert faults
