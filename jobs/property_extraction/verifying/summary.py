"""What a terminal shows of a verification."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.verifying.verification import Verification
from jobs.text import TextColumn as TableColumn
from jobs.text import one_line, plural, shortened, text_table

NAME_CELLS = 34
"""Of a model's name."""


def run_text(verification: Verification) -> str:
    """The summary of one scoring."""
    return "\n".join([*_lines(verification), ""])


def _lines(verification: Verification) -> Iterator[str]:
    equal, known = len(verification.equal), verification.known
    yield (
        f"Names verified: {plural(len(verification.pairs), 'pair')}, {equal:,} equal"
        + (f", {known:,} verified before" if known else "")
    )
    columns = verification.columns
    said = [[own.is_match for own in each.rulings.values()] for each in columns]
    yield from text_table(
        (
            TableColumn(
                title="model",
                cells=[shortened(one_line(each.model), NAME_CELLS) for each in columns],
                has_words=True,
            ),
            *(
                TableColumn(
                    title=title, cells=[f"{own.count(value):,}" for own in said]
                )
                for title, value in (
                    ("match", True),
                    ("no match", False),
                    ("undecided", None),
                )
            ),
            TableColumn(title="unread", cells=[f"{each.unread:,}" for each in columns]),
        )
    )
    yield (
        "to build aliases: siftlog prepare property-extraction aliases --candidates "
        "FILE --verdicts RUN --out DIR"
    )
