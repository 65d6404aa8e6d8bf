"""Compares a resumed run with its start: inputs, prompts, requests.

A run resumes only with its original inputs and prompts, unless changes are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable

from runner.clients.wire_shared import skeleton
from runner.errors import RunChanged
from runner.model_terms import USUAL
from runner.options import RunOptions
from runner.plan import task_of
from runner.roles import assigned, terms
from runner.workload import Workload
from store.events import Input, RunFinished, RunResumed, RunStarted
from store.lineage import StageAdded
from store.log.interface import Log
from store.task import TaskRow

PROMPTS = "prompts"
"""The setting of every job that names a file of prompts."""


SAMPLE = 20
"""Number of requests to compare; a changed prompt changes all of them."""


async def reads_differently(log: Log, work: Workload) -> bool:
    """Return whether parsers or settings differ from those that read the answers.

    A stage that was added since is a new reader of all of them, until the run ends.
    """
    last: RunStarted | RunResumed | None = None
    is_longer = False
    kinds = ["run_started", "run_resumed", "run_finished", "stage_added"]
    for recorded in await log.events(limit=1_000_000, kinds=kinds):
        match recorded.event:
            case RunStarted() | RunResumed() as last:
                pass
            case StageAdded():
                is_longer = True
            case RunFinished():
                is_longer = False
            case _:
                pass
    return (
        is_longer
        or last is None
        or (last.code_sha256, last.settings)
        != (
            work.code_sha256,
            work.settings_json,
        )
    )


def changed_inputs(first: RunStarted, work: Workload) -> list[Input]:
    """Return inputs that are new or changed since the start of the run."""
    before = _by_setting(first.inputs)
    return [now for now in work.inputs if now.sha256 not in before.get(now.setting, ())]


def _by_setting(inputs: Iterable[Input]) -> dict[str, list[str]]:
    """Return the hashes of inputs; a setting may name several files."""
    hashes: dict[str, list[str]] = {}
    for known in inputs:
        hashes.setdefault(known.setting, []).append(known.sha256)
    return hashes


def check_inputs(first: RunStarted, work: Workload) -> None:
    """Refuse to resume with other data or prompts than at the start.

    The selected prompts are compared too, because unsent tasks would otherwise get
    other prompts than the rest.
    """
    before, after = _by_setting(first.inputs), _by_setting(work.inputs)
    if (PROMPTS in before) != (PROMPTS in after):
        is_from_file = PROMPTS in before
        was = "prompts of a file" if is_from_file else "the shipped prompts"
        back = (
            "name that file with --prompts" if is_from_file else "leave --prompts out"
        )
        raise RunChanged(
            f"The run was started with {was}; {back} or add --accept-changes."
        )
    for now in work.inputs:
        known = before.get(now.setting, after[now.setting])
        # also if a file is missing now, or their order is another one
        if known != after[now.setting] and (
            now.sha256 not in known or set(known) >= set(after[now.setting])
        ):
            raise RunChanged(
                f"{now.path} ({now.setting}) is not what the run was started with; "
                "put the old content back or add --accept-changes."
            )


async def check_requests(log: Log, work: Workload, options: RunOptions) -> None:
    """Refuse to resume with other prompts than the run has sent so far."""
    roles, terms_by_model = assigned(work.job, options), terms(work, options)
    for stage in work.job.stages:
        for model in roles.of(stage):
            rows: list[TaskRow] = [
                *await log.open_tasks(stage.name, model, after=0, limit=SAMPLE),
                *await log.final_tasks(stage.name, model, after=0, limit=SAMPLE),
            ]
            # single attempts only: a re-ask sends more than the job's request
            for row in (r for r in rows if r.attempts == 1):
                sent = await log.started(row.task)
                model_terms = terms_by_model.get(model, USUAL)
                try:
                    request = model_terms.request(work.job, work.dataset, task_of(row))
                except Exception:  # noqa: BLE001, S112 - that task will fail by itself
                    continue
                if sent is not None and sent != skeleton(request, model)[2]:
                    raise RunChanged(
                        f"Task {row.task} ({row.key}) would now send another "
                        "request than before: prompts, settings or inputs changed; "
                        "add --accept-changes to continue anyway."
                    )
