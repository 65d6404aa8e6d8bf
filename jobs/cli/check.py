"""The command `siftlog check`: compares numbers of a manuscript with a run's log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.label_folders import labels_option
from runner.cli import arguments, console
from runner.cli.console import CHECK_FAILED, DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from jobs.kit.methods.check import ManuscriptVerdict
    from jobs.kit.methods.manuscript import Manuscript
    from jobs.kit.methods.reading import CheckBasis


@click.command(short_help="Check a manuscript's numbers against a run or bundle.")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--bundle",
    "bundle_name",
    metavar="RUN|BUNDLE",
    help="Source of the numbers.  [default: the run that the first file names]",
)
@click.option(
    "--scoring",
    type=int,
    help="With a run: number of the scoring.  [default: the newest]",
)
@click.option(
    "--any-precision",
    is_flag=True,
    help="Accept values that are correctly rounded to other digits.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="With a bundle: stop after this time; 0: never.",
)
@labels_option
@arguments.runs_dir
@arguments.as_json
def check(
    files: tuple[Path, ...],
    bundle_name: str | None,
    scoring: int | None,
    any_precision: bool,
    time_limit_s: float,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Check the numbers of a manuscript (.md, .tex or .docx); exit 6 if one is wrong.

    Recomputes every value that siftlog methods has marked, by replaying the log of the
    run or bundle: another value, rounding, denominator or model, values that changed
    since, unknown names. Numbers without a mark are never reported as wrong; those in
    sentences that name a metric are counted as not checked.
    """
    from jobs.kit.methods.check import check_manuscript
    from jobs.kit.methods.manuscript import unchecked_numbers
    from jobs.kit.methods.reading import basis_of_run
    from runner.errors import DatasetError
    from store.runs import RunFolder, resolve

    manuscripts = {file: _read(file) for file in files}
    name = bundle_name or _named(manuscripts)
    console.relax_collector()
    results: dict[Path, tuple[ManuscriptVerdict, int]] = {}
    bases: list[CheckBasis] = []

    def compare(basis: CheckBasis) -> None:
        bases.append(basis)
        for file, manuscript in manuscripts.items():
            verdict = check_manuscript(
                manuscript,
                basis.known,
                basis.run,
                earlier=basis.earlier,
                any_precision=any_precision,
                redacted=basis.redacted,
            )
            if not verdict.checked:
                raise DatasetError(
                    f"{file} has no value of run {basis.run}: siftlog methods "
                    f"{basis.run} writes a text that has, and --values prints all."
                )
            words = unchecked_numbers(manuscript, basis.metric_words)
            results[file] = verdict, words

    bundle = Path(name)
    if bundle.is_file() and not RunFolder(runs_dir / name).log.is_file():
        if not _use_bundle(bundle, compare, time_limit_s):
            return CHECK_FAILED
    else:
        basis_of_run(resolve(runs_dir, name), scoring, labels_dir, compare)
    (basis,) = bases
    for note in basis.notes:
        print_note(f"note: {note}.")
    for file, (verdict, unchecked) in results.items():
        _print(file, basis, verdict, unchecked, as_json=as_json)
    is_sound = not any(verdict.faults for verdict, _ in results.values())
    return DONE if is_sound else CHECK_FAILED


def _read(file: Path) -> Manuscript:
    from jobs.kit.methods.docx import read_docx
    from jobs.kit.methods.manuscript import read_manuscript
    from runner.errors import DatasetError

    if file.suffix.lower() == ".docx":
        return read_docx(file)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{file} is not UTF-8 ({error.reason} at byte {error.start}): save it as "
            "UTF-8."
        ) from error
    is_latex = file.suffix.lower() in {".tex", ".ltx"}
    return read_manuscript(text, "latex" if is_latex else "markdown")


def _named(manuscripts: dict[Path, Manuscript]) -> str:
    """Return the run that the manuscripts name as their source."""
    from runner.errors import UsageError

    for manuscript in manuscripts.values():
        for source in manuscript.sources:
            return source.run
    raise UsageError(
        "The manuscript does not say which run it is about: name it with --bundle "
        "RUN, or a bundle with --bundle FILE."
    )


def _use_bundle(bundle: Path, compare: Any, time_limit_s: float) -> bool:  # noqa: ANN401 - a function
    """Compare with a bundle; return whether the bundle is sound."""
    from jobs.kit.methods.reading import basis_of_bundle
    from runner.cli.paced import paced_progress
    from runner.cli.run_steps import CLOCK

    until = CLOCK.monotonic() + (time_limit_s or float("inf"))
    with paced_progress(CLOCK) as progress:
        report = basis_of_bundle(
            bundle, compare, progress, lambda: CLOCK.monotonic() >= until
        )
    for fault in report.faults:
        print_note(f"siftlog: {bundle.name}: {fault.where}: {fault.message}")
    return report.is_sound


def _print(
    file: Path,
    basis: CheckBasis,
    verdict: ManuscriptVerdict,
    unchecked: int,
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json(
            "siftlog.manuscript/1",
            {
                "file": str(file),
                "run": basis.run,
                "scoring": basis.scoring,
                "sound": not verdict.faults,
                "checked": verdict.checked,
                "other_runs": verdict.elsewhere,
                "redacted": verdict.redacted,
                "not_checked": unchecked,
                "faults": [
                    {**asdict(fault), "sentence": fault.sentence}
                    for fault in verdict.faults
                ],
            },
        )
        return
    for fault in verdict.faults:
        print_text(f"{file}:{fault.line}:{fault.column}: {fault.sentence}")
    counts = [
        f"{verdict.checked:,} values checked against run {basis.run}",
        f"{len(verdict.faults):,} wrong",
    ]
    if verdict.elsewhere:
        counts.append(f"{verdict.elsewhere:,} of other runs")
    if verdict.redacted:
        counts.append(f"{verdict.redacted:,} of texts or models that the bundle hides")
    if unchecked:
        counts.append(f"{unchecked:,} numbers beside metrics not checked")
    print_text(f"{file}: {', '.join(counts)}")
