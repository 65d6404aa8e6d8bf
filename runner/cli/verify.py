"""The command verify: checks a run's log, or a bundle, from end to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import arguments, console
from runner.cli.console import CHECK_FAILED, DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from store.labels.folder import LabelLogReport
    from store.log.integrity import LogEnd


@click.command()
@click.argument("run_name", metavar="RUN|BUNDLE")
@arguments.runs_dir
@arguments.as_json
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="With a bundle: stop after this time; 0: never.",
)
def verify(run_name: str, runs_dir: Path, as_json: bool, time_limit_s: float) -> int:
    """Check RUN's log: chain, order, hashes of texts, projections; exit 6 if wrong.

    Label logs in RUN/labels are checked in the same way.

    Compares the end of each log with the acknowledged events. Without the sidecar file
    that records them, the end is reported as unproven.

    For a BUNDLE made by siftlog bundle, checks every member and repeats the scoring
    without a network. Writes temporary files only.
    """
    from runner.cli.progress import paced_progress
    from store.clock import SystemClock
    from store.database import open_reader
    from store.errors import EventsLost
    from store.labels.folder import verify_labels
    from store.runs import RunFolder, resolve
    from store.verify import verify as check

    file = Path(run_name)
    if file.is_file() and not RunFolder(runs_dir / run_name).log.is_file():
        return _verify_bundle(file, as_json=as_json, time_limit_s=time_limit_s)
    try:
        folder = resolve(runs_dir, run_name)
        ends = folder.ends()
    except EventsLost as error:
        print_note(f"siftlog: {error}")
        if as_json:
            print_json(
                "siftlog.verify/1",
                {"run": run_name, "sound": False, "end": "lost", "faults": []},
            )
        return CHECK_FAILED
    with open_reader(folder.log) as reader, paced_progress(SystemClock()) as progress:
        report = check(reader, progress)
        labels = verify_labels(folder.labels, progress)
    lost = [end for end in ends if end.has_loss]
    unproven = [end for end in ends if end.acknowledged is None]
    is_sound = report.is_sound and not lost and all(log.is_sound for log in labels)
    if as_json:
        print_json(
            "siftlog.verify/1",
            {
                "run": folder.run_id,
                **asdict(report),
                "sound": is_sound,
                "end": "lost" if lost else "unproven" if unproven else "proven",
                "acknowledged": None
                if unproven
                else sum(end.acknowledged or 0 for end in ends),
                "lost_events": sum(end.lost_events for end in ends),
                "labels": [
                    {
                        "log": log.log.name,
                        "events": log.report.events if log.report else None,
                        "sound": log.is_sound,
                        "problems": log.problems,
                    }
                    for log in labels
                ],
            },
        )
    problems = [f"{fault.where}: {fault.message}" for fault in report.faults]
    problems += [end.sentence for end in lost]
    problems += [f"{log.log.name}: {what}" for log in labels for what in log.problems]
    for problem in problems:
        print_note(f"siftlog: {folder.run_id}: {problem}")
    if not is_sound:
        return CHECK_FAILED
    if not as_json:
        print_text(
            f"{folder.run_id} is sound: {report.events:,} events in "
            f"{report.commits:,} commits, {report.blobs:,} message parts"
        )
        for sentence in _ends(ends, labels):
            print_text(sentence)
    return DONE


def _ends(ends: Sequence[LogEnd], labels: Sequence[LabelLogReport]) -> Iterator[str]:
    """Yield what is known of the end of each log, and of the label logs."""
    for end in ends:
        yield f"{end.sentence[0].upper()}{end.sentence[1:]}."
    if labels:
        events = sum(log.report.events for log in labels if log.report)
        count = f"{len(labels):,} label log{'s' if len(labels) != 1 else ''}"
        yield f"{count} with {events:,} events checked too."


def _verify_bundle(path: Path, *, as_json: bool, time_limit_s: float) -> int:
    """Check the bundle at *path*; exit 6 if anything in it differs."""
    from runner.bundle.verify import check
    from runner.cli.progress import paced_progress
    from runner.cli.run_steps import CLOCK

    console.relax_collector()
    until = CLOCK.monotonic() + (time_limit_s or float("inf"))
    with paced_progress(CLOCK) as progress:
        verification = check(path, progress, is_late=lambda: CLOCK.monotonic() >= until)
    manifest, log = verification.manifest, verification.log
    if as_json:
        print_json(
            "siftlog.bundle-verify/1",
            {
                "bundle": str(path),
                "run": manifest.run if manifest else None,
                "scoring": manifest.scoring if manifest else None,
                "sound": verification.is_sound,
                "members": len(manifest.members) + 1 if manifest else None,
                "events": log.events if log else None,
                "commits": log.commits if log else None,
                "head": manifest.head if manifest else None,
                "digest": manifest.digest if manifest else None,
                "partial": manifest.partial if manifest else None,
                "rebuilt": verification.is_rebuilt,
                "differs": list(verification.differs),
                "faults": [asdict(fault) for fault in verification.faults],
            },
        )
    for fault in verification.faults:
        print_note(f"siftlog: {path.name}: {fault.where}: {fault.message}")
    if not verification.is_sound or manifest is None or log is None:
        return CHECK_FAILED
    if not as_json:
        print_text(
            f"{path.name} is sound: {len(manifest.members) + 1:,} members, "
            f"{log.events:,} events in {log.commits:,} commits of run {manifest.run}; "
            f"scorecard.json of scoring {manifest.scoring} came out the same again, "
            f"without a network"
        )
        if manifest.partial:
            print_text("partial: the run was unfinished")
    return DONE
