"""The command `siftlog methods`: writes the methods text of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jobs.cli.label_folders import labels_option
from runner.cli import arguments, console
from runner.cli.console import DONE, print_json, print_note, print_raw, print_text

if TYPE_CHECKING:
    from jobs.kit.methods.reading import MethodsSource
    from jobs.kit.methods.references import QuotedValue

FORMS: Final = {".md": "markdown", ".tex": "latex", ".docx": "docx"}
"""Formats by file suffix."""


@click.command(short_help="Write a run's methods text.")
@arguments.run_argument
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMS.values()]),
    help="Format of the text; docx needs --out.  [default: by the ending of --out, "
    "else markdown]",
)
@click.option(
    "--scoring", type=int, help="Number of the scoring.  [default: the newest]"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the text there, and its prompts into a file next to it.",
)
@click.option(
    "--values",
    is_flag=True,
    help="Print every value that a manuscript can quote, marked with its name.",
)
@labels_option
@arguments.runs_dir
@arguments.as_json
def methods(
    run_name: str,
    form: str | None,
    scoring: int | None,
    out: Path | None,
    values: bool,
    labels_dir: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Write the methods text of RUN, with disclosures for RAISE and PRISMA 2020.

    It names models as served, dates, prompts, settings, outcomes, costs and deviations
    from the plan. Every number in it is marked with the name of its value, invisible to
    readers, so that siftlog check can recompute it. Texts in brackets are for the
    authors to complete. The scoring is replayed; no model is called.
    """
    from jobs.kit.methods.facts import references
    from jobs.kit.methods.reading import methods_source
    from runner.errors import UsageError
    from store.runs import resolve

    form = form or FORMS.get(out.suffix.lower() if out else "", "markdown")
    if form == "docx" and (out is None or values):
        raise UsageError(
            "--format docx writes a file: name it with --out FILE.docx, and leave out "
            "--values."
        )
    folder = resolve(runs_dir, run_name)
    console.relax_collector()
    source = methods_source(folder, scoring, labels_dir)
    known = references(source.record)
    prompts = None
    if out is not None and source.record.prompts and not values:
        prompts = out.with_name(f"{out.stem}-prompts.md")
    text = (
        _values([*known.values()], form) if values else _written(source, form, prompts)
    )
    if out is not None:
        _write(source, text, out, prompts)
    if as_json:
        recorded = source.record.scoring
        print_json(
            "siftlog.methods/1",
            {
                "run": folder.run_id,
                "scoring": None if recorded is None else recorded.number,
                "seq": source.seq,
                "format": form,
                "text": text,
                "file": None if out is None else str(out),
                "supplement": None if prompts is None else str(prompts),
                "values": [_value_json(reference) for reference in known.values()],
            },
        )
    elif out is None:
        print_raw(text or "")
        if source.record.prompts and not values:
            print_note("note: --out FILE also writes the prompts, for a supplement.")
    else:
        print_text("\n".join(str(file) for file in (out, prompts) if file is not None))
    return DONE


def _source_line(source: MethodsSource) -> str:
    from jobs.kit.methods.markup import source_line

    record = source.record
    number = None if record.scoring is None else record.scoring.number
    return source_line(record.started.run_id, number, source.seq)


def _written(source: MethodsSource, form: str, prompts: Path | None) -> str | None:
    """Return the text; None for a format that is not text."""
    from jobs.kit.methods.markup import latex, markdown
    from jobs.kit.methods.text import methods_text

    if form == "docx":
        return None
    blocks = methods_text(source.record, source.choice, has_supplement=bool(prompts))
    write = latex if form == "latex" else markdown
    return write(blocks, _source_line(source))


def _write(
    source: MethodsSource, text: str | None, out: Path, prompts: Path | None
) -> None:
    from jobs.kit.methods.docx import write_docx
    from jobs.kit.methods.supplement import supplement
    from jobs.kit.methods.text import methods_text

    if text is not None:
        out.write_text(text, encoding="utf-8")
    else:
        blocks = methods_text(
            source.record, source.choice, has_supplement=bool(prompts)
        )
        write_docx(out, blocks, _source_line(source))
    if prompts is not None:
        prompts.write_text(
            supplement(source.record, source.templates), encoding="utf-8"
        )


def _values(known: list[QuotedValue], form: str) -> str:
    """Return all values, one per line, as a manuscript quotes them."""
    from jobs.kit.methods.markup import latex_value, markdown_value

    marked = latex_value if form == "latex" else markdown_value
    return "".join(
        f"{marked(reference)}{f' {reference.unit}' if reference.unit else ''}\n"
        for reference in known
        if reference.has_value
    ).replace(" %\n", " \\%\n" if form == "latex" else " %\n")


def _value_json(reference: QuotedValue) -> dict[str, Any]:
    from jobs.kit.methods.references import model_text

    return {
        "name": reference.name,
        "value": reference.value if reference.has_value else None,
        "text": reference.text,
        "unit": reference.unit,
        "rounding": reference.rounding.value,
        "n": reference.n,
        "model": model_text(reference.model) or None,
    }
