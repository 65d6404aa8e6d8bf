"""The command explain: shows how one item was judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import arguments
from runner.cli.arguments import ANY_SETTING, split_words
from runner.cli.console import DONE, print_json, print_text
from runner.cli.request import SettingsSource

if TYPE_CHECKING:
    from store.runs import RunFolder


@click.command(context_settings=ANY_SETTING)
@click.argument("what", metavar="RUN|JOB")
@click.argument("words", nargs=-1, metavar="ITEM...", type=click.UNPROCESSED)
@arguments.sets
@arguments.runs_dir
@arguments.as_json
def explain(
    what: str,
    words: tuple[str, ...],
    sets: tuple[str, ...],
    runs_dir: Path,
    *,
    as_json: bool,
) -> int:
    """Explain how ITEMs of a run, or of a job's inputs, are judged.

    Before any run, a job that builds data sets explains how an ITEM gets into one,
    under the options of prepare. Without ITEM, the job chooses some. Give a setting of
    the job by its own flag; siftlog jobs JOB --all lists them. Writes nothing.
    """
    from runner.added_stages import extended, stages_in
    from runner.cli import run_steps
    from runner.errors import UsageError
    from runner.registry import is_job, job_of, naming_jobs
    from runner.score import scoring
    from runner.workload import file_lists, switches
    from store.database import open_reader
    from store.read.status import run_started, scorings
    from store.read.tasks import example_item
    from store.runs import resolve
    from store.tables import visible_seq

    job = None
    if is_job(what):
        job, implied = run_steps.chosen_job(what, SettingsSource(sets=sets))
        sets = implied.sets
    items, flags = split_words(
        words, *((switches(job), file_lists(job)) if job else ())
    )
    source = SettingsSource(words=tuple(flags), sets=sets)
    if job is not None and job.explain_inputs is not None:
        settings = run_steps.with_sample(job, run_steps.typed_settings(job, source, {}))
        explanation = job.explain_inputs(settings, tuple(items))
        if as_json:
            print_json("siftlog.input-explanation/1", explanation.json)
        else:
            print_text(explanation.text)
        return DONE
    if job is not None and not items:
        raise UsageError("Name the item to explain, such as a paper's id.")
    if job is not None:
        settings = run_steps.typed_settings(job, source, {})
        dataset = job.load(run_steps.startable(job, settings))
        text = job.explain(dataset, None, tuple(items))
        _print(text, None, job=job.name, run=None, items=items, as_json=as_json)
        return DONE
    with naming_jobs(what):
        folder = resolve(runs_dir, what)
    with open_reader(folder.log) as reader:
        if not items:
            raise UsageError(
                "Name the item to explain, such as siftlog explain "
                f"{folder.run_id} {example_item(reader)}; siftlog tasks "
                f"{folder.run_id} lists the items."
            )
        first = run_started(reader)
        job = job_of(first)
        settings = scoring.effective_settings(job, folder, source.typed())
        dataset = job.load(settings)
        answers = scoring.answers(reader, first, visible_seq(reader))
        text = job.explain(dataset, answers, tuple(items))
        for added in stages_in(reader):
            concerned = answers.about(job, added)
            text += added.explained(job, dataset, concerned, items)
            job = extended(job, added)
        table = _baselines(folder, len(scorings(reader)))
    _print(text, table, job=job.name, run=folder.run_id, items=items, as_json=as_json)
    return DONE


def _print(
    text: str,
    baselines: str | None,
    *,
    job: str,
    run: str | None,
    items: list[str],
    as_json: bool,
) -> None:
    """Print an explanation, and the comparison with trivial baselines, if any."""
    if as_json:
        fields = {"job": job, "run": run, "items": items, "text": text}
        print_json("siftlog.explanation/1", {**fields, "baselines": baselines})
        return
    print_text(text)
    if baselines is not None:
        print_text(f"The whole run over trivial baselines:\n{baselines}")


def _baselines(folder: RunFolder, number: int) -> str | None:
    """Return the comparison with trivial baselines of the last scoring, if any."""
    from runner.scorecard import BASELINES

    path = folder.scores / str(number) / BASELINES
    return path.read_text("utf-8") if path.is_file() else None
