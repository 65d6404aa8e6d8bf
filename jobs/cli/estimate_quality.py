"""The command `siftlog estimate-quality`: estimates model quality from labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.label_folders import field_option, labels_option, level_option, target_of
from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from store.document import Block


@click.command(
    "estimate-quality", short_help="Estimate how good models are from labels."
)
@arguments.run_argument
@field_option
@click.option(
    "--judge",
    default="",
    metavar="MODEL",
    help="Model whose replies predict the labels, instead of verdicts.",
)
@click.option(
    "--scoring",
    "scoring_number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Scoring whose verdicts predict the labels.  [default: the latest]",
)
@click.option(
    "--width",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Say how many more labels give an interval of this width.",
)
@level_option
@labels_option
@arguments.runs_dir
@arguments.as_json
def estimate_quality(
    run_name: str,
    field_name: str | None,
    judge: str,
    scoring_number: int | None,
    width: float | None,
    level: float,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Estimate how good the models of RUN are from few labels and many replies.

    Labels count that siftlog label RUN --draw chose, weighted by their recorded
    probability. The verdicts of a scoring, else the other models, predict what people
    would say of the rest: that makes intervals narrower where they are right, and never
    biased where they are wrong. The interval of labels alone stands next to it, and
    what one would get by taking the predictions for the truth.

    These intervals hold at one look, at a number of labels that was chosen before. Of
    labels of --draw random the column 'any time' has intervals, from labels alone, that
    hold however often you look while you label.

    Where people labelled whether replies are correct, accuracy is the share of replies
    that are.
    """
    from jobs.kit.labels.quality import field_quality
    from jobs.kit.labels.rendering import quality_blocks, quality_json
    from jobs.kit.labels.source import label_source, recorded_verdicts
    from runner.errors import UsageError
    from store.document import as_text
    from store.labels.fold import population_hash
    from store.labels.folder import read_labels

    target = target_of(runs_dir, run_name, labels_dir)
    if target.run is None:
        raise UsageError(
            f"{run_name} is a folder of labels: name a run, and the folder with "
            "--labels."
        )
    if judge and scoring_number is not None:
        raise UsageError("--judge and --scoring both say who predicts: give one.")
    folded = read_labels(target.folder)
    number, verdicts = recorded_verdicts(target.run, scoring_number)
    with label_source(target.run) as source:
        fields = {one.name: one for one in source.fields}
        if field_name is not None and field_name not in fields:
            raise UsageError(
                f"Run {run_name} has no field {field_name!r}: name one of "
                f"{', '.join(filter(None, fields)) or 'none'}."
            )
        models = {
            reply.model for of_item in source.replies.values() for reply in of_item
        }
        if judge and judge not in models:
            raise UsageError(
                f"No reply is by {judge}: --judge takes one of "
                f"{', '.join(sorted(models)) or 'none'}."
            )
        read = source.labelling.labels_about(folded, target.run.run_id)
        labelled = {about.item for about in read.by_field.keys() | read.decided.keys()}
        texts = source.text_hashes(sorted(labelled))
        results = [
            field_quality(
                fields[name],
                read,
                texts,
                source.replies,
                verdicts=verdicts,
                is_about_replies=source.labelling.needs_reply,
                population=population_hash(source.items),
                judge=judge,
                level=level,
                width=width,
            )
            for name in (fields if field_name is None else [field_name])
        ]
    if as_json:
        print_json(
            "siftlog.label-quality/2",
            {
                "run": target.run.run_id,
                "folder": str(target.folder),
                "level": level,
                "width": width,
                "judge": judge or None,
                "scoring": number,
                "fields": [quality_json(result) for result in results],
            },
        )
        return DONE
    blocks: list[Block] = []
    for result in results:
        if result.labels:
            blocks += quality_blocks(result, level, width)
    if not blocks:
        print_note(
            f"{target.folder} holds no label that counts; record some with siftlog "
            f"label {target.run.run_id} --draw random."
        )
        return DONE
    print_text(as_text(blocks))
    return DONE
