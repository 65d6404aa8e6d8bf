"""The smallest job, under the name that an entry point gives."""

from __future__ import annotations

from runner.testing import ToyJob

job = ToyJob()
