"""The commands score and scores: score the answers of a run, list its scorings.

Requested checks of a scoring run last, after everything is printed and written.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING, job_settings
from runner.cli.console import (
    CHECK_FAILED,
    DONE,
    print_json,
    print_note,
    print_raw,
    print_text,
    warn_of_loss,
)
from runner.cli.request import OutputOptions, output_options
from runner.errors import UsageError
from runner.scorecard import Scorecard
from store.document import as_text, wide_table
from store.nearest import did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel

    from runner.job import Job
    from runner.score.scoring import Scoring
    from store.events import RecordedEvent, ScoringRecorded
    from store.runs import RunFolder


@click.command(context_settings=ANY_SETTING)
@arguments.run_argument
@arguments.sets
@arguments.runs_dir
@click.option("--no-record", is_flag=True, help="Write no file and record no event.")
@arguments.at
@click.option(
    "--labels-from",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --gold labels: folder of label logs.  [default: RUN/labels]",
)
@arguments.strict
@click.option(
    "--fail-under",
    "least",
    multiple=True,
    metavar="[PATH=]X",
    help="Exit with 6 if the headline metric, or PATH, is below X or undefined; "
    "repeatable.",
)
@arguments.no_report
@arguments.figures
@arguments.output_dir
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="With --format: table to print, or 'metrics' for all metrics; "
    "repeatable.  [default: headline metrics and tables]",
)
@arguments.as_form
@arguments.as_json
@click.pass_context
def score(
    ctx: click.Context,
    /,
    run_name: str,
    no_record: bool,
    moment_name: str | None,
    sets: tuple[str, ...],
    runs_dir: Path,
    least: tuple[str, ...],
    labels_from: Path | None,
    **parameters: Any,
) -> int:
    """Score RUN's stored answers, under its own settings or changed ones.

    Give a setting of the job by its own flag; siftlog jobs JOB --all lists them. No
    model is called. For a live run, scores the finished part and records nothing. With
    --at, scores the answers of that moment under its settings and records nothing.

    With --gold labels, the truth is what people labelled: adjudicated values, and
    values on which all labels agree. Where they labelled whether replies are correct,
    the metric is the share of replies that are.
    """
    from runner.cli import run_steps
    from runner.errors import UsageError
    from runner.registry import job_of
    from runner.score import scoring
    from runner.score.render import headlines, metrics_json
    from store.database import open_reader
    from store.read.status import run_started
    from store.runs import resolve

    output = output_options(parameters)
    if output.tables and output.form == "text":
        raise UsageError("--table is for print: add --format markdown or latex.")
    under = floors(least)
    folder = resolve(runs_dir, run_name)
    if no_record or moment_name is not None:
        warn_of_loss(folder)
    else:
        folder.check_ends(accept_loss=False)
    with open_reader(folder.log) as reader:
        job = job_of(run_started(reader))
    typed = job_settings(ctx.args, sets)
    values: dict[str, Any] = {}
    console.relax_collector()
    if moment_name is not None:
        if output.output_dir is not None:
            raise UsageError(
                "score --at writes no file: leave out --output-dir, or take > FILE."
            )
        run_scoring, values = _scored_back(job, folder, typed, moment_name)
    else:
        with _truth(job, folder, typed, labels_from, is_recorded=not no_record) as used:
            run_scoring = asyncio.run(
                scoring.score_run(
                    job,
                    folder,
                    used,
                    clock=run_steps.CLOCK,
                    record=not no_record,
                    report=not output.no_report,
                    figures=output.figures,
                )
            )
    for sentence in _remarks(run_scoring, folder, is_past=moment_name is not None):
        print_note(sentence)
    card = run_scoring.scorecard
    if output.as_json:
        print_json(
            "siftlog.score/1",
            {
                "run": folder.run_id,
                "scoring": run_scoring.number,
                "job": run_scoring.job,
                "headlines": headlines(card),
                "seq": run_scoring.seq,
                "ended": run_scoring.ended,
                "models": metrics_json(card),
                "settings": dict(card.settings),
                "missing": card.missing,
                "stale": card.stale,
                "failures": list(card.failures),
                "partial": run_scoring.is_partial,
                "digest": run_scoring.digest,
                "artifacts": list(run_scoring.artifacts),
                **values,
            },
        )
    run_steps.deliver_files(run_scoring, output)
    if not output.as_json:
        _show_scoring(folder, run_scoring, output)
    failed = list(run_steps.failed_checks(card, strict=output.strict))
    for floor in under:
        failed += _below(card, floor)
    for sentence in failed:
        print_note(f"siftlog: {sentence}")
    return CHECK_FAILED if failed else DONE


FROM_LABELS = ["labels"]
"""Value of --gold that means the labels of people instead of a file."""


@contextmanager
def _truth(
    job: Job,
    folder: RunFolder,
    typed: dict[str, list[str]],
    labels_from: Path | None,
    *,
    is_recorded: bool,
) -> Iterator[BaseModel]:
    """Return the settings of a scoring, with a truth from labels if it is wanted."""
    from runner.score import scoring
    from runner.score.label_gold import gold_settings

    if typed.get("gold") != FROM_LABELS:
        if labels_from is not None:
            raise UsageError("--labels-from says where labels are: add --gold labels.")
        yield scoring.effective_settings(job, folder, typed)
        return
    del typed["gold"]
    settings = scoring.effective_settings(job, folder, typed)
    with gold_settings(
        job, folder, settings, labels=labels_from, is_recorded=is_recorded
    ) as (used, gold):
        print_note(f"{gold.sentence}.")
        yield used


def _show_scoring(
    folder: RunFolder, run_scoring: Scoring, output: OutputOptions
) -> None:
    """Print the tables for print; or all of the summary, the files, next commands."""
    from runner.cli.run_steps import CLOCK
    from runner.cli.status_page import closing_facts
    from runner.score.render import (
        overview,
        print_tables,
        result_of,
        severe_findings,
        severe_line,
    )
    from runner.table_rendering import typeset
    from store.database import open_reader
    from store.read.live import live_status
    from store.read.next_steps import next_commands

    card = run_scoring.scorecard
    if output.form != "text":
        print_raw(typeset(print_tables(card, output.tables), output.form))
        return
    if first := overview(card):
        print_text(typeset(first, "text"))
        print_text("")
    print_text(card.summary)
    with open_reader(folder.log) as reader:
        seen = live_status(reader, CLOCK.now_us(), is_held=folder.is_alive())
    findings = (
        *severe_findings(card, card.summary),
        *map(severe_line, run_scoring.findings),
    )
    commands = [
        command
        for command in next_commands(seen, folder.run_id, result_of(card).explain)
        if not command.line.startswith("siftlog score ")  # it has just been done
    ]
    print_text(as_text(closing_facts(findings, run_scoring.folder, commands)))


def _scored_back(
    job: Job,
    folder: RunFolder,
    typed: Mapping[str, Sequence[str]],
    moment_name: str,
) -> tuple[Scoring, dict[str, Any]]:
    """Score the answers of an earlier moment; return it with that moment."""
    from runner.cli import run_steps
    from runner.cli.progress import moment_json, moment_text, time_travel
    from runner.fingerprint import input_hashes
    from runner.score import scoring

    with time_travel(folder, moment_name, run_steps.CLOCK) as (moment, reader):
        settings = scoring.settings_in(job, reader, typed)
        inputs = input_hashes(job.inputs(settings))
        run_scoring = scoring.replayed(
            job, reader, settings, inputs, through_seq=moment.seq
        )
    print_note(
        f"{folder.run_id} {moment_text(moment)}: an earlier state, not recorded."
    )
    return run_scoring, moment_json(moment)


def _partial_sentence(folder: RunFolder, *, is_past: bool) -> str:
    """Say that a run goes on or has stopped, what of it is scored, and what to do."""
    from runner.cli.run_steps import CLOCK
    from store.database import open_reader
    from store.read.forecast import progress_text
    from store.read.live import live_status

    run = folder.run_id
    if is_past:
        return f"partial: {run} was unfinished then; only its answers are scored."
    is_held = folder.is_alive()
    with open_reader(folder.log) as reader:
        present = live_status(reader, CLOCK.now_us(), is_held=is_held)
    done = f"{progress_text(present.progress)}, and only these tasks are scored"
    if is_held:
        return (
            f"partial: {run} is still running: {done}. Nothing is recorded; the run is "
            f"scored at its end. To follow it: siftlog watch {run}"
        )
    return f"partial: {run} is unfinished: {done}. To continue: siftlog resume {run}"


def _remarks(
    run_scoring: Scoring, folder: RunFolder, *, is_past: bool
) -> Iterator[str]:
    """Yield notes on a scoring: of an unfinished run, and on its inputs."""
    if run_scoring.is_partial:
        yield _partial_sentence(folder, is_past=is_past)
    for setting in run_scoring.changed_settings:
        yield f"note: {setting} is not the file that the run was started with."
    for fault in run_scoring.parser_faults:
        yield (
            f"note: a parser raised {fault}; such replies count as "
            "unparsed (parser_error). Fix it and score again, without "
            "a call."
        )
    if run_scoring.scorecard.missing:
        yield (
            f"note: {run_scoring.scorecard.missing:,} answers that "
            "these settings need are missing from the run; results "
            "that need them are left out."
        )
    if run_scoring.scorecard.stale:
        yield (
            f"note: {run_scoring.scorecard.stale:,} answers of the run "
            "are stale: these settings do not use them."
        )


DIGITS = 12
"""Displayed digits of a digest."""

_HEADERS = (
    "scoring",
    "recorded (UTC)",
    "event",
    "digest",
    "headline",
    "against before",
)


@click.command()
@arguments.run_argument
@arguments.runs_dir
@arguments.as_json
def scores(run_name: str, runs_dir: Path, as_json: bool) -> int:
    """List RUN's recorded scorings, oldest first.

    Shows for each scoring the last event it read, the digest of its scorecard, its
    headline metric, and changes since the previous one: settings, inputs, code. The
    same log, settings, inputs and code give the same digest.
    """
    from store.database import open_reader
    from store.events import ScoringRecorded
    from store.read.tasks import events
    from store.runs import resolve
    from store.tables import visible_seq

    folder = resolve(runs_dir, run_name)
    lines = []
    before: ScoringRecorded | None = None
    with open_reader(folder.log) as reader:
        most = visible_seq(reader)
        for recorded in events(reader, limit=most, kinds=["scoring_recorded"]):
            if not isinstance(recorded.event, ScoringRecorded):
                print_note(
                    f"event {recorded.seq} records a scoring of a later siftlog."
                )
                continue
            values = _values(recorded, recorded.event, before)
            if as_json:
                print_json("siftlog.scoring/1", values)
            lines.append(_cells(values))
            before = recorded.event
    if not as_json and lines:
        print_text(as_text([wide_table(_HEADERS, lines)]))
    if not lines:
        print_note(
            f"Run {folder.run_id} has no scoring; make one with: "
            f"siftlog score {folder.run_id}"
        )
    return DONE


def _values(
    recorded: RecordedEvent, event: ScoringRecorded, before: ScoringRecorded | None
) -> dict[str, Any]:
    when = datetime.fromtimestamp(recorded.ts_us / 1e6, UTC)
    return {
        "scoring": event.number,
        "recorded": when.isoformat(timespec="seconds"),
        "seq": event.seq,
        "digest": event.digest,
        "headline": event.headline,
        "reached": event.reached,
        "job_version": event.job_version,
        "code": event.code_sha256,
        "definitions": event.definitions,
        "settings": json.loads(event.settings),
        "inputs": [
            {
                "setting": recorded_input.setting,
                "path": recorded_input.path,
                "sha256": recorded_input.sha256,
                "kept": bool(recorded_input.kept),
            }
            for recorded_input in event.inputs
        ],
        "changed": None if before is None else changed(before, event),
    }


def changed(before: ScoringRecorded, event: ScoringRecorded) -> dict[str, Any]:
    """Return differences between two scorings in settings, inputs and code."""
    old, new = json.loads(before.settings), json.loads(event.settings)
    # paths of inputs are ignored: their content counts
    inputs = {
        recorded_input.setting for recorded_input in (*before.inputs, *event.inputs)
    }
    was, now = _hashes(before), _hashes(event)
    return {
        "settings": {
            name: [old.get(name), new.get(name)]
            for name in sorted({*old, *new} - inputs)
            if old.get(name) != new.get(name)
        },
        "inputs": [name for name in sorted(inputs) if was.get(name) != now.get(name)],
        "seq": event.seq - before.seq,
        "code": before.code_sha256 != event.code_sha256,
        "definitions": before.definitions != event.definitions,
    }


def _hashes(event: ScoringRecorded) -> dict[str, list[str]]:
    hashes: dict[str, list[str]] = {}
    for recorded_input in event.inputs:
        hashes.setdefault(recorded_input.setting, []).append(recorded_input.sha256)
    return hashes


def _cells(values: dict[str, Any]) -> tuple[str, ...]:
    reached = (
        f"{'n/a' if value is None else f'{value:.4g}'}"
        for value in values["reached"].values()
    )
    return (
        str(values["scoring"]),
        values["recorded"].removesuffix("+00:00"),
        str(values["seq"]),
        values["digest"][:DIGITS],
        f"{values['headline']} {' '.join(reached)}".strip() or "-",
        ", ".join(_change_phrases(values["changed"])) or "-",
    )


def _change_phrases(changes: dict[str, Any] | None) -> Iterator[str]:
    if changes is None:
        return
    for name, (old, new) in changes["settings"].items():
        yield f"{name} {_word(old)} -> {_word(new)}"
    yield from (f"another {name}" for name in changes["inputs"])
    if changes["code"]:
        yield "other code"
    if changes["definitions"]:
        yield "other definitions"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Minimum value of a metric."""

    path: str  #: empty: the job's headline metric
    least: float


def floors(texts: Sequence[str]) -> tuple[Floor, ...]:
    """Parse `--fail-under` values, each `X` or `PATH=X`.

    Raises:
        UsageError: a value has no number.
    """
    return tuple(map(_floor, texts))


def _floor(text: str) -> Floor:
    path, _, number = text.rpartition("=")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if not math.isfinite(least):
        raise UsageError(
            f"--fail-under {text}: write a number, or PATH=NUMBER for a metric."
        )
    return Floor(path=path, least=least)


def _below(card: Scorecard, floor: Floor) -> Iterator[str]:
    path = floor.path or card.headline
    if not path:
        yield "This scoring has no headline metric; write --fail-under PATH=NUMBER."
        return
    model_values = [
        (model, metric.value)
        for model, metrics in card.models.items()
        for metric in metrics
        if metric.path == path
    ]
    if not model_values:
        paths = {metric.path for metrics in card.models.values() for metric in metrics}
        hint = did_you_mean(
            path, sorted(paths), "siftlog score RUN --json lists them.", limit=2
        )
        yield f"There is no metric {path}; {hint}"
    for model, value in model_values:
        if value is None:
            yield f"{path} of {model} is undefined, where {floor.least:g} is the least."
        elif value < floor.least:
            yield f"{path} of {model} is {value!r}, below {floor.least:g}."
