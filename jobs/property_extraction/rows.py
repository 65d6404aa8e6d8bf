"""Rows of truth and predictions, and how a paper's rows follow from its replies.

A paper's rows depend only on its text and its replies: those about its chunks, and
those about missing quotes. An import stores rows of files as replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from jobs.kit.grounding import GroundingLevel, PaperText, fold, ground
from jobs.property_extraction.parsing import (
    ParsedExtraction,
    ParsedQuotes,
    ReportedValue,
)
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One curated value of a property in a paper; texts are unchanged from the file.

    Several rows with the same paper and name are normal.
    """

    refno: str
    name: str  #: property name; names are compared exactly
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    definition: str = ""
    source_row: int = 0  #: in its file; the header is row 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One value that a model stated."""

    refno: str
    name: str  #: as the model wrote it, before any alias
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    quote: str = ""
    mentions: int = 1  #: number of rows in its paper with all fields equal
    row: int = 0  #: in file order, or order of the reply, over all papers; from 1
    flag: str = ""  #: `withdrawn` or `absent`, after a second request


WITHDRAWN: Final = "withdrawn"
ABSENT: Final = "absent"
"""Flags of rows after a second request."""

UNGROUNDED: Final = frozenset({GroundingLevel.ABSENT, GroundingLevel.NO_QUOTE})
"""Levels that need a second request."""


def count_mentions(extractions: Sequence[ParsedExtraction]) -> dict[ReportedValue, int]:
    """Count the distinct rows of a paper, in the order of its chunks.

    Chunks overlap, and a paper repeats its values, so a row that an earlier chunk
    states is no new row, even with another quote. Its count is that of the chunk that
    has it most often. Within a chunk, rows that differ in any field are different rows.
    """
    mentions: dict[ReportedValue, int] = {}
    stated: dict[tuple[str, ...], ReportedValue] = {}
    for extraction in extractions:
        part_counts = Counter(
            row if row in mentions else stated.get(_content(row), row)
            for row in extraction.rows
        )
        for row, n in part_counts.items():
            mentions[row] = max(n, mentions.get(row, 0))
            stated.setdefault(_content(row), row)
    return mentions


def count_repeated(extractions: Sequence[ParsedExtraction]) -> int:
    """Count the rows of later chunks that an earlier chunk states too."""
    stated = sum(len(set(extraction.rows)) for extraction in extractions)
    return stated - len(count_mentions(extractions))


def _content(row: ReportedValue) -> tuple[str, ...]:
    """Return the fields that identify a row across chunks: all but the quote."""
    texts = (row.name, row.value, row.unit, row.material, row.condition)
    return tuple(fold(text).text for text in texts)


def ungrounded(
    paper: PaperText, rows: Sequence[ReportedValue]
) -> tuple[ReportedValue, ...]:
    """Return the rows whose quote is missing, or not in the paper."""
    return tuple(row for row in rows if ground(paper, row.quote).level in UNGROUNDED)


def rows_of_paper(
    refno: str,
    extractions: Sequence[ParsedExtraction],
    *,
    first: int = 1,
    requote_rows: Sequence[ReportedValue] = (),
    requoted: ParsedQuotes | None = None,
    paper: PaperText | None = None,
) -> tuple[Prediction, ...]:
    """Return the rows of one paper, from one replicate of a model.

    Args:
        refno: of the paper.
        extractions: of its chunks, in their order.
        first: number of the first row; the others follow.
        requote_rows: rows of a second request, in the order of their numbers.
        requoted: the parsed reply to it; None: no request, or no reply.
        paper: to search for new quotes; needed with *requoted*.
    """
    second = (
        {}
        if requoted is None or paper is None
        else {
            row: _quote_and_flag(row, number, requoted, paper)
            for number, row in enumerate(requote_rows, start=1)
        }
    )
    predictions = []
    for number, (row, n) in enumerate(count_mentions(extractions).items(), start=first):
        quote, flag = second.get(row, (row.quote, ""))
        predictions.append(
            Prediction(
                refno=refno,
                name=row.name,
                value=row.value,
                unit=row.unit,
                material=row.material,
                condition=row.condition,
                quote=quote,
                mentions=n,
                row=number,
                flag=flag,
            )
        )
    return tuple(predictions)


def _quote_and_flag(
    row: ReportedValue, number: int, requoted: ParsedQuotes, paper: PaperText
) -> tuple[str, str]:
    """Return quote and flag of a row after the second request."""
    if number in requoted.withdrawn:
        return row.quote, WITHDRAWN
    quote = requoted.quotes.get(number, "")
    if ground(paper, quote).level in UNGROUNDED:
        return row.quote, ABSENT
    return quote, ""


ROWS_STAGE = "rows"
"""Stage of answers that are rows of a file."""


UNREADABLE = "unreadable_file"
"""Error of a file that was left out; it concerns no single paper."""


class ImportedRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of a file: a prediction without its paper."""

    row: int  #: in its file; the header is row 1
    name: str
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    quote: str = ""
    mentions: int = 1
    flag: str = ""
    extra: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Further columns, stored for later use."""


class _Rows(msgspec.Struct, frozen=True):
    rows: list[ImportedRow]


_SHARED = tuple(name for name in ImportedRow.__struct_fields__ if name != "extra")
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_Rows)


def text_of_rows(rows: list[ImportedRow]) -> str:
    """Encode rows as the text of an answer."""
    return _ENCODER.encode(_Rows(rows)).decode()


@guarded
def parse_rows(refno: str, reply: Reply) -> tuple[Prediction, ...] | ParseFailure:
    """Parse the rows of an answer as predictions."""
    try:
        decoded = _DECODER.decode(reply.text or "")
    except msgspec.DecodeError:
        return ParseFailure(reason="unreadable_import")
    return tuple(
        Prediction(refno=refno, **{name: getattr(row, name) for name in _SHARED})
        for row in decoded.rows
    )
