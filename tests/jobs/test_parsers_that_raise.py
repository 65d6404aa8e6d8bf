"""A parser that trips over stored replies leaves them unparsed and scores the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.records.scoring import effective_settings, replayed
from runner.registry import load_job
from runner.scorecard import Verdict
from store.runs import RunFolder
from store.views import last_seq, open_reader
from tests.processes import siftlog

INNER = {
    "screening": ("screen.objects",),
    "property-extraction": ("extraction._whole",),
    "evidence-retrieval": ("assess.first_object",),
    "review-benchmark": ("score.objects",),
    "paper-investigation": (
        "lists.arrays",
        "letters.last_object",
        "study.last_object",
        "batch.objects",
    ),
}
"""What the parsers of a job call first, in modules of its `parsing`."""


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
            made = replayed(job, reader, settings, [], upto=last_seq(reader))
            details = list(made.scorecard.details)
        rules = {each.rule for each in details if isinstance(each, Verdict)}
        return rules, made.parser_faults

    rules, faults = scored()
    assert "parser_error" not in rules
    assert faults == ()
    package = f"jobs.{name.replace('-', '_')}.parsing"
    for inner in INNER[name]:
        monkeypatch.setattr(f"{package}.{inner}", _raises)
    rules, faults = scored()
    assert "parser_error" in rules
    place = rf"ZeroDivisionError at {package.replace('.', '/')}/\w+\.py:\d+"
    assert all(re.fullmatch(place, fault) for fault in faults), faults
    assert faults
