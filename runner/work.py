"""What a run is about: a job, its settings, its data, and the hashes that pin them."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from runner.faults import calling
from runner.fingerprint import code_hash, input_hashes
from runner.job import Dataset, Job
from runner.settings import as_json
from store.events import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A job with its settings and data: what a run is about."""

    job: Job
    settings: BaseModel
    dataset: Dataset
    inputs: list[Input]
    code_sha256: str

    @property
    def settings_json(self) -> str:
        """The settings as the log keeps them."""
        return as_json(self.settings)


def load_work(job: Job, settings: BaseModel, *, starts: bool = False) -> Work:
    """Load and validate all inputs.

    Args:
        job: the job.
        settings: its settings.
        starts: a new run is to ask about the data, which the job may refuse.

    Raises:
        DatasetError: an input is off (names file and row), or is no data to start from.
    """
    with calling(job, "load"):
        dataset = job.load(settings)
    admit = getattr(job, "admit", None)
    if starts and admit is not None:
        with calling(job, "admit"):
            admit(dataset)
    return Work(
        job=job,
        settings=settings,
        dataset=dataset,
        inputs=input_hashes(job.inputs(settings)),
        code_sha256=code_hash(job),
    )
