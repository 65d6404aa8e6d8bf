"""The command fork: continues a finished run under another id, with changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.console import DONE, print_json, print_text
from runner.cli.help import FORK_LAYOUT, LongCommand
from runner.cli.request import RunRequest

if TYPE_CHECKING:
    from runner.run.rehearsal import ForkForecast
    from store.lineage import ForkOrigin


@click.command(cls=LongCommand, layout=FORK_LAYOUT)
@arguments.run_argument
@click.option("--as", "run_id", required=True, metavar="NEW", help="Id of the fork.")
@click.option("--prompts", metavar="FILE", help="TOML of prompts to replace.")
@click.option(
    "--from-stage", metavar="STAGE", help="Ask this stage and later ones anew."
)
@arguments.model_options
@arguments.engine_options_of_run
@arguments.sets
@arguments.runs_dir
@click.option("--dry-run", is_flag=True, help="Print the forecast; send nothing.")
@arguments.no_score
@arguments.no_report
@arguments.figures
@arguments.output_dir
@arguments.as_json
def fork(
    run_name: str,
    prompts: str | None,
    from_stage: str | None,
    dry_run: bool,
    no_score: bool,
    **parameters: Any,
) -> int:
    """Continue RUN, which no process is writing, as another run with changes.

    Answers to unchanged requests are adopted and cost nothing; the others are asked.
    Before the first call it prints both, what is kept and what will be spent. Stages
    that were added to RUN belong to the fork too. RUN may be unfinished, and has to
    stay beside the fork: adopted answers are stored there only.
    """
    from runner import roles
    from runner.added_stages import job_in
    from runner.cli import run_steps
    from runner.options import read_toml
    from runner.run import launch
    from runner.run.folder import check_new
    from runner.run.fork import carried_stages
    from runner.run.rehearsal import rehearse
    from runner.score.scoring import effective_settings
    from runner.workload import load_workload
    from store.database import open_reader
    from store.read.status import run_started
    from store.runs import resolve

    request = RunRequest.of((), parameters)
    parent = resolve(request.runs_dir, run_name)
    with open_reader(parent.log) as reader:
        first, job = run_started(reader), job_in(reader)
    folder = run_steps.new_folder(
        parent.path.parent, request.run_id, job, option="--as"
    )
    check_new(folder, "--as")
    file = read_toml(parent.config) if parent.config.exists() else {}
    file.pop("budget", None)  # that of the parent run is spent
    if first.shard is not None:
        file.pop("rate_share", None)  # this process does the work of several
    fixed = {"replicates": first.replicates, **roles.fixed(first.models)}
    options = run_steps.engine_options(request.options, {**file, **fixed})
    typed = run_steps.with_temperature(job, request.source.typed(), request.options)
    if prompts is not None:
        typed["prompts"] = [prompts]
    settings = roles.fitted(job, effective_settings(job, parent, typed), options)
    work = load_workload(job, settings, starts=True)
    run_steps.print_findings(work)
    console.relax_collector()
    context = run_steps.run_context(request, folder, work)
    origin = run_steps.adoptable(
        parent, job, options, context.environment, from_stage=from_stage
    )
    added = carried_stages(parent)
    plan = asyncio.run(
        rehearse(
            parent, folder.run_id, work, options, context, fork=origin, added=added
        )
    )
    show_forecast(folder.run_id, origin, plan, as_json=request.output.as_json)
    if dry_run:
        return DONE
    ended = asyncio.run(
        launch.start(folder, work, options, context, fork=origin, added=added)
    )
    return run_steps.end(
        folder, work, ended, request.output, scores=not no_score, parent=parent
    )


def show_forecast(
    run: str, origin: ForkOrigin, plan: ForkForecast, *, as_json: bool
) -> None:
    """Print which requests differ, what is adopted, and what will be spent."""
    from store.document import Block, Numbers, TableBlock, Words, as_text, plural
    from store.read.usage import exact_usd

    if as_json:
        print_json(
            "siftlog.fork/1",
            {
                "run": run,
                "parent": origin.run,
                "adopted": sum(stage.adopted for stage in plan.stages.values()),
                "sent": len(plan.sent),
                "saved_usd": exact_usd(plan.saved_pico),
                "spend_usd": exact_usd(plan.spend_pico),
                "stages": [
                    {
                        "stage": stage,
                        "model": model,
                        "adopted": figures.adopted,
                        "sent": figures.sent,
                        "saved_usd": exact_usd(figures.saved_pico),
                        "spend_usd": exact_usd(figures.spend_pico),
                    }
                    for (stage, model), figures in plan.stages.items()
                ],
                "requests": [
                    {
                        "stage": request.stage,
                        "key": request.key,
                        "model": request.model,
                        "replicate": request.replicate,
                        "request_sha256": request.request_sha256,
                        "certain": request.is_certain,
                    }
                    for request in plan.sent
                ],
            },
        )
        return
    rows = [
        (
            stage,
            model,
            f"{figures.adopted:,}",
            f"{figures.sent:,}",
            f"${exact_usd(figures.saved_pico)}",
            "?" if figures.spend_pico is None else f"${exact_usd(figures.spend_pico)}",
        )
        for (stage, model), figures in plan.stages.items()
    ]
    columns = (
        Words("stage"),
        Words("model"),
        Numbers("adopted"),
        Numbers("sent"),
        Numbers("saved"),
        Numbers("to spend"),
    )
    open_ends = sum(not request.is_certain for request in plan.sent)
    spend = exact_usd(plan.spend_pico)
    to_spend = "an unknown amount" if spend is None else f"${spend}"
    differ = plural(len(plan.sent), "request differs", "requests differ")
    lines: list[Block] = [
        f"compared with {origin.run}: {differ}",
        TableBlock(columns, rows, indent=2),
        f"saved ${exact_usd(plan.saved_pico)}, to spend {to_spend} (forecast)",
    ]
    if open_ends:
        lines.append(
            f"{open_ends:,} of these follow from answers that are still to come, so "
            "there may be more or fewer"
        )
    print_text(as_text(lines))
