"""The command `siftlog compare`: scores both sides and prints the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING, job_settings, split_words
from runner.cli.console import DONE, print_json, print_note, print_raw, print_text

if TYPE_CHECKING:
    from jobs.kit.comparison.sides import ModelReference


@click.command(
    context_settings=ANY_SETTING, short_help="Compare models, runs or scorings."
)
@click.argument("words", nargs=-1, metavar="A [B]...", type=click.UNPROCESSED)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATH",
    help="Metric to compare; * matches any characters; repeatable.  [default: all]",
)
@click.option(
    "--items", metavar="PATH", help="List the items on which this metric differs most."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of items to list.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --items: write a CSV row for every shared item.",
)
@click.option(
    "--b",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    help="Bootstrap replicates; 0: no intervals.",
)
@click.option(
    "--seed", type=int, default=20260118, show_default=True, help="Bootstrap seed."
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level of intervals.",
)
@click.option(
    "--interval",
    type=click.Choice(["adjusted", "percentile"]),
    default="adjusted",
    show_default=True,
    help="Interval method: adjusted for few clusters and rates near 0 or 1, or"
    " plain percentiles.",
)
@click.option(
    "--min-clusters",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Minimum number of documents for a verdict; below it: `too few`.",
)
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a CSV row per metric there.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot quality against cost and latency there, as .png or .svg.",
)
@click.option(
    "--sequential",
    metavar="METRIC[>=MARGIN]",
    help="With live runs: one metric, with an interval that stays valid "
    "however often it is computed.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="With --sequential: error probability over all looks.",
)
@arguments.sets
@arguments.runs_dir
@arguments.as_form
@arguments.as_json
def compare(
    words: tuple[str, ...],
    csv_file: Path | None,
    out: Path | None,
    plot: Path | None,
    **options: Any,
) -> int:
    """Compare models, runs or scorings on the items they share.

    Reports every metric as B minus A with an interval, a test and a verdict. B is
    better or worse if the interval excludes 0 and the corrected p is at most 1 - level;
    with fewer than --min-clusters documents the verdict is `too few`.

    A side is RUN, RUN:MODEL, RUN@N or RUN@N:MODEL, where N is the number of a recorded
    scoring. Two runs are compared model by model, the models of a single run with each
    other, and several sides pairwise. Runs are scored from their logs under their own
    or changed settings, a recorded scoring under its own. No model is called, and the
    runs are not changed.
    """
    from jobs.kit.comparison import models, pareto_front, rescoring
    from jobs.kit.comparison.page import comparison_text, items_text
    from jobs.kit.comparison.pareto_front import front_with_costs
    from jobs.kit.comparison.rendering import (
        as_json,
        item_rows,
        metric_rows,
        print_tables,
    )
    from jobs.kit.comparison.sides import ModelReference
    from runner.table_files import csv_lines
    from runner.table_rendering import typeset
    from store.clock import SystemClock

    plain, flags = split_words(words)
    items = options["items"]
    _check(plain, items, out)
    if plot is not None:
        pareto_front.check_figure_format(plot)
    references = [ModelReference.of(word) for word in plain]
    typed = job_settings(flags, options["sets"])
    console.relax_collector()
    if options["sequential"] is not None:
        return _watched(references, typed, options)
    runs = rescoring.rescored_runs(
        [reference.source for reference in references],
        options["runs_dir"],
        typed,
        SystemClock(),
    )
    comparison_options = models.ComparisonOptions(
        b=options["b"],
        seed=options["seed"],
        level=options["level"],
        min_clusters=options["min_clusters"],
        form=options["interval"],
    )
    matches = models.compare_models(
        rescoring.side_pairs(references, runs), options["metrics"], comparison_options
    )
    top_gaps = [
        models.largest_gaps(match, items, options["top"])
        for match in (matches if items is not None else ())
    ]
    front = front_with_costs(matches, runs, comparison_options)
    notes = list(rescoring.reader_notes([*runs.values()]))
    for note in notes:
        print_note(f"note: {note}")
    if plot is not None:
        pareto_front.write_figure(
            pareto_front.front_figure(front, comparison_options.level), plot
        )
    for file, written in (
        (csv_file, metric_rows(matches)),
        (out, item_rows(matches, items)),
    ):
        if file is not None:
            file.write_text(csv_lines(written), encoding="utf-8")
    if options["as_json"]:
        job = next(iter(runs.values())).started.job
        fields = as_json(matches, front, comparison_options, top_gaps)
        print_json("siftlog.comparison/4", {"job": job, "notes": notes, **fields})
        return DONE
    if options["form"] != "text":
        print_raw(
            typeset(print_tables(matches, front, comparison_options), options["form"])
        )
        return DONE
    width = console.page_width()
    print_text(comparison_text(matches, front, comparison_options, width))
    for match, gaps in zip(matches, top_gaps, strict=False):
        print_text(items_text(items, match, gaps))
    return DONE


def _check(plain: Sequence[str], items: str | None, out: Path | None) -> None:
    from runner.errors import UsageError

    if not plain:
        raise UsageError("Name one run or several, as RUN, RUN:MODEL or RUN@N.")
    if out is not None and items is None:
        raise UsageError("--out writes items: name their metric with --items PATH.")


def _watched(
    references: Sequence[ModelReference],
    typed: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
) -> int:
    """Compare runs that are still in progress."""
    from jobs.kit.comparison.sequential import show_running
    from runner.errors import UsageError
    from store.results import StoppingRule

    try:
        stopping = StoppingRule.of(options["sequential"], options["alpha"])
    except ValueError as error:
        raise UsageError(f"--sequential: {error}.") from error
    show_running(
        references, options["runs_dir"], typed, stopping, is_json=options["as_json"]
    )
    return DONE
