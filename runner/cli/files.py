"""Verbs about files: verify."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import choices
from runner.cli.speech import CHECK_FAILED, DONE, record, tell, text


@click.command()
@choices.run_argument
@choices.runs_dir
@choices.as_json
def verify(run_name: str, runs_dir: Path, as_json: bool) -> int:
    """Check RUN's log: chain, order, hashes of texts, projections; exit 6 if wrong."""
    from dataclasses import asdict

    from store.runs import resolve
    from store.verify import verify as check
    from store.views import open_reader

    folder = resolve(runs_dir, run_name)
    with open_reader(folder.log) as reader:
        report = check(reader)
    if as_json:
        record({"run": folder.run_id, "sound": report.is_sound, **asdict(report)})
    for fault in report.faults:
        tell(f"siftlog: {folder.run_id}: {fault.where}: {fault.message}")
    if not report.is_sound:
        return CHECK_FAILED
    if not as_json:
        text(
            f"{folder.run_id} is sound: {report.events:,} events in "
            f"{report.commits:,} commits, {report.blobs:,} message parts"
        )
    return DONE
