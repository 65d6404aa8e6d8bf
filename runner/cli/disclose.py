"""The command disclose: proves chosen items of a redacted bundle to others."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import arguments, console
from runner.cli.console import DONE, print_json, print_text


@click.command()
@arguments.run_argument
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The redacted bundle.  [default: the newest in the run's exports folder]",
)
@click.option(
    "--secret",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Its secret.  [default: next to the bundle]",
)
@click.option(
    "--only",
    "what",
    multiple=True,
    type=click.Choice(("text", "prompt", "reply", "verdict")),
    help="Open only this of each item; repeatable. text: what the user's messages "
    "hold; prompt: all of the request.  [default: everything]",
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Open the task of this number, which a reader of the bundle can name.",
)
@click.option(
    "--whole",
    is_flag=True,
    help="Open the scorecard as it was, and the last hash of the original log.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output file; replaced if it exists.  [default: BUNDLE.disclosure.json]",
)
@arguments.runs_dir
@arguments.as_json
def disclose(
    run_name: str,
    items: tuple[str, ...],
    bundle: Path | None,
    secret: Path | None,
    what: tuple[str, ...],
    tasks: tuple[int, ...],
    whole: bool,
    out: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Prove what a redacted bundle of RUN holds about ITEMs.

    ITEM is a key, such as siftlog tasks lists. The file has the chosen texts with their
    salts, and nothing else becomes known. Whoever has the bundle checks it with siftlog
    verify BUNDLE --disclosure FILE.
    """
    from runner.bundle.disclosure import disclose_items
    from runner.cli.paced import paced_progress
    from runner.cli.run_steps import CLOCK
    from runner.errors import UsageError
    from store.runs import resolve

    if not items and not tasks and not whole:
        raise UsageError("Nothing is chosen: name an ITEM, or add --task or --whole.")
    folder = resolve(runs_dir, run_name)
    console.relax_collector()
    with paced_progress(CLOCK) as progress:
        written = disclose_items(
            folder,
            items,
            frozenset(what),
            whole=whole,
            tasks=tasks,
            bundle=bundle,
            secret=secret,
            out=out,
            progress=progress,
        )
    if as_json:
        print_json(
            "siftlog.disclosure-file/1",
            {
                "run": folder.run_id,
                "bundle": str(written.bundle),
                "file": str(written.file),
                "openings": written.openings,
                "items": list(items),
            },
        )
        return DONE
    print_text(str(written.file))
    print_text(
        f"opens {written.openings:,} values; check with: siftlog verify "
        f"{written.bundle} --disclosure {written.file}"
    )
    return DONE
