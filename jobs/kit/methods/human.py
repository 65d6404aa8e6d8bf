"""What people did in a run: labels and their agreement.

The one place of the methods text that reads labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.kit.methods.record import RunRecord


def human_part(record: RunRecord) -> Iterator[str]:
    """Yield the sentences about the work of people, as templates."""
    del record
    yield (
        "No labels by people are recorded with this run. [To be completed by the "
        "authors: who checked which answers, and how disagreements were resolved]"
    )
