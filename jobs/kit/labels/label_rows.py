"""Reads and writes labels as rows of a table: `siftlog labels import` and `export`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, PlainValidator

from jobs.kit.inputs.cells import Filled, InputCell, Number, Text, quote, trimmed
from jobs.kit.inputs.files import read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.kit.labels.session import SessionSource, checked_value
from jobs.kit.labels.source import LabelSource
from runner.errors import UsageError
from runner.table_files import as_meant
from store.errors import StoreError
from store.labels.events import REPLY, LabelRecorded
from store.labels.fold import ItemField, LabelKey, LabelSet, TextHashes
from store.labels.writer import check_author
from store.nearest import did_you_mean

COLUMNS: Final = (
    *("item", "field", "value", "author", "reason", "seconds", "blind"),
    *("gold", "adjudicated", "visible", "recorded", "id", "run", "task"),
    *("text_sha256", "draw", "probability", "source"),
)
"""Columns of an export; an import reads the first seven, and needs item and value."""

_YES: Final = frozenset({"yes", "true", "1"})
_NO: Final = frozenset({"no", "false", "0"})


def _blind(cell: InputCell) -> bool | None:
    word = trimmed(str(cell) if isinstance(cell, bool | int) else cell).lower()
    if not word:
        return None
    if word not in _YES | _NO:
        raise ValueError(f"is {quote(cell)} (yes or no is expected)")
    return word in _YES


Meant = Annotated[Text, AfterValidator(as_meant)]
"""Text as an export wrote it: without the quote that keeps spreadsheets from acting."""


class _LabelTableRow(RowModel):
    item: Annotated[Filled, AfterValidator(as_meant)]
    value: Annotated[Filled, AfterValidator(as_meant)]
    field: Meant = ""
    author: Meant = ""
    reason: Meant = ""
    seconds: Number | None = None
    blind: Annotated[bool | None, PlainValidator(_blind)] = None


def read_label_rows(
    path: Path,
    *,
    author: str,
    labels: LabelSet,
    source: LabelSource | None,
) -> tuple[list[LabelRecorded], int]:
    """Read the labels in a file, all of them or none.

    Args:
        path: CSV or JSON lines with the columns item and value, and as options field,
            author, reason, seconds and blind.
        author: of rows without an author.
        labels: that are recorded already; equal ones are not recorded again.
        source: the run that the labels are of; None: items and values are not checked.

    Returns:
        The labels to record, and how many rows were recorded before.

    Raises:
        DatasetError: a row is off; names file and row.
    """
    known = {key: label.event.value for key, label in labels.current.items()}
    hashes: dict[str, str] = {}
    replies = {} if source is None else source.reply_hashes
    first: dict[LabelKey, int] = {}
    recorded: list[LabelRecorded] = []
    repeated = 0
    for row in read_table(
        path,
        _LabelTableRow,
        findings=InputFindings(),
        unit="row",
        further=COLUMNS[7:],
        cure="name it in the header",
    ):
        try:
            name = check_author(row.author or author)
        except StoreError:
            raise row.error(
                f"author is {quote(row.author)} (a printable name is expected)"
            ) from None
        value = _checked(row, source)
        key = LabelKey(name, row.item, row.field)
        if key in first:
            raise row.error(
                f"{name} labels {row.item} {row.field}".rstrip()
                + f" in row {first[key]} too (remove one)"
            )
        first[key] = row.line
        if known.get(key) == value:
            repeated += 1
            continue
        if source is not None and row.item not in hashes:
            hashes[row.item] = source.item(row.item).sha256
        recorded.append(
            LabelRecorded(
                author=name,
                item=row.item,
                field=row.field,
                value=value,
                reason=row.reason,
                visible=_visible(row.blind),
                run="" if source is None else source.run,
                text_sha256=hashes.get(row.item, ""),
                reply_sha256=replies.get(ItemField(row.item, row.field), ""),
                seconds=row.seconds,
                source=path.name,
            )
        )
    return recorded, repeated


def _checked(row: _LabelTableRow, source: LabelSource | None) -> str:
    if source is None:
        return row.value
    try:
        source.item(row.item)
    except KeyError:
        raise row.error(
            f"item {quote(row.item)} is none of the run (correct or remove it)"
        ) from None
    try:
        field = source.field(row.field)
    except KeyError:
        names = ", ".join(quote(one.name) for one in source.fields)
        raise row.error(
            f"field {quote(row.field)} is none of the run (give one of {names})"
        ) from None
    try:
        return checked_value(field, row.value)
    except UsageError as error:
        raise row.error(str(error).rstrip(".")) from None


def _visible(is_blind: bool | None) -> list[str] | None:
    if is_blind is None:
        return None
    return ["text"] if is_blind else ["text", f"{REPLY}unknown"]


def exported_rows(
    labels: LabelSet, texts: TextHashes
) -> Iterator[tuple[str | float | int | None, ...]]:
    """The current labels as rows of `COLUMNS`, by item, field and author.

    Args:
        labels: of a folder.
        texts: of the present texts and replies, which decide what is gold.
    """
    gold = labels.gold(texts)
    for about in sorted(labels.by_field):
        for label in labels.by_field[about]:
            event, truth = label.event, gold.get(about)
            yield (
                *(event.item, event.field, event.value, event.author),
                *(event.reason, event.seconds, _word(event.is_blind)),
                "" if truth is None else truth.value or "",
                "" if truth is None else _word(truth.is_adjudicated),
                " ".join(event.visible or ()),
                datetime.fromtimestamp(label.ts_us / 1e6, UTC).isoformat(),
                *(label.id, event.run, event.run_task),
                *(event.text_sha256, event.draw, event.probability, event.source),
            )


def _word(is_so: bool | None) -> str:
    return "" if is_so is None else "yes" if is_so else "no"


def known_item(source: SessionSource, items: Sequence[str], key: str) -> None:
    """Refuse an item that a run does not have.

    Raises:
        UsageError: there is none; names the nearest.
    """
    try:
        source.item(key)
    except KeyError:
        hint = did_you_mean(key, items, f"siftlog tasks {source.run} lists them.")
        raise UsageError(f"Run {source.run} has no item {key!r}; {hint}") from None
