"""Writes a data set folder for the Hugging Face hub: Parquet files and their card.

`datasets.load_dataset(FOLDER, "answers")` reads a table; the card names them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runner import export
from runner.exports.source import ExportSource
from runner.scorecard import Metric
from runner.table_files import ExportTable, require_parquet, write_parquet
from runner.table_rendering import format_ends, format_number
from store.clock import iso_time

CARD: Final = "README.md"

_PREFIX: Final = "scores"
"""Begins the names of a scoring's tables; the names of files leave it out."""

_DESCRIPTIONS: Final = {
    "answers": "one row for each completed task: reply, usage, served model, prompt",
    "tasks": "one row for each task: its state, attempts, errors and cost",
    "metrics": "one row for each metric of a model, with its interval and definition",
    "verdicts": "one row for each judged answer: its value, the truth, right or wrong",
}

_LICENSE: Final = (
    "No license is stated: papers, prompts and replies have licenses of their own. Add "
    "one to this card before you publish it."
)


def write(source: ExportSource, folder: Path) -> Iterator[Path]:
    """Write the tables and the card into *folder*; yield each file.

    Tables without rows are left out.

    Raises:
        UsageError: the extra `parquet` is not installed.
        RunnerError: the scoring cannot be repeated.
    """
    require_parquet("--to hugging-face")
    data = folder / "data"
    data.mkdir()
    rows: dict[str, int] = {}
    for table in _tables(source):
        name = table.name.removeprefix(f"{_PREFIX}/").replace("/", "-")
        source.progress(f"{name} is written")
        path = data / f"{name}.parquet"
        count = write_parquet(path, table)
        if not count:
            path.unlink()
            continue
        rows[name] = count
        yield path
    card = folder / CARD
    card.write_text(_card(source, rows), "utf-8")
    yield card


def _tables(source: ExportSource) -> Iterator[ExportTable]:
    yield export.answers(source.reader, source.through_seq, prompts=source.with_prompts)
    yield export.tasks(source.reader, source.through_seq)
    if source.card is not None:
        yield from export.card_tables(source.card, _PREFIX, source.leaving)


def _card(source: ExportSource, rows: dict[str, int]) -> str:
    """Return the card: YAML for the hub, then a description for people."""
    first = source.first
    title = f"Run {first.run_id} of siftlog job {first.job}"
    lines = ["---", f"pretty_name: {_quoted(title)}", "tags:", "- siftlog", "configs:"]
    for name in rows:
        lines += [
            f"- config_name: {_quoted(name)}",
            f"  data_files: {_quoted(f'data/{name}.parquet')}",
        ]
        if name == "answers":
            lines.append("  default: true")
    state = source.status
    origin = (
        f"Answers of {', '.join(source.models)} in the job {first.job} "
        f"{first.job_version}, made by siftlog {first.siftlog_version} from "
        f"{iso_time(state.created_us)} to {iso_time(source.ended_us)}: "
        f"{state.tasks.completed:,} tasks completed, {state.tasks.failed:,} failed, "
        f"{state.tasks.skipped:,} skipped, {state.tasks.open:,} open."
    )
    lines += ["---", "", f"# {title}", "", origin, ""]
    lines += [
        "| table | rows | content |",
        "|---|---|---|",
        *(
            f"| {name} | {count:,} | {_DESCRIPTIONS.get(name, 'a table of the job')} |"
            for name, count in rows.items()
        ),
    ]
    for model in source.models:
        headlines = [m for m in source.metrics(model) if m.is_headline]
        if headlines:
            lines += ["", f"## {model}", "", "| metric | value | interval | n |"]
            lines += ["|---|---|---|---|", *map(_metric_row, headlines)]
    return "\n".join([*lines, "", _LICENSE, ""])


def _metric_row(metric: Metric) -> str:
    has_interval = metric.lo is not None and metric.hi is not None
    interval = " to ".join(format_ends([metric.lo, metric.hi])) if has_interval else ""
    label = metric.label.replace("|", "\\|")
    return f"| {label} | {format_number(metric.value)} | {interval} | {metric.n:,} |"


def _quoted(text: str) -> str:
    """Return a text as YAML, of which a JSON text is one form."""
    return json.dumps(text, ensure_ascii=False)
