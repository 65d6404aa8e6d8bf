"""The job whose run `long_log` makes: it counts its answers."""

from __future__ import annotations

from tests.runner.toy_jobs import ToyJob
from tests.store.samples import RUN_STARTED


class SampleJob(ToyJob):
    """`ToyJob`, under the name that stands in the log."""

    name = RUN_STARTED.job


job = SampleJob()
