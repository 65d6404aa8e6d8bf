"""No request depends on the truth: with another truth, the same bytes are sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.job import Dataset, Task
from runner.messages import Request
from tests.contract.jobs.jobs import JOBS, QUIET, JobCase, run


def sent(
    case: JobCase, folder: Path, *words: object, patch: pytest.MonkeyPatch
) -> dict[tuple[str, str], str]:
    """The requests of a run by stage and item."""
    requests: dict[tuple[str, str], str] = {}
    job = case.job
    plain = job.request

    def request(dataset: Dataset, task: Task) -> Request:
        made = plain(dataset, task)
        requests[task.stage, task.key] = repr(made)
        return made

    with patch.context() as patched:
        patched.setattr(job, "request", request)
        made = run(folder, *words, *QUIET, "--no-score")
    assert made.done.code == 0, made.done.err
    return requests


@pytest.mark.parametrize(
    ("name", "truth"),
    [(case.name, each) for case in JOBS.values() for each in case.truths],
)
def test_another_truth_sends_the_same_requests(
    name: str, truth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = JOBS[name]
    words = case.truths[truth](tmp_path)
    one, other = (
        sent(case, tmp_path / folder, *own, patch=monkeypatch)
        for folder, own in zip(("one", "other"), words, strict=True)
    )
    assert len(one) > 3
    assert one == other
