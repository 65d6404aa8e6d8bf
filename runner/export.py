"""A run's tasks with their replies as JSONL, CSV or Parquet, in flat memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, assert_never

from runner.reading import reply_of
from runner.render import csv_lines
from runner.reply import AnyReply, Ranking, Reply, Vectors
from runner.scorecard import Cell
from store.log import StoredReply
from store.task import TaskRow

CHUNK: Final = 2000
"""Rows held at a time; also a Parquet row group."""

COLUMNS: Final = (
    "task",
    "stage",
    "key",
    "model",
    "replicate",
    "state",
    "attempts",
    "error",
    "reason",
    "finish_reason",
    "tokens_in",
    "tokens_out",
    "latency_ms",
    "cost_usd",
    "reply",
)

Record = tuple[Cell, ...]


def records(found: Iterable[tuple[TaskRow, StoredReply | None]]) -> Iterator[Record]:
    """One record a task, in the order given; None where there is no reply."""
    for row, stored in found:
        answered = stored.answered if stored is not None else None
        yield (
            row.task,
            row.stage,
            row.key,
            row.model,
            row.replicate,
            row.state.name.lower(),
            row.attempts,
            row.error,
            row.reason,
            answered.finish_reason if answered else None,
            answered.tokens_in if answered else None,
            answered.tokens_out if answered else None,
            row.latency_ms,
            row.cost_usd,
            _shown(reply_of(stored)) if stored is not None else None,
        )


def _shown(reply: AnyReply) -> str:
    """A reply in one cell: its text, or its numbers as JSON."""
    match reply:
        case Reply():
            return reply.text
        case Vectors():
            return json.dumps(reply.numbers())
        case Ranking():
            return json.dumps([[each.index, each.score] for each in reply.results])
        case _:
            assert_never(reply)


def write_jsonl(path: Path, found: Iterator[Record]) -> None:
    """One JSON object a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in found:
            values = dict(zip(COLUMNS, record, strict=True))
            file.write(json.dumps(values, ensure_ascii=False) + "\n")


def write_csv(path: Path, found: Iterator[Record]) -> None:
    """CSV with a header; what a spreadsheet would run is quoted."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_lines([COLUMNS]))
        while chunk := list(islice(found, CHUNK)):
            file.write(csv_lines(chunk))


def write_parquet(path: Path, found: Iterator[Record]) -> None:
    """Parquet with zstd, typed columns."""
    import pyarrow as pa  # noqa: PLC0415 - 0.2 s that only this form needs
    import pyarrow.parquet as pq  # noqa: PLC0415 - likewise

    kinds = {
        "task": pa.int64(),
        "replicate": pa.int32(),
        "attempts": pa.int32(),
        "tokens_in": pa.int64(),
        "tokens_out": pa.int64(),
        "latency_ms": pa.float64(),
        "cost_usd": pa.float64(),
    }
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while chunk := list(islice(found, CHUNK)):
            columns = [
                pa.array(c, f.type)
                for c, f in zip(zip(*chunk, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


FORMATS: Mapping[str, Callable[[Path, Iterator[Record]], None]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}
"""File ending to writer."""


def export(
    folder: Path, form: str, found: Iterable[tuple[TaskRow, StoredReply | None]]
) -> Path:
    """Write `tasks.<form>` into *folder*, whole or not at all; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"tasks.{form}"
    draft = folder / f".tasks.{form}.partial"
    FORMATS[form](draft, records(found))
    draft.replace(target)
    return target
