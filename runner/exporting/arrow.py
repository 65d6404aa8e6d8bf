"""A sheet as Arrow: what Parquet files and data frames are made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runner.exporting.kinds import Kind
from runner.exporting.sheet import Sheet

if TYPE_CHECKING:
    import pyarrow as pa


def schema(sheet: Sheet) -> pa.Schema:
    """The columns with their types; they do not depend on whether there are rows."""
    import pyarrow as pa  # noqa: PLC0415 - 0.2 s that most commands do without

    types = {
        Kind.NOTHING: pa.null(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
    }
    return pa.schema([(column.name, types[column.kind]) for column in sheet.columns])


def arrow_chunks(sheet: Sheet) -> Iterator[pa.RecordBatch]:
    """The rows in pieces of bounded size."""
    import pyarrow as pa  # noqa: PLC0415 - likewise

    fields = schema(sheet)
    for chunk in sheet.chunks():
        columns = zip(*chunk, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)],
            schema=fields,
        )


def arrow_table(sheet: Sheet) -> pa.Table:
    """All rows at once."""
    import pyarrow as pa  # noqa: PLC0415 - likewise

    return pa.Table.from_batches(arrow_chunks(sheet), schema=schema(sheet))
