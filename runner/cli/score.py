"""The command score: scores a run's stored answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices, collector
from runner.cli.choices import ANY_SETTING
from runner.cli.speech import CHECK_FAILED, DONE, record, say_loss, tell
from runner.cli.words import job_settings

if TYPE_CHECKING:
    from runner.job import Job
    from runner.records.scoring import Scoring
    from store.runs import RunFolder


@click.command(context_settings=ANY_SETTING)
@choices.run_argument
@choices.sets
@choices.runs_dir
@click.option("--no-record", is_flag=True, help="Write no file and no event.")
@choices.at
@choices.strict
@click.option(
    "--fail-under",
    "least",
    multiple=True,
    metavar="[PATH=]X",
    help="Exit with 6 if the headline metric, or PATH, is below X or undefined; "
    "repeatable.",
)
@choices.no_report
@choices.output_dir
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="With --format: print that table of the scoring, or 'metrics' for all "
    "metrics; repeatable.  [default: headline metrics, headline tables]",
)
@choices.as_form
@choices.as_json
@click.pass_context
def score(
    ctx: click.Context,
    /,
    run_name: str,
    no_record: bool,
    moment_name: str | None,
    strict: bool,
    least: tuple[str, ...],
    **given: Any,
) -> int:
    """Score RUN's stored answers, under its own settings or changed ones.

    Every setting of the job may be given by its own flag; siftlog jobs JOB lists them.
    No model is called. While the run is alive its finished part is scored, and nothing
    is recorded. With --at the answers of then are scored, under the settings of then;
    that is never recorded.
    """
    from runner.cli import checks, session
    from runner.errors import UsageError
    from runner.records import scoring
    from runner.records.render import headlines, metrics_json
    from runner.registry import load_job
    from store.database import open_reader
    from store.read.status import run_started
    from store.runs import resolve

    if given["tables"] and given["form"] == "text":
        raise UsageError("--table is for print: add --format markdown or latex.")
    under = checks.floors(least)
    folder = resolve(given["runs_dir"], run_name)
    if no_record or moment_name is not None:
        say_loss(folder)
    else:
        folder.check_ends(accept_loss=False)
    with open_reader(folder.log) as reader:
        job = load_job(run_started(reader).job)
    typed = job_settings(ctx.args, given["sets"])
    values: dict[str, Any] = {}
    collector.calm()
    if moment_name is not None:
        made, values = _scored_back(job, folder, typed, moment_name, given)
    else:
        made = asyncio.run(
            scoring.score(
                job,
                folder,
                scoring.effective_settings(job, folder, typed),
                clock=session.CLOCK,
                record=not no_record,
                report=not given["no_report"],
            )
        )
    for sentence in _remarks(made):
        tell(sentence)
    card = made.scorecard
    if given["as_json"]:
        record(
            {
                "run": folder.run_id,
                "scoring": made.number,
                "job": made.job,
                "headlines": headlines(card),
                "seq": made.seq,
                "ended": made.ended,
                "models": metrics_json(card),
                "settings": dict(card.settings),
                "missing": card.missing,
                "stale": card.stale,
                "failures": list(card.failures),
                "partial": made.is_partial,
                "digest": made.digest,
                "artifacts": list(made.artifacts),
                **values,
            }
        )
    session.show_scoring(folder, made, given)
    failed = checks.failed(card, strict=strict, under=under)
    for sentence in failed:
        tell(f"siftlog: {sentence}")
    return CHECK_FAILED if failed else DONE


def _scored_back(
    job: Job,
    folder: RunFolder,
    typed: Mapping[str, Sequence[str]],
    moment_name: str,
    given: Mapping[str, Any],
) -> tuple[Scoring, dict[str, Any]]:
    """What the answers of an earlier moment come to, and which moment that was."""
    from runner.cli import session
    from runner.cli.moments import looking_back, moment_json, moment_text
    from runner.errors import UsageError
    from runner.fingerprint import input_hashes
    from runner.records import scoring

    if given["output_dir"] is not None:
        raise UsageError(
            "score --at writes no file: leave out --output-dir, or take > FILE."
        )
    with looking_back(folder, moment_name, session.CLOCK) as (moment, reader):
        settings = scoring.settings_in(job, reader, typed)
        inputs = input_hashes(job.inputs(settings))
        made = scoring.replayed(job, reader, settings, inputs, upto=moment.seq)
    tell(f"{folder.run_id} {moment_text(moment)}: a look back, never recorded.")
    return made, moment_json(moment)


def _remarks(made: Scoring) -> Iterator[str]:
    """What a reader of a scoring should know about what it was made of."""
    for setting in made.changed_inputs:
        yield f"note: {setting} is not the file that the run was started with."
    if made.is_partial:
        yield "partial: the run is unfinished."
    for fault in made.parser_faults:
        yield (
            f"note: a parser raised {fault}; such replies count as unparsed "
            "(parser_error). Mend it and score again, without a call."
        )
    for finding in made.findings:
        yield f"{finding.severity}: {finding.line}"
    if made.scorecard.missing:
        yield (
            f"note: {made.scorecard.missing:,} answers that these settings ask for are "
            "not in the run, and what needs them goes without."
        )
    if made.scorecard.stale:
        yield (
            f"note: {made.scorecard.stale:,} answers of the run are stale: these "
            "settings do not ask for them, and nothing uses them."
        )
