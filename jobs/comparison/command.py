"""The verb compare: words to sides, logs to scorecards, a comparison to stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runner.cli import choices, collector
from runner.cli.calls import ANY_SETTING
from runner.cli.speech import DONE, record, tell, text

_SIDES = 2


@click.command(context_settings=ANY_SETTING)
@click.argument("words", nargs=-1, metavar="A [B]", type=click.UNPROCESSED)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATH",
    help="Metric to compare, * for any characters; repeatable.  [default: all]",
)
@click.option(
    "--items", metavar="PATH", help="List the items on which that metric differs most."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many of them.",
)
@click.option(
    "--b",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    help="Bootstrap replicates; 0: no intervals.",
)
@click.option(
    "--seed", type=int, default=20260118, show_default=True, help="Of the bootstrap."
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a row for each metric there too.",
)
@choices.sets
@choices.runs_dir
@choices.as_json
def compare(words: tuple[str, ...], csv_file: Path | None, **given: Any) -> int:
    """Compare models on the items both have.

    Every metric is given as B minus A with an interval. A and B are RUN or RUN:MODEL.
    Two runs are compared model by model; A alone, its models with each other. Runs are
    scored from their logs, under their own settings or changed ones; no model is called
    and nothing is written into them.
    """
    from jobs.comparison import matching, rendering, replaying
    from jobs.comparison.sides import Named
    from runner.errors import UsageError
    from runner.records.render import csv_lines
    from store.clock import SystemClock
    from store.runs import resolve

    plain, flags = choices.split_words(words)
    if not 1 <= len(plain) <= _SIDES:
        raise UsageError("Name one or two runs, as RUN or RUN:MODEL.")
    named = [Named.of(word) for word in plain]
    folders = [resolve(given["runs_dir"], each.run) for each in named]
    typed = choices.job_settings(flags, given["sets"])
    collector.calm()
    runs = replaying.replayed(folders, typed, SystemClock())
    drawing = matching.Drawing(b=given["b"], seed=given["seed"], level=given["level"])
    made = matching.matches(replaying.pairs(named, runs), given["metrics"], drawing)
    items = given["items"]
    listed = [
        matching.furthest(match, items, given["top"])
        for match in (made if items is not None else ())
    ]
    said = list(replaying.notes(runs))
    for note in said:
        tell(f"note: {note}")
    if csv_file is not None:
        csv_file.write_text(csv_lines(rendering.rows(made)), encoding="utf-8")
    if given["as_json"]:
        job = runs[0].started.job
        record({"job": job, "notes": said, **rendering.as_json(made, drawing, listed)})
        return DONE
    text(rendering.text(made, drawing))
    for match, gaps in zip(made, listed, strict=False):
        text(rendering.items_text(items, match, gaps))
    return DONE
