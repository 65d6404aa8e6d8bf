"""Verb about the logs of a split run: merge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import choices
from runner.cli.speech import CHECK_FAILED, DONE, record, tell, text

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command()
@choices.run_argument
@click.option(
    "--ship",
    "places",
    multiple=True,
    metavar="DIR|URL",
    help="Where shards shipped their logs to; remembered.",
)
@click.option(
    "--compact",
    is_flag=True,
    help="Put the many small segments that dead shards have left there into few.",
)
@click.option("--check", is_flag=True, help="Exit code 6 unless all has ended.")
@choices.runs_dir
@choices.as_json
def merge(
    run_name: str,
    places: tuple[str, ...],
    compact: bool,
    check: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Take what is new in the logs of RUN's shards into one log, RUN/log.db.

    In whatever order and however often logs are merged, the outcome is the same. Verbs
    that look at RUN merge first, so this is for logs that come from elsewhere (--ship),
    for a last look, and for the digest of what the run consists of.
    """
    from runner.cli.carried import put_together, remember, say_emptied
    from store.database import open_reader
    from store.read.live import union_progress
    from store.runs import resolve

    say = _once()
    if places:
        remember(runs_dir, run_name, places, say)
    folder = resolve(runs_dir, run_name)
    say_emptied(folder, say)
    folder.refresh(say)
    if compact:
        put_together(folder, tell)
    with open_reader(folder.log) as reader:
        stand = union_progress(reader)
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


def _once() -> Callable[[str], None]:
    """Says what cannot be read once, though places are looked at several times."""
    heard: set[str] = set()

    def say(said: str) -> None:
        if said not in heard:
            heard.add(said)
            tell(f"{said}.")

    return say
