"""Verb about the logs of a split run: merge."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import choices
from runner.cli.speech import CHECK_FAILED, DONE, record, tell, text


@click.command()
@choices.run_argument
@click.option(
    "--ship",
    "places",
    multiple=True,
    metavar="DIR|URL",
    help="Where shards shipped their logs to; remembered.",
)
@click.option("--check", is_flag=True, help="Exit code 6 unless all has ended.")
@choices.runs_dir
@choices.as_json
def merge(
    run_name: str, places: tuple[str, ...], check: bool, runs_dir: Path, as_json: bool
) -> int:
    """Take what is new in the logs of RUN's shards into one log, RUN/log.db.

    In whatever order and however often logs are merged, the outcome is the same. Verbs
    that look at RUN merge first, so this is for logs that come from elsewhere (--ship),
    for a last look, and for the digest of what the run consists of.
    """
    from store.runs import RunFolder, resolve
    from store.segments.place import address_of
    from store.union.elsewhere import add_place
    from store.union.standing import standing
    from store.views import open_reader

    for place in places:
        if not RunFolder.is_valid_id(run_name):
            raise click.UsageError(
                f"{run_name} is no run id: a place holds the logs of one run, which "
                "is named by its whole id"
            )
        add_place(RunFolder(runs_dir / run_name).places, address_of(place))
    folder = resolve(runs_dir, run_name)
    folder.refresh(lambda said: tell(f"{said}."))
    with open_reader(folder.log) as reader:
        stand = standing(reader)
    if stand is None:
        tell(f"{folder.run_id} is not split: its log is whole already.")
        return DONE
    has_ended = not stand.unfinished
    if as_json:
        record(
            {
                "run": folder.run_id,
                "digest": stand.digest,
                "ended": has_ended,
                "missing": str(stand.missing),
                "unfinished": str(stand.unfinished),
                "repeated": stand.repeated,
                "logs": [
                    {
                        "log": part.log,
                        "slices": str(part.slices),
                        "phase": part.phase,
                        "events": part.events,
                    }
                    for part in stand.parts
                ],
            }
        )
    else:
        for part in stand.parts:
            text(
                f"log {part.log[:12]}  slices {part.slices}  {part.events:,} events  "
                f"{part.phase.removeprefix('run_')}"
            )
        if stand.missing:
            text(f"missing: slices {stand.missing}, which no shard has begun")
        if stand.repeated:
            text(f"repeated: {stand.repeated:,} answers, paid for more than once")
        text(f"digest {stand.digest}")
        text(f"merged into {folder.log}")
    if has_ended or not check:
        return DONE
    tell(
        f"slices {stand.unfinished} have not come to their end in any log: start, or "
        "go on with, the shards that hold them"
    )
    return CHECK_FAILED
