"""The command bundle: packs a scoring and all its inputs in one file."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import arguments, console
from runner.cli.console import DONE, print_json, print_note, print_text


@click.command()
@arguments.run_argument
@click.option(
    "--scoring", type=int, help="Number of the scoring.  [default: the newest]"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output file; replaced if it exists.  [default: in the run's exports folder]",
)
@arguments.option(
    "--labels",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Pack the label logs of this folder too, which several runs may share.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Put commitments in place of texts, prompts and replies.",
)
@click.option(
    "--secret",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the secret of a redacted bundle, made if missing; keep it to "
    "yourself.  [default: next to the bundle]",
)
@arguments.no_report
@arguments.runs_dir
@arguments.as_json
def bundle(
    run_name: str,
    scoring: int | None,
    out: Path | None,
    labels: Path | None,
    redact: bool,
    secret: Path | None,
    no_report: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Pack a scoring of RUN, with everything needed to repeat it, into one file.

    The file is a zip archive of the log, the configuration, the inputs, the scoring's
    files and all package versions, with a hash of each. It contains texts, answers,
    paths and the name of this machine, but no keys. siftlog verify FILE checks it; so
    does this command before it writes the file.

    With --redact, it has salted commitments in place of texts, prompts and replies.
    siftlog verify computes the metrics from numbers, and siftlog disclose opens what
    you choose later.
    """
    from runner.bundle.pack import make_bundle
    from runner.bundle.redacted_pack import make_redacted_bundle
    from runner.cli.paced import paced_progress
    from runner.cli.run_steps import CLOCK
    from runner.errors import UsageError
    from store.runs import resolve

    if secret is not None and not redact:
        raise UsageError("--secret is of a redacted bundle: add --redact.")
    folder = resolve(runs_dir, run_name)
    console.relax_collector()
    environ = arguments.environment()
    secret_path = None
    with paced_progress(CLOCK) as progress:
        if redact:
            packed, secret_path = make_redacted_bundle(
                folder,
                scoring,
                out,
                secret,
                labels=labels,
                environ=environ,
                progress=progress,
            )
        else:
            packed = make_bundle(
                folder,
                scoring,
                out,
                report=not no_report,
                labels=labels,
                environ=environ,
                progress=progress,
            )
    manifest = packed.manifest
    if manifest.partial:
        print_note(
            f"partial: the run is unfinished; event {manifest.events:,} is the last."
        )
    if as_json:
        print_json(
            "siftlog.bundle/1",
            {
                "run": folder.run_id,
                "scoring": manifest.scoring,
                "file": str(packed.path),
                "bytes": packed.size,
                "sha256": packed.sha256,
                "members": len(manifest.members) + 1,
                "events": manifest.events,
                "head": manifest.head,
                "digest": manifest.digest,
                "partial": manifest.partial,
                "secret": None if secret_path is None else str(secret_path),
            },
        )
        return DONE
    print_text(str(packed.path))
    print_text(f"{packed.size:,} bytes, SHA-256 {packed.sha256}")
    if secret_path is not None:
        print_text(
            f"redacted; {secret_path} opens it: keep that file, and do not share it"
        )
    return DONE
