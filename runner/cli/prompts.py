"""The command prompts: prints the prompts of a job, or those that a run sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import arguments
from runner.cli.arguments import ANY_SETTING
from runner.cli.console import DONE, print_json, print_note, print_raw
from runner.cli.request import SettingsSource

if TYPE_CHECKING:
    from runner.job import Job
    from runner.sent_requests import RequestExample
    from store.events import Input, RunStarted
    from store.runs import RunFolder


@click.command(context_settings=ANY_SETTING)
@click.argument("name", metavar="JOB|RUN")
@arguments.sets
@arguments.config
@arguments.runs_dir
@arguments.as_json
@click.pass_context
def prompts(
    ctx: click.Context,
    /,
    name: str,
    sets: tuple[str, ...],
    config: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Print the prompts of JOB as a file for --prompts, or the prompts of RUN.

    For a job, prints a text for every stage and part, with its placeholders. Edit the
    texts you want to change, remove the rest, and pass the file with siftlog run JOB
    --prompts FILE. With settings, such as --profile NAME or --prompts FILE, prints the
    texts that a run with these settings uses.

    For a run, prints each form of request of a stage once, with its first example as
    the model read it.
    """
    from runner.cli import run_steps
    from runner.errors import UsageError
    from runner.registry import is_job, naming_jobs
    from store.runs import resolve

    if is_job(name):
        source = SettingsSource(words=tuple(ctx.args), sets=sets, config=config)
        return _of_job(*run_steps.chosen_job(name, source), as_json=as_json)
    if sets or config or ctx.args:
        raise UsageError("Settings are about the prompts of a job: a run has its own.")
    with naming_jobs(name):
        folder = resolve(runs_dir, name)
    return _of_run(folder, as_json=as_json)


def _of_job(job: Job, source: SettingsSource, *, as_json: bool) -> int:
    from runner.cli import run_steps
    from runner.errors import UsageError
    from runner.prompts import USUAL_PROFILE, written

    catalog = job.prompts
    if catalog is None:
        raise UsageError(f"{job.name} has no prompts that a file can replace.")
    settings = run_steps.typed_settings(
        job, source, run_steps.configuration(source, job)
    )
    book = catalog.book(
        getattr(settings, "prompts", None),
        getattr(settings, "profile", USUAL_PROFILE),
    )
    if not as_json:
        print_raw(written(catalog, book))
        return DONE
    for block in catalog.blocks:
        for part, placeholders in block.parts.items():
            print_json(
                "siftlog.prompt/1",
                {
                    "prompt": f"{block.name}.{part}",
                    "text": book.texts[f"{block.name}.{part}"],
                    "placeholders": {
                        placeholder.name: placeholder.meaning
                        for placeholder in placeholders
                    },
                    "needed": [
                        placeholder.name
                        for placeholder in placeholders
                        if placeholder.needed
                    ],
                },
            )
    return DONE


def _of_run(folder: RunFolder, *, as_json: bool) -> int:
    from runner.errors import UsageError
    from runner.registry import job_of
    from runner.score.scoring import loaded
    from runner.sent_requests import SentRequests, imported_examples
    from store.database import open_reader
    from store.read.status import run_started

    with open_reader(folder.log) as reader:
        first = run_started(reader)
        if not first.imported:
            examples = SentRequests(reader).survey().examples
            sources = list(_sources(reader, first))
        elif job_of(first).holds_foreign:
            job, dataset = loaded(folder)
            examples = imported_examples(reader, job, dataset)
            files = (i.path for i in first.inputs if i.setting == "rows")
            sources = [f"prompts of {file}" for file in files]
        else:
            raise UsageError(
                f"Run {folder.run_id} was imported as {first.job}: the prompts of its "
                "replies were not kept (import the files again, without a job)."
            )
    if as_json:
        for example in examples:
            print_json("siftlog.request/1", _fields(example))
        return DONE
    print_raw(f"run {folder.run_id}  {first.job} {first.job_version}\n")
    print_raw("".join(f"{source}\n" for source in sources))
    for example in examples:
        print_raw("\n" + "".join(f"{line}\n" for line in _lines(example)))
    if not examples:
        print_note(f"Run {folder.run_id} has not sent any request yet.")
    return DONE


def _sources(reader: sqlite3.Connection, first: RunStarted) -> Iterator[str]:
    """Yield the source of the prompts at the start and after each change."""
    from runner.sent_requests import PAGE
    from store.events import RunResumed
    from store.read.tasks import events

    shipped = f"prompts shipped with siftlog {first.siftlog_version}"
    yield _source(first.inputs) or shipped
    for recorded in events(reader, limit=PAGE, kinds=["run_resumed"]):
        changed = (
            recorded.event.changed if isinstance(recorded.event, RunResumed) else []
        )
        if (source := _source(changed)) is not None:
            yield f"resumed with {source}"


def _source(inputs: Iterable[Input]) -> str | None:
    """Return the prompt file among the inputs, if any."""
    for recorded_input in inputs:
        if recorded_input.setting == "prompts":
            return f"prompts of {recorded_input.path} (sha256 {recorded_input.sha256})"
    return None


def _fields(example: RequestExample) -> dict[str, object]:
    return {
        "stage": example.stage,
        "requests": example.requests,
        "task": example.task,
        "key": example.key,
        "model": example.model,
        "request_sha256": example.request_sha256,
        "kind": example.request.kind,
        "messages": [
            {"role": role, "content": content}
            for role, content in example.request.messages
        ],
        "reply_schema": example.request.schema,
        "query": example.request.query,
        "texts": list(example.request.texts),
    }


def _lines(example: RequestExample) -> Iterator[str]:
    request = example.request
    n = f"{example.requests:,} {'request' if example.requests == 1 else 'requests'}"
    yield (
        f"=== {example.stage}: {n} of this form, such as task {example.task} "
        f"({example.key})"
    )
    for role, content in request.messages:
        yield f"--- {role}"
        yield content
    if request.schema is not None:
        yield "--- schema of the reply"
        yield request.schema
    if request.query is not None:
        yield "--- query"
        yield request.query
    for number, content in enumerate(request.texts, start=1):
        yield f"--- text {number}"
        yield content
