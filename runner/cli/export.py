"""The command export: writes tables or folders, or sends OpenTelemetry traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from runner.exports import FORMS

if TYPE_CHECKING:
    import sqlite3

    from runner.otlp import SendResult
    from runner.table_files import ExportTable, Record
    from runner.telemetry import Tracing
    from store.events import ScoringRecorded
    from store.runs import RunFolder


DEFAULT: Final = ("tasks", "answers")
"""Tables exported by default; scores are left out because they need a scoring."""

PROGRESS_ROWS: Final = 1_000
"""Rows between two progress messages, so that the clock is not read for each."""


@click.command()
@arguments.run_argument
@click.argument(
    "subjects",
    nargs=-1,
    type=click.Choice(["tasks", "answers", "scores"]),
    metavar="[tasks|answers|scores]...",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv", "parquet", "xlsx"]),
    help="File format.  [default: jsonl]",
)
@click.option(
    "--scoring",
    type=int,
    help="Scoring to export.  [default: the newest]",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Send traces and metrics to an OpenTelemetry collector instead, such "
    "as http://127.0.0.1:4318.",
)
@click.option(
    "--to",
    "to",
    type=(click.Choice(FORMS), click.Path(path_type=Path)),
    metavar="FORM OUT",
    help=f"Write a new folder OUT for another program instead, as {', '.join(FORMS)}.",
)
@click.option(
    "--prompts/--no-prompts",
    default=True,
    help="Include the exact prompts of answers.  [default: prompts]",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would happen, without doing it."
)
@arguments.runs_dir
@arguments.as_json
def export(
    run_name: str,
    subjects: tuple[str, ...],
    form: str | None,
    scoring: int | None,
    otlp: str | None,
    to: tuple[str, Path] | None,
    prompts: bool,
    dry_run: bool,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Write RUN's tasks, answers and scores as tables into its exports folder.

    The default is tasks and answers, with the exact prompt beside each answer. Scores
    are the metrics of a scoring, its verdicts by task and the tables of the job, from
    a fresh replay that must reproduce its numbers. A run may be exported at any time
    and repeatedly: files are replaced, and spans and metrics keep their ids.

    With --to, the run is written for another program: answers, with the verdicts and
    metrics of a scoring if there is one. An existing folder is never changed.
    """
    from runner.errors import UsageError
    from store.runs import resolve

    if otlp is not None and (subjects or form or scoring is not None):
        raise UsageError(
            "--otlp sends traces and metrics, and writes no file: export tables by "
            "another command, without it."
        )
    if to is not None and (subjects or form or otlp is not None or dry_run):
        raise UsageError(
            "--to writes one folder with everything in it: leave out tables, --format, "
            "--otlp and --dry-run."
        )
    if scoring is not None and to is None and "scores" not in subjects:
        raise UsageError("--scoring is about scores: say export RUN scores.")
    folder = resolve(runs_dir, run_name)
    if otlp is not None:
        return _send(folder, otlp, dry_run=dry_run, as_json=as_json)
    if to is not None:
        return _write_folder(folder, *to, scoring, prompts=prompts, as_json=as_json)
    selected_subjects = tuple(dict.fromkeys(subjects or DEFAULT))
    return _write(
        folder,
        selected_subjects,
        form or "jsonl",
        scoring,
        prompts=prompts,
        dry_run=dry_run,
        as_json=as_json,
    )


def _write(
    folder: RunFolder,
    subjects: tuple[str, ...],
    form: str,
    scoring: int | None,
    *,
    prompts: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    from runner import table_files
    from runner.cli.paced import paced_progress
    from runner.score.repeat import chosen
    from store.clock import SystemClock
    from store.database import open_reader
    from store.read.status import scorings
    from store.tables import visible_seq

    if form == "parquet":
        table_files.require_parquet("--format parquet")
    with ExitStack() as stack:
        reader = stack.enter_context(open_reader(folder.log))
        through_seq = visible_seq(reader)
        recorded = None
        if "scores" in subjects:
            recorded = chosen(
                folder.run_id, scorings(reader), scoring, is_alive=folder.is_alive()
            )
        progress = stack.enter_context(paced_progress(SystemClock()))
        tables = (
            replace(table, rows=_rows_with_progress(table, progress))
            for table in _tables(
                folder, subjects, reader, through_seq, recorded, stack, prompts=prompts
            )
        )
        put = table_files.planned_files if dry_run else table_files.write
        files = put(folder.exports, form, tables)
    if as_json:
        print_json(
            "siftlog.export/1",
            {
                "run": folder.run_id,
                "dry_run": dry_run,
                "seq": through_seq,
                "scoring": None if recorded is None else recorded.number,
                "files": [
                    {"file": str(file.path), "rows": file.rows, "bytes": file.size}
                    for file in files
                ],
            },
        )
        return DONE
    for file in files:
        print_text(str(file.path))
        if dry_run:
            print_note(f"dry run: {file.path.name} would have {file.rows:,} rows.")
    return DONE


def _write_folder(
    folder: RunFolder,
    form: str,
    out: Path,
    scoring: int | None,
    *,
    prompts: bool,
    as_json: bool,
) -> int:
    from runner.cli.console import relax_collector
    from runner.cli.paced import paced_progress
    from runner.exports.folder import export_folder, refuse_existing
    from runner.exports.source import open_source
    from store.clock import SystemClock

    refuse_existing(out)
    relax_collector()
    with (
        paced_progress(SystemClock()) as progress,
        open_source(
            folder,
            scoring,
            out,
            prompts=prompts,
            environ=arguments.environment(),
            progress=progress,
        ) as source,
    ):
        files = export_folder(form, source)
        recorded = source.scoring
    if as_json:
        print_json(
            "siftlog.folder-export/1",
            {
                "run": folder.run_id,
                "form": form,
                "folder": str(out),
                "seq": source.through_seq,
                "scoring": None if recorded is None else recorded.number,
                "files": [{"file": str(f.path), "bytes": f.size} for f in files],
            },
        )
        return DONE
    for file in files:
        print_text(str(file.path))
    if recorded is None:
        print_note(
            f"note: run {folder.run_id} has no scoring: the export has answers alone."
        )
    return DONE


def _tables(
    folder: RunFolder,
    subjects: tuple[str, ...],
    reader: sqlite3.Connection,
    through_seq: int,
    recorded: ScoringRecorded | None,
    stack: ExitStack,
    *,
    prompts: bool,
) -> Iterator[ExportTable]:
    """Yield the requested tables in order; *stack* closes what scores open."""
    from runner import export

    for subject in subjects:
        if subject == "tasks":
            yield export.tasks(reader, through_seq)
        elif subject == "answers":
            yield export.answers(reader, through_seq, prompts=prompts)
        elif recorded is not None:
            from runner.export import scores

            yield from stack.enter_context(scores(folder, recorded))


def _rows_with_progress(
    table: ExportTable, progress: Callable[[str], None]
) -> Iterator[Record]:
    """Yield the rows of a table and report their number at intervals."""
    for number, row in enumerate(table.rows, 1):
        yield row
        if number % PROGRESS_ROWS == 0:
            progress(f"{table.name}: {number:,} rows")


def _send(folder: RunFolder, typed: str, *, dry_run: bool, as_json: bool) -> int:
    from runner.cli.paced import paced_progress
    from runner.telemetry import VERSION, Tracing, base_of
    from store.clock import SystemClock
    from store.database import open_reader

    base = base_of(typed)
    with open_reader(folder.log) as reader, paced_progress(SystemClock()) as progress:
        tracing = Tracing(reader, progress)
        sent = None if dry_run else _sent(tracing, base)
        if sent is None:
            for _ in tracing:
                pass  # counted, not sent
    spans = tracing.measured.spans
    if as_json:
        print_json(
            "siftlog.trace-export/1",
            {
                "run": folder.run_id,
                "dry_run": dry_run,
                "seq": tracing.through_seq,
                "collector": base,
                "conventions": VERSION,
                "spans": spans,
                "refused": sent.refused if sent else 0,
                "untaken": [*sent.untaken] if sent else [],
                "partial": not tracing.is_ended,
            },
        )
    else:
        done = "would be sent" if dry_run else "sent"
        print_text(f"{spans:,} {'span' if spans == 1 else 'spans'} {done} to {base}")
    if sent and sent.refused:
        print_note(
            f"note: the collector refused {sent.refused:,} spans; see its own log."
        )
    for signal in sent.untaken if sent else ():
        print_note(f"note: the collector takes no {signal}; the rest was sent.")
    if tracing.first.imported:
        print_note("note: the answers were imported: there are no calls to export.")
    if not tracing.is_ended:
        print_note(
            "partial: the run is unfinished; export it again when it "
            "has ended, nothing is duplicated."
        )
    return DONE


def _sent(tracing: Tracing, base: str) -> SendResult:
    from runner.errors import RunnerError

    try:
        from runner.otlp import send
    except ModuleNotFoundError as error:
        raise RunnerError(
            "--otlp needs OpenTelemetry: install it with pip install 'siftlog[otel]'."
        ) from error
    return send(tracing, base)
