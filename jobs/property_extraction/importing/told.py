"""The form in which the log keeps the rows that a file has about a paper."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jobs.property_extraction.row import Prediction
from runner.job import guarded
from runner.messages import ParseFailure, Reply

STAGE = "rows"
"""Of answers that are rows of a file."""


UNREADABLE = "unreadable_file"
"""The error of a file that was left out; it says nothing about a paper."""


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row as its file has it."""

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
    rows: list[Told]


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_Rows)


def text_of(rows: list[Told]) -> str:
    """The rows as the text of an answer."""
    return _ENCODER.encode(_Rows(rows)).decode()


@guarded
def parse_rows(refno: str, reply: Reply) -> tuple[Prediction, ...] | ParseFailure:
    """The rows of an answer, as predictions."""
    try:
        found = _DECODER.decode(reply.text or "")
    except msgspec.DecodeError:
        return ParseFailure(reason="unreadable_import")
    return tuple(
        Prediction(
            refno=refno,
            name=each.name,
            value=each.value,
            unit=each.unit,
            material=each.material,
            condition=each.condition,
            quote=each.quote,
            mentions=each.mentions,
            flag=each.flag,
            row=each.row,
        )
        for each in found.rows
    )
