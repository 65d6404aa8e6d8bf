"""The smallest job, under the name that an entry point gives."""

from __future__ import annotations

from tests.runner.toy_jobs import ToyJob

job = ToyJob()
