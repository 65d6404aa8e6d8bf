"""The command `siftlog screen`: screens a library to a stop with a guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jobs.cli.label_folders import author_name, author_option, labels_option
from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from runner.cli.help import LongCommand, OptionLayout
from runner.errors import RunnerError

if TYPE_CHECKING:
    from jobs.stopping.screening import Screened
    from jobs.stopping.simulation import Simulation

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


_LAYOUT: Final = OptionLayout(
    everyday=(
        *("model", "ranking_run", "criteria", "question"),
        *("target", "alpha", "author", "go_on", "simulated", "budget", "run_id"),
    ),
    sections={
        "Library": ("criteria", "question", "renames"),
        "Ranking": (
            *("model", "ranking_run", "order", "base_url", "api_key_env"),
            *("budget", "price", "allow_unknown_price", "run_id", "runs_dir"),
        ),
        "Guarantee": ("target", "alpha", "seed"),
        "Labelling": ("author", "labels_dir", "plain", "assisted", "go_on"),
        "Simulation": ("simulated", "seeds", "figure_dir"),
        "Output": ("as_json",),
    },
)


@click.command(
    cls=LongCommand,
    layout=_LAYOUT,
    short_help="Screen a library to a stop with a guarantee.",
)
@click.argument("library", nargs=-1, metavar="[LIBRARY...]")
@click.option("--model", multiple=True, metavar="MODEL", help="Model that ranks.")
@click.option(
    "--rank-only",
    "ranking_run",
    metavar="RUN",
    help="Rank by an existing run of screening, and call no model.",
)
@click.option(
    "--criteria",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What to include and exclude: a text, TOML or JSON.",
)
@click.option("--question", metavar="TEXT", help="The question, without a file.")
@click.option(
    "--map", "renames", multiple=True, metavar="OLD=NEW", help="Rename a column."
)
@click.option(
    "--target-recall",
    "target",
    type=_SHARE,
    help="Share of the relevant records to find.  [default: 0.95]",
)
@click.option(
    "--alpha",
    type=_SHARE,
    help="Maximum probability of stopping below the target.  [default: 0.05]",
)
@click.option(
    "--order",
    type=click.Choice(["model", "tfidf", "random"]),
    help="What ranks the records.  [default: model with --model, else tfidf]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of the random draws.  [default: a random one, which is recorded]",
)
@click.option("--go-on", is_flag=True, help="Continue labelling after the stop.")
@click.option("--plain", is_flag=True, help="Ask in plain text; reads a script too.")
@click.option("--assisted", is_flag=True, help="Show replies; recorded with labels.")
@author_option
@labels_option
@click.option(
    "--simulate-labels",
    "simulated",
    metavar="FILE",
    help="Take labels from a file (id, label) instead of people, and report how the "
    "rule does.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="With --simulate-labels: number of screenings.",
)
@click.option(
    "--figure-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --simulate-labels: draw bound and recall into this folder.",
)
@click.option("--budget", type=click.FloatRange(min=0), metavar="USD", help="Budget.")
@click.option("--base-url", metavar="URL", help="OpenAI-compatible endpoint.")
@click.option(
    "--api-key-env", metavar="NAME", help="Environment variable with the API key."
)
@click.option(
    "--price",
    metavar="IN,OUT[,CACHED]",
    help="USD per million tokens, for models without a configured price.",
)
@click.option(
    "--allow-unknown-price", is_flag=True, help="Call a model whose price is unknown."
)
@click.option(
    "--run-id", metavar="ID", help="Id of the run.  [default: screen-LIBRARY]"
)
@arguments.runs_dir
@arguments.as_json
def screen(
    library: tuple[str, ...],
    *,
    simulated: str | None,
    as_json: bool,
    runs_dir: Path,
    **options: Any,
) -> int:
    """Screen LIBRARY until it is proved that enough of it was found.

    A model, or text similarity, ranks the records; people label them in this order,
    and random draws in between. A lower bound on recall is updated after each label.
    At the target, the command prints stop and writes a certificate, which siftlog
    verify computes again. Repeat the command to continue. LIBRARY is a file of records
    (RIS, PubMed, BibTeX, CSV); the word sample names the shipped one.
    """
    import asyncio

    from jobs.cli.label import front_end
    from jobs.stopping.screening import (
        ScreenRequest,
        ranked_run,
        screen_library,
        simulate_library,
    )
    from runner.cli.paced import paced_progress
    from store.clock import SystemClock

    names = ("budget", "base_url", "api_key_env", "price", "allow_unknown_price")
    request = ScreenRequest(
        library=library,
        ranking_run=options["ranking_run"],
        run_id=options["run_id"],
        runs_dir=runs_dir,
        models=options["model"],
        criteria=options["criteria"],
        question=options["question"],
        renames=options["renames"],
        order=options["order"],
        target=options["target"],
        alpha=options["alpha"],
        seed=options["seed"],
        run_options={n: options[n] for n in names if options[n]},
    )
    if simulated is not None:
        with paced_progress(SystemClock()) as progress:
            result = simulate_library(
                request, simulated, options["seeds"], print_note, progress
            )
        _show_simulation(result, options["figure_dir"], as_json=as_json)
        return DONE
    author = author_name(options["author"])
    show = front_end(
        print_note if as_json else print_text, is_plain=options["plain"] or as_json
    )
    _show_screening(
        asyncio.run(
            screen_library(
                request,
                ranked_run(request, print_note),
                author,
                options["labels_dir"],
                show,
                is_assisted=options["assisted"],
                goes_on=options["go_on"],
            )
        ),
        as_json=as_json,
    )
    return DONE


def _show_screening(done: Screened, *, as_json: bool) -> None:
    """Print the state of a screening."""
    from jobs.stopping.status_text import forecast, status_line

    status, plan = done.fold.status, done.fold.plan
    if status is None or plan is None:
        raise TypeError("a screening has a plan")
    certificate = done.certificate
    if as_json:
        print_json(
            "siftlog.screening/1",
            {
                "run": done.run,
                "folder": str(done.labels),
                "answered": done.answered,
                "records": status.records,
                "labelled": status.read,
                "relevant": status.relevant,
                "relevant_at_most": status.most_relevant,
                "recall_at_least": status.recall,
                "target": plan.event.target,
                "alpha": plan.event.alpha,
                "draws": status.draws,
                "draws_counted": status.draws_counted,
                "stop": status.should_stop,
                "forecast": forecast(status, done.fold),
                "certificate": None if certificate is None else str(certificate.path),
            },
        )
        return
    word = "label" if done.answered == 1 else "labels"
    print_text(f"{done.answered:,} {word} recorded in {done.labels}")
    print_text(status_line(done.fold))
    if done.fold.disputed:
        print_text(
            f"People disagree on {len(done.fold.disputed):,} records, which count as "
            f"not labelled: siftlog label {done.run} --adjudicate"
        )
    if certificate is not None:
        page = certificate.path.with_suffix(".html")
        print_text(f"certificate: {certificate.path}\n{'':13}{page}")
        print_text(f"check it:    siftlog verify {done.run}")
    if not status.should_stop:
        print_text("Repeat the command to continue.")
    elif certificate is None:
        print_text("To label on: add --go-on.")


def _show_simulation(result: Simulation, folder: Path | None, *, as_json: bool) -> None:
    """Print a simulation, and draw it if a folder is given."""
    from dataclasses import asdict

    from jobs.stopping.simulation import simulation_blocks, simulation_figure
    from store.document import as_text

    files: list[str] = []
    if folder is not None:
        from jobs.kit.report.figures import write_figures

        figure = simulation_figure(result)
        for failed in write_figures([figure], folder):
            raise RunnerError(f"The figure cannot be drawn: {failed.fault}")
        files = [str(folder / f"{figure.name}.{end}") for end in ("svg", "png")]
    if as_json:
        print_json("siftlog.screening-simulation/1", {**asdict(result), "files": files})
        return
    print_text(as_text(simulation_blocks(result)).rstrip())
    for file in files:
        print_text(f"figure: {file}")
