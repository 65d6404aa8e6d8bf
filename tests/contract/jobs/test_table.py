"""Every installed job is in the table of the contract."""

from __future__ import annotations

from runner.registry import job_names
from tests.contract.jobs.jobs import JOBS


def test_every_job_is_tried() -> None:
    assert JOBS.keys() == {*job_names()}
