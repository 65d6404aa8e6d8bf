"""Rows of truth and predictions, and how a paper's rows follow from its replies.

What a paper's rows are depends on the replies and its text alone: those about its
pieces, and a second look at quotes. An import keeps rows of files as replies.
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
    """One curated value of a property in a paper; texts are as they stand in the file.

    Several rows with one paper and name are normal.
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
    mentions: int = 1  #: how often it was stated with all fields equal, in its paper
    row: int = 0  #: in file order, or order of the reply, over all papers; from 1
    flag: str = ""  #: `withdrawn` or `absent`, where a second request said so


WITHDRAWN: Final = "withdrawn"
ABSENT: Final = "absent"
"""Flags of rows that a second request was about."""

UNGROUNDED: Final = frozenset({GroundingLevel.ABSENT, GroundingLevel.NO_QUOTE})
"""Levels that a second request asks about."""


def count_mentions(extractions: Sequence[ParsedExtraction]) -> dict[ReportedValue, int]:
    """The distinct rows of a paper in the order of its parts, and how often each is.

    Parts overlap, and a paper repeats its values, so a row that an earlier part states
    is no new row, whatever its quote. It counts as often as in the part that has it
    most. Within a part, rows that differ in any field are different rows.
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
    """Rows of later parts that an earlier part states too."""
    stated = sum(len(set(extraction.rows)) for extraction in extractions)
    return stated - len(count_mentions(extractions))


def _content(row: ReportedValue) -> tuple[str, ...]:
    """What a row says, by which rows of several parts are one: all but its quote."""
    texts = (row.name, row.value, row.unit, row.material, row.condition)
    return tuple(fold(text).text for text in texts)


def ungrounded(
    paper: PaperText, rows: Sequence[ReportedValue]
) -> tuple[ReportedValue, ...]:
    """The rows whose quote is missing, or not in the paper."""
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
    """The rows of one paper, as one model states them in one replicate.

    Args:
        refno: of the paper.
        extractions: of its pieces, in their order.
        first: number of the first row; the others follow.
        requote_rows: rows of a second request, in the order of their numbers.
        requoted: what the reply to it says; None: nothing was asked, or it is lacking.
        paper: in which new quotes are looked up; needed with *requoted*.
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
    """Quote and flag of a row after the second request."""
    if number in requoted.withdrawn:
        return row.quote, WITHDRAWN
    quote = requoted.quotes.get(number, "")
    if ground(paper, quote).level in UNGROUNDED:
        return row.quote, ABSENT
    return quote, ""


ROWS_STAGE = "rows"
"""Of answers that are rows of a file."""


UNREADABLE = "unreadable_file"
"""The error of a file that was left out; it says nothing about a paper."""


class ImportedRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row as its file has it: a prediction but for its paper."""

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
    """Further columns, kept for whoever asks for them later."""


class _Rows(msgspec.Struct, frozen=True):
    rows: list[ImportedRow]


_SHARED = tuple(name for name in ImportedRow.__struct_fields__ if name != "extra")
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_Rows)


def text_of_rows(rows: list[ImportedRow]) -> str:
    """The rows as the text of an answer."""
    return _ENCODER.encode(_Rows(rows)).decode()


@guarded
def parse_rows(refno: str, reply: Reply) -> tuple[Prediction, ...] | ParseFailure:
    """The rows of an answer, as predictions."""
    try:
        decoded = _DECODER.decode(reply.text or "")
    except msgspec.DecodeError:
        return ParseFailure(reason="unreadable_import")
    return tuple(
        Prediction(refno=refno, **{name: getattr(row, name) for name in _SHARED})
        for row in decoded.rows
    )
