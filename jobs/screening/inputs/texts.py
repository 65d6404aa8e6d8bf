"""Tables of texts: `pmid`, `title`, `abstract`, `year`, one row a paper or review."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings, InputRow
from jobs.screening.corpus import Text
from jobs.screening.inputs.ids import read_id

COLUMNS = ("title", "abstract", "year")
_YEAR = re.compile(r"([0-9]{1,4})(\.0*)?")


def read_texts(
    path: Path, noticed: InputFindings, renamed: Mapping[str, str]
) -> dict[str, Text]:
    """The texts of a table by id; of several rows the first with an abstract counts.

    Args:
        path: the table.
        noticed: learns of repeated ids.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is off; names file and row.
    """
    texts: dict[str, Text] = {}
    for row in read_csv(
        path,
        ("pmid",),
        COLUMNS,
        noticed=noticed,
        renamed=renamed,
        unit="row",
    ):
        pmid, text = read_id(row, "pmid"), text_in(row)
        seen = texts.get(pmid)
        if seen is not None:
            noticed.add(
                "repeated_rows",
                "info",
                path.name,
                "Rows repeat an id; the first one with an abstract counts.",
                example=pmid,
            )
        if seen is None or (text.has_abstract and not seen.has_abstract):
            texts[pmid] = text
    return texts


def text_in(row: InputRow) -> Text:
    """What a row says of a paper or review."""
    year = _YEAR.fullmatch(row.optional_text("year").strip())
    return Text(
        title=row.optional_text("title").strip(),
        abstract=row.optional_text("abstract").strip(),
        year=int(year[1]) if year else None,
    )
