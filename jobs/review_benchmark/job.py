"""The job as the runner sees it; each of its parts lives in a module of its own.

Preparing, scoring and importing are loaded when they are used: they bring libraries
that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.review_benchmark.settings import Settings as JobSettings
from runner.job import Prepared, PreparedFromFiles


class ReviewBenchmark:
    """Can an agent rebuild a Cochrane review's list of included studies?"""

    name = "review-benchmark"
    version = "1"
    Settings = JobSettings

    @property
    def prepare(
        self,
    ) -> Mapping[str, Callable[[JobSettings], Prepared | PreparedFromFiles]]:
        """What `siftlog prepare review-benchmark` builds and checks."""
        from jobs.review_benchmark.preparing import (  # noqa: PLC0415 - see above
            SUBCOMMANDS,
        )

        return SUBCOMMANDS


job = ReviewBenchmark()
