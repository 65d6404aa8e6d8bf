"""The command verify: checks a run's log, or a bundle, from end to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import arguments, console
from runner.cli.console import CHECK_FAILED, DONE, print_json, print_note, print_text
from store.document import floored

if TYPE_CHECKING:
    from runner.bundle.disclosure import DisclosureReport
    from runner.bundle.manifest import Manifest
    from runner.bundle.redacted_verify import RedactionReport
    from runner.bundle.verify import BundleReport
    from store.labels.folder import LabelLogReport
    from store.log.integrity import LogEnd
    from store.verify import VerifyReport

FILES: Final = {".zip", ".json"}
"""Suffixes of bundles and certificates."""


@click.command()
@click.argument("run_name", metavar="RUN|BUNDLE|CERTIFICATE")
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
@click.option(
    "--job",
    metavar="FILE.py[:NAME]",
    default="",
    help="With a bundle whose job is a Python file: that file.",
)
@click.option(
    "--disclosure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With a redacted bundle: check what this file of siftlog disclose opens.",
)
def verify(
    run_name: str,
    runs_dir: Path,
    as_json: bool,
    time_limit_s: float,
    job: str,
    disclosure: Path | None,
) -> int:
    """Check RUN's log: chain, order, hashes of texts, projections; exit 6 if wrong.

    Label logs in RUN/labels are checked in the same way.

    Compares the end of each log with the acknowledged events. Without the sidecar file
    that records them, the end is reported as unproven.

    For a BUNDLE made by siftlog bundle, checks every member and repeats the scoring
    without a network. Writes temporary files only. A redacted bundle has no texts to
    score: metrics are computed from the numbers that it has in their place.

    A CERTIFICATE that siftlog screen wrote (certificate.json, or all in RUN's folder)
    is computed again from label events and library.
    """
    from runner.certificates import checked_certificate
    from runner.cli.paced import paced_progress
    from store.clock import SystemClock
    from store.database import open_reader
    from store.errors import EventsLost
    from store.labels.folder import verify_labels
    from store.runs import RunFolder, certificates_in, resolve
    from store.verify import verify as check

    file = Path(run_name)
    if file.is_file() and not RunFolder(runs_dir / run_name).log.is_file():
        if file.suffix == ".json":
            return _verify_certificate(file, as_json=as_json)
        return _verify_bundle(
            file,
            as_json=as_json,
            time_limit_s=time_limit_s,
            job=job,
            disclosure=disclosure,
        )
    _check_is_run(file, job, disclosure)
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
    certificates = [checked_certificate(path) for path in certificates_in(folder.path)]
    lost = [end for end in ends if end.has_loss]
    unproven = [end for end in ends if end.acknowledged is None]
    problems = [f"{fault.where}: {fault.message}" for fault in report.faults]
    problems += [end.sentence for end in lost]
    problems += [f"{log.log.name}: {what}" for log in labels for what in log.problems]
    problems += [f"{one.name}: {what}" for one in certificates for what in one.problems]
    is_sound = not problems
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
                "certificates": [one.as_json for one in certificates],
            },
        )
    for problem in problems:
        print_note(f"siftlog: {folder.run_id}: {problem}")
    if not is_sound:
        return CHECK_FAILED
    if not as_json:
        print_text(
            f"{folder.run_id} is sound: {report.events:,} events in "
            f"{report.commits:,} commits, {report.blobs:,} message parts"
        )
        for sentence in (
            *_ends(ends, labels),
            *(certificate.sentence for certificate in certificates),
        ):
            print_text(sentence)
    return DONE


def _check_is_run(file: Path, job: str, disclosure: Path | None) -> None:
    """Raise `UsageError` if a name is of a missing file, or an option is of bundles."""
    from runner.errors import UsageError

    if file.suffix in FILES and not file.exists():
        raise UsageError(
            f"There is no file {file}; siftlog bundle and siftlog screen print the "
            "path of what they write."
        )
    if job or disclosure is not None:
        option = "--job" if job else "--disclosure"
        raise UsageError(f"{option} is of a bundle: name the bundle's file.")


def _verify_certificate(path: Path, *, as_json: bool) -> int:
    """Compute the certificate at *path* again; exit 6 if anything differs."""
    from runner.certificates import checked_certificate

    checked = checked_certificate(path)
    if as_json:
        print_json("siftlog.certificate-verify/1", checked.as_json)
    for problem in checked.problems:
        print_note(f"siftlog: {checked.name}: {problem}")
    if not checked.is_sound:
        return CHECK_FAILED
    if not as_json:
        print_text(checked.sentence)
    return DONE


def _ends(ends: Sequence[LogEnd], labels: Sequence[LabelLogReport]) -> Iterator[str]:
    """Yield what is known of the end of each log, and of the label logs."""
    for end in ends:
        yield f"{end.sentence[0].upper()}{end.sentence[1:]}."
    if labels:
        events = sum(log.report.events for log in labels if log.report)
        count = f"{len(labels):,} label log{'s' if len(labels) != 1 else ''}"
        yield f"{count} with {events:,} events checked too."


def _verify_bundle(
    path: Path,
    *,
    as_json: bool,
    time_limit_s: float,
    job: str,
    disclosure: Path | None,
) -> int:
    """Check the bundle at *path*; exit 6 if anything in it differs."""
    from runner.bundle.disclosure import check_disclosure, read_disclosure
    from runner.bundle.manifest import RedactedManifest
    from runner.bundle.verify import check
    from runner.cli.paced import paced_progress
    from runner.cli.run_steps import CLOCK
    from runner.errors import UsageError

    console.relax_collector()
    until = CLOCK.monotonic() + (time_limit_s or float("inf"))
    claimed = None if disclosure is None else read_disclosure(disclosure)
    proofs: list[DisclosureReport] = []

    def use(folder: Path, manifest: Manifest) -> None:
        if claimed is None:
            return
        if not isinstance(manifest, RedactedManifest):
            raise UsageError(f"{path} is not redacted: leave out --disclosure.")
        proofs.append(check_disclosure(claimed, folder, manifest))

    with paced_progress(CLOCK) as progress:
        verification = check(
            path,
            progress,
            job=job,
            is_late=lambda: CLOCK.monotonic() >= until,
            use=use,
        )
    manifest, log = verification.manifest, verification.log
    problems = [problem for proof in proofs for problem in proof.problems]
    if as_json:
        print_json("siftlog.bundle-verify/1", _fields(path, verification, proofs))
    for fault in verification.faults:
        print_note(f"siftlog: {path.name}: {fault.where}: {fault.message}")
    for problem in problems:
        print_note(f"siftlog: {disclosure}: {problem}")
    if not verification.is_sound or problems or manifest is None or log is None:
        return CHECK_FAILED
    if not as_json:
        _print_sound(path, verification, manifest, log)
        for proof in proofs:
            _print_proof(proof)
    return DONE


def _fields(
    path: Path, verification: BundleReport, proofs: Sequence[DisclosureReport]
) -> dict[str, Any]:
    """Return the fields of `--json`."""
    manifest, log = verification.manifest, verification.log
    redaction = verification.redaction
    return {
        "bundle": str(path),
        "run": manifest.run if manifest else None,
        "scoring": manifest.scoring if manifest else None,
        "sound": verification.is_sound and all(proof.is_sound for proof in proofs),
        "members": len(manifest.members) + 1 if manifest else None,
        "events": log.events if log else None,
        "commits": log.commits if log else None,
        "head": manifest.head if manifest else None,
        "digest": manifest.digest if manifest else None,
        "partial": manifest.partial if manifest else None,
        "rebuilt": verification.is_rebuilt,
        "differs": list(verification.differs),
        "faults": [asdict(fault) for fault in verification.faults],
        "redacted": None if redaction is None else asdict(redaction),
        "disclosure": asdict(proofs[0]) if proofs else None,
    }


def _print_sound(
    path: Path, verification: BundleReport, manifest: Manifest, log: VerifyReport
) -> None:
    """Print what a sound bundle holds, and what came out the same."""
    redaction = verification.redaction
    outcome = (
        f"scorecard.json of scoring {manifest.scoring} came out the same again, "
        "without a network"
        if redaction is None
        else f"redacted, with {redaction.commitments:,} commitments and "
        f"{redaction.verdicts:,} verdicts; {_recomputed(redaction, manifest.scoring)}"
    )
    print_text(
        f"{path.name} is sound: {len(manifest.members) + 1:,} members, "
        f"{log.events:,} events in {log.commits:,} commits of run {manifest.run}; "
        f"{outcome}"
    )
    if redaction is not None and not redaction.unavailable:
        for name, stated in redaction.certificates.items():
            print_text(
                f"{name}: {stated['labelled']:,} of {stated['records']:,} records "
                f"labelled, recall at least {floored(stated['recall_at_least'])} "
                f"(target {stated['target']:g}), computed again from the order of "
                "draws and labels"
            )
    if manifest.partial:
        print_text("partial: the run was unfinished")


def _recomputed(redaction: RedactionReport, scoring: int) -> str:
    """Say how many metrics came out the same, and from what."""
    if redaction.unavailable:
        return (
            f"no metric of scoring {scoring} was computed again, for "
            f"{redaction.unavailable}"
        )
    return (
        f"{redaction.recomputed:,} of {redaction.metrics:,} metrics of scoring "
        f"{scoring} came out the same from "
        f"{'numbers' if redaction.by_frame else 'recorded values'}"
    )


def _print_proof(proof: DisclosureReport) -> None:
    """Print what a disclosure proves, a line for each task."""
    print_text(f"{proof.openings:,} values are those that the bundle commits to:")
    for place in proof.whole:
        print_text(f"  {place}")
    for task in proof.tasks:
        counts = [
            f"{number} {sort}"
            for number, sort in (
                (task.parts, f"of {task.of_parts} parts of the prompt"),
                (task.replies, "reply" if task.replies == 1 else "replies"),
                (task.verdicts, "texts of verdicts"),
            )
            if number
        ]
        item = "of an item that is not opened" if task.item is None else task.item
        print_text(
            f"  task {task.task}, {task.stage}, {task.model}, {item}: "
            + ", ".join(counts)
        )
