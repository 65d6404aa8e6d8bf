"""Verbs about files: verify."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import choices
from runner.cli.speech import CHECK_FAILED, DONE, record, tell, text


@click.command()
@click.argument("run_name", metavar="RUN|BUNDLE")
@choices.runs_dir
@choices.as_json
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Of a bundle: break off after that; 0: never.",
)
def verify(run_name: str, runs_dir: Path, as_json: bool, time_limit_s: float) -> int:
    """Check RUN's log: chain, order, hashes of texts, projections; exit 6 if wrong.

    Of a BUNDLE, a file that siftlog bundle has made, every member is checked, and its
    scorecard is made again without a network. Nothing is written but temporary files.
    """
    from dataclasses import asdict

    from runner.cli.pace import paced
    from store.clock import SystemClock
    from store.runs import RunFolder, resolve
    from store.verify import verify as check
    from store.views import open_reader

    file = Path(run_name)
    if file.is_file() and not RunFolder(runs_dir / run_name).log.is_file():
        from runner.cli.bundling import verify_bundle

        return verify_bundle(file, as_json=as_json, time_limit_s=time_limit_s)
    folder = resolve(runs_dir, run_name)
    with open_reader(folder.log) as reader, paced(SystemClock()) as progress:
        report = check(reader, progress)
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
