"""What `siftlog prepare review-benchmark` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.review_benchmark.database.importing import Importing
from jobs.review_benchmark.settings import Settings
from runner.job import Prepared, PreparedFolder, PreparedFromFiles


def _coverage(settings: Settings) -> Prepared:
    from jobs.review_benchmark.coverage import (  # noqa: PLC0415 - numerical libraries
        coverage,
    )

    return coverage(settings)


def _pairs(settings: Settings) -> PreparedFolder:
    from jobs.review_benchmark.verdicts.adversarial import (  # noqa: PLC0415 - the same
        Adversarial,
    )

    return Adversarial.of(settings)


SUBCOMMANDS: Mapping[
    str, Callable[[Settings], Prepared | PreparedFromFiles | PreparedFolder]
] = {
    "coverage": _coverage,
    "import": Importing.of,
    "pairs": _pairs,
}
"""By the word that follows the job's name."""
