"""The command add-stage: adds a judge or a scan to a finished run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.arguments import option
from runner.cli.console import DONE, print_json, print_text
from runner.cli.request import RunRequest

if TYPE_CHECKING:
    from runner.run.add_stage import StageRehearsal


@click.command("add-stage")
@arguments.run_argument
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@option(
    "--model",
    metavar="MODEL",
    help="Model of the stage.  [default: baseline/lexical]",
)
@option("--base-url", metavar="URL", help="Address of its OpenAI-compatible endpoint.")
@option("--api-key-env", metavar="NAME", help="Variable that holds its API key.")
@option(
    "--price",
    metavar="IN,OUT[,CACHED]",
    help="Its price in USD per million tokens.",
)
@option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Budget of the stage in USD.  [default: what the run's budget has left]",
)
@option("--concurrency", type=int, help="Maximum concurrent calls.")
@option("--rpm", type=float, help="Maximum requests per minute.")
@option("--tpm", type=float, help="Maximum tokens per minute.")
@arguments.runs_dir
@click.option("--dry-run", is_flag=True, help="Print the forecast; send nothing.")
@arguments.no_score
@arguments.no_report
@arguments.figures
@arguments.output_dir
@arguments.as_json
def add_stage(
    run_name: str,
    file: Path,
    model: str | None,
    budget: float | None,
    dry_run: bool,
    no_score: bool,
    **parameters: Any,
) -> int:
    """Add the stage that FILE declares to RUN, which has ended, and run it.

    A stage judges the replies of another stage, or scans its texts. Before the first
    call it prints the number of requests and their cost. Answers that RUN has are not
    asked again. FILE is recorded in the log, and not needed afterwards.
    """
    from runner import roles
    from runner.added_stages import extended, job_in
    from runner.cli import run_steps
    from runner.cli.request import NOT_TYPED
    from runner.options import BASELINE, read_toml, write_toml
    from runner.run import add_stage, launch
    from runner.score.scoring import effective_settings
    from runner.workload import load_workload
    from store.database import open_reader
    from store.read.status import run_started
    from store.runs import resolve

    request = RunRequest.of((), parameters)
    folder = resolve(request.runs_dir, run_name)
    launch.check_alive(folder)
    with open_reader(folder.log) as reader:
        first, job = run_started(reader), job_in(reader)
    source = add_stage.StageSource.read(file, model or BASELINE)
    add_stage.check_addable(folder, job, source)
    job = extended(job, source.added, is_imported=first.imported)
    recorded = read_toml(folder.config) if folder.config.exists() else {}
    values = add_stage.options_with(recorded, request.options.values, source.model)
    fixed = {"replicates": first.replicates, **roles.fixed(first.models)}
    options = run_steps.engine_options(NOT_TYPED, values, **fixed)
    work = load_workload(job, effective_settings(job, folder, {}))
    console.relax_collector()
    context = run_steps.run_context(request, folder, work)
    entry = source.entry(budget)
    total = add_stage.total_budget(folder, budget)
    capped = options.model_copy(update={"budget": total})
    plan = asyncio.run(add_stage.stage_forecast(folder, work, capped, context, entry))
    _show(folder.run_id, source.added.stage.name, plan, as_json=request.output.as_json)
    if dry_run:
        return DONE
    settings = work.settings.model_dump(mode="json")
    # before the event: a resume after a crash must find the stage's endpoint
    write_toml(folder.config, job=job.name, options=options, settings=settings)
    ended = asyncio.run(
        launch.resume(folder, work, capped, context, accept_changes=False, adding=entry)
    )
    return run_steps.end(folder, work, ended, request.output, scores=not no_score)


def _show(
    run: str,
    stage: str,
    plan: StageRehearsal,
    *,
    as_json: bool,
) -> None:
    from store.document import Numbers, TableBlock, Words, as_text, plural
    from store.read.usage import exact_usd

    if as_json:
        print_json(
            "siftlog.add-stage/1",
            {
                "run": run,
                "stage": stage,
                "tasks": plan.tasks,
                "requests": plan.requests,
                "stages": [
                    {
                        "stage": name,
                        "model": model,
                        "requests": cost.requests,
                        "spend_usd": exact_usd(cost.spend_pico),
                        "most_usd": exact_usd(cost.most_pico),
                    }
                    for (name, model), cost in plan.costs.items()
                ],
            },
        )
        return
    rows = [
        (
            name,
            model,
            f"{cost.requests:,}",
            *(
                "?" if p is None else f"${exact_usd(p)}"
                for p in (cost.spend_pico, cost.most_pico)
            ),
        )
        for (name, model), cost in plan.costs.items()
    ]
    columns = (
        Words("stage"),
        Words("model"),
        Numbers("requests"),
        Numbers("to spend"),
        Numbers("at most"),
    )
    head = f"stage {stage} of {run}: {plural(plan.tasks, 'task')}"
    lines = [f"{head}, {plural(plan.requests, 'request')}"]
    print_text(
        as_text([*lines, TableBlock(columns, rows, indent=2)] if rows else lines)
    )
