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

    Its end is compared with what was acknowledged. Where the sidecar that says so is
    lost, or the log was copied without it, the end is called unproven.

    Of a BUNDLE, a file that siftlog bundle has made, every member is checked, and its
    scorecard is made again without a network. Nothing is written but temporary files.
    """
    from dataclasses import asdict

    from runner.cli.pace import paced
    from store.clock import SystemClock
    from store.errors import EventsLost
    from store.runs import RunFolder, resolve
    from store.verify import verify as check
    from store.views import open_reader

    file = Path(run_name)
    if file.is_file() and not RunFolder(runs_dir / run_name).log.is_file():
        from runner.cli.bundling import verify_bundle

        return verify_bundle(file, as_json=as_json, time_limit_s=time_limit_s)
    try:
        folder = resolve(runs_dir, run_name)
        ends = folder.ends()
    except EventsLost as error:
        tell(f"siftlog: {error}")
        if as_json:
            record({"run": run_name, "sound": False, "end": "lost", "faults": []})
        return CHECK_FAILED
    with open_reader(folder.log) as reader, paced(SystemClock()) as progress:
        report = check(reader, progress)
    lost = [end for end in ends if end.is_lost]
    unproven = [end for end in ends if end.acknowledged is None]
    is_sound = report.is_sound and not lost
    if as_json:
        record(
            {
                "run": folder.run_id,
                **asdict(report),
                "sound": is_sound,
                "end": "lost" if lost else "unproven" if unproven else "proven",
                "acknowledged": None
                if unproven
                else sum(end.acknowledged or 0 for end in ends),
                "lost_events": sum(end.lost for end in ends),
            }
        )
    for fault in report.faults:
        tell(f"siftlog: {folder.run_id}: {fault.where}: {fault.message}")
    for end in lost:
        tell(f"siftlog: {folder.run_id}: {end.sentence}")
    if not is_sound:
        return CHECK_FAILED
    if not as_json:
        text(
            f"{folder.run_id} is sound: {report.events:,} events in "
            f"{report.commits:,} commits, {report.blobs:,} message parts"
        )
        for end in ends:
            text(f"{end.sentence[0].upper()}{end.sentence[1:]}.")
    return DONE
