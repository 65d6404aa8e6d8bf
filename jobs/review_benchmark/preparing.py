"""What `siftlog prepare review-benchmark` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.review_benchmark.database.importing import Importing
from jobs.review_benchmark.settings import Settings
from runner.job import Prepared, PreparedFromFiles


def _coverage(settings: Settings) -> Prepared:
    from jobs.review_benchmark.coverage import (  # noqa: PLC0415 - numerical libraries
        coverage,
    )

    return coverage(settings)


SUBCOMMANDS: Mapping[str, Callable[[Settings], Prepared | PreparedFromFiles]] = {
    "coverage": _coverage,
    "import": Importing.of,
}
"""By the word that follows the job's name."""
