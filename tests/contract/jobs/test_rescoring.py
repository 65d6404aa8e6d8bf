"""Scoring reads the log alone: the same bytes each time, by any version of a parser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.score.scoring import Scoring, effective_settings, replayed
from runner.scorecard import Verdict
from store.database import open_reader
from store.runs import RunFolder
from store.tables import last_seq
from tests.contract.jobs.jobs import QUIET, JobCase, SampleRun, SampleRuns
from tests.jobs.conftest import unworded

OWN = {"report.html", "operations.json", "verdicts.db"}
"""Files that name the scoring, or hold how a database came about."""


def files(folder: Path) -> dict[str, bytes]:
    """What a scoring wrote, by path, without figures."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in OWN and path.parent.name != "figures"
    }


def test_scoring_again_writes_the_same_bytes_and_calls_nobody(
    case: JobCase, sample_runs: SampleRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sample_runs.of(case)
    monkeypatch.setattr(case.job, "baseline", _raises)
    monkeypatch.setattr(case.job, "request", _raises)
    done = run.command("score", *QUIET)
    assert done.code == 0, done.err
    numbers = sorted(int(each.name) for each in run.scoring().parent.iterdir())
    before, again = files(run.scoring()), files(run.scoring(numbers[-1]))
    assert len(before) > 3
    assert before.keys() == again.keys()
    assert [name for name in before if before[name] != again[name]] == []


def _raises(*_: object) -> None:
    raise ZeroDivisionError


def replay(case: JobCase, run: SampleRun) -> tuple[set[str], Scoring]:
    """The rules that read replies, and the scoring itself."""
    folder = RunFolder(run.runs / run.name)
    settings = effective_settings(case.job, folder, {})
    with open_reader(folder.log) as reader:
        made = replayed(case.job, reader, settings, [], through_seq=last_seq(reader))
        details = list(made.scorecard.details)
    return {each.rule for each in details if isinstance(each, Verdict)}, made


def test_a_parser_that_raises_leaves_replies_unparsed_and_the_rest_scored(
    case: JobCase, sample_runs: SampleRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sample_runs.of(case)
    rules, made = replay(case, run)
    assert "parser_error" not in rules
    assert made.parser_faults == ()
    for reader in case.readers:
        monkeypatch.setattr(reader, _raises)
    rules, made = replay(case, run)
    assert "parser_error" in rules
    # replies has the parser of the kit; treatments, a job of one file, is placed there
    package = {"replies": "jobs/kit", "treatments": "tests"}.get(
        case.name, f"jobs/{case.name.replace('-', '_')}"
    )
    place = re.compile(rf"ZeroDivisionError at {package}/[\w/]+\.py:\d+")
    assert [fault for fault in made.parser_faults if not place.fullmatch(fault)] == []
    assert made.parser_faults


def test_every_metric_has_words_and_a_definition(
    case: JobCase, sample_runs: SampleRuns
) -> None:
    """Of runs that other tests make, `tests.jobs.conftest` checks the same."""
    _, made = replay(case, sample_runs.of(case))
    card = made.scorecard
    assert unworded(card) == []
    metrics = [metric for own in card.models.values() for metric in own]
    assert all(metric.definition for metric in metrics)
    assert any(metric.is_headline for metric in metrics)
