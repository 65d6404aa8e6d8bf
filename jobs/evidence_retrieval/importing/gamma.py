"""A gamma sweep: the K that each gamma would have chosen for each query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jobs.evidence_retrieval.importing.given import GAMMA_PREFIX, Given
from jobs.evidence_retrieval.importing.source import QUERY, Part, Source
from jobs.inputs.files import read_csv

_COLUMN = re.compile(re.escape(GAMMA_PREFIX) + r"[0-9]+(\.[0-9]+)?")


def is_gamma_sweep(columns: Sequence[str]) -> bool:
    """Whether a header is that of a gamma sweep."""
    return set(QUERY) <= set(columns) and bool(_sweep(columns))


def read_gamma_sweep(source: Source) -> Iterator[Part]:
    """The K of each query by gamma."""
    sweep = _sweep(source.names)
    rows = read_csv(
        source.path,
        QUERY,
        sweep,
        noticed=source.noticed,
        allow_ragged=source.settings.allow_ragged,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        stated = {name: float(row.count(name)) for name in sweep if row.has(name)}
        yield replace(part, given={source.model: Given(stated=stated)})


def _sweep(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if _COLUMN.fullmatch(name)]
