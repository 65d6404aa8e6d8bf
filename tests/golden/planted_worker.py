"""What a tree of the product makes of recorded runs: an own look, then `check_runs`.

The own look is the judge of `siftlog regress`: hashes of the plan, the requests, the
parses, the verdicts and the scorecards of each run, computed in a plain loop over its
tasks. It shares no code with `runner.regress`. Started with the tree first on the
import path:

    python planted_worker.py RUNS_DIR
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.added_stages import extended, stages_in
from runner.clients.wire import decode_reply
from runner.clients.wire_shared import skeleton
from runner.engine.attempt_events import completed_event, reask_messages
from runner.job import Answer, Job
from runner.messages import ParseFailure
from runner.model_terms import USUAL
from runner.plan import Roles, first_stage, follow_ups, reply_of, task_of
from runner.regress.check import check_runs
from runner.score.repeat import Rescorer, ScoringBasis, rescorer
from runner.scorecard import Verdict
from runner.shards.parts import takes_spec
from store.events import AttemptAnswered
from store.runs import RunFolder, list_runs
from store.tables import payload, planning, reply, task_events, tasks_numbered


def looked_at(folder: RunFolder) -> dict[str, str]:
    """Return a hash of what each step gives today, or the error that it ends with."""
    found: dict[str, str] = {}
    for log in folder.shards() or (folder,):
        with rescorer(log) as run:
            for step, value in _of_tasks(run):
                found[f"{step} {log.part}"] = value
    if folder.log.exists():
        with rescorer(folder) as run:
            for scoring in run.scorings()[-2:]:
                found[f"scoring {scoring.number}"] = _hash(_scored(run, scoring))
    return found


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def _scored(run: Rescorer, scoring: Any) -> Any:
    try:
        now = run.repeated(scoring)
        return now.digest, [
            (each.task, each.value, each.expected, each.correct, each.rule)
            for each in now.scorecard.details
            if isinstance(each, Verdict)
        ]
    except Exception as error:  # noqa: BLE001 - a planted change may break anything
        return type(error).__name__


def _whole_job(run: Rescorer) -> tuple[Job, Roles]:
    """Return the job with the stages that were added to the run, and its models."""
    job, started, models = run.job, run.started, list[str]()
    for added in stages_in(run.reader):
        job = extended(job, added)
        models += added.stage.models
    of_roles = {role: tuple(names) for role, names in started.models.items()}
    return job, Roles(
        models=of_roles, replicates=started.replicates, of_stages=tuple(models)
    )


def _of_tasks(run: Rescorer) -> Iterator[tuple[str, str]]:
    started = run.started
    job, roles = _whole_job(run)
    basis = ScoringBasis(
        settings=json.loads(started.settings), inputs=tuple(started.inputs), seq=0
    )
    dataset = job.load(run.placed(basis))
    stages = {stage.name: stage for stage in job.stages}
    requests, parses, plans = [], [], []
    count = planning(run.reader).tasks
    for row in tasks_numbered(run.reader, range(1, count + 1)):
        task = task_of(row)
        if row.attempts and not started.imported:
            try:
                request = USUAL.request(job, dataset, task)
                requests.append(skeleton(request, row.model).sha256)
            except Exception as error:  # noqa: BLE001 - as above
                requests.append(type(error).__name__)
        for each in task_events(run.reader, row.task):
            if isinstance(each.event, AttemptAnswered) and each.event.reask:
                body = payload(run.reader, each.seq) or b""
                answer = decode_reply(each.event.form, body)
                parsed = stages[row.stage].parse(dataset, task, answer)
                parses.append(completed_event(row.task, 0, parsed))
                if isinstance(parsed, ParseFailure):
                    requests.append(reask_messages(answer, parsed, dataset))
        found = reply(run.reader, row.task)
        if found is None:
            continue
        answer = reply_of(found)
        parsed = stages[row.stage].parse(dataset, task, answer)
        parses.append(completed_event(row.task, 0, parsed))
        if not started.imported and job.follows(dataset, stages[row.stage]):
            group = (Answer(task=task, reply=answer, parsed=parsed),)
            specs = list(job.follow_up(dataset, group))
            plans.append(
                follow_ups(job, specs, group, roles, root=row.root, existing=[row])
            )
    if not started.imported:
        shard = started.shard
        takes = None if shard is None else takes_spec(shard, job, dataset)
        blocks = first_stage(job, dataset, roles, consumed=0, takes=takes)
        plans += [list(block.tasks) for block in blocks]
    yield "plan", _hash(plans)
    yield "requests", _hash(requests)
    yield "parse", _hash(parses)


def main(runs_dir: Path) -> None:
    """Print both as one JSON object by run."""
    folders = list_runs(runs_dir)
    reports = check_runs(folders, processes=1, progress=lambda _: None)
    print(
        json.dumps(
            {
                report.run: {
                    "own": looked_at(folder),
                    "differs": report.differs,
                    "causes": report.causes,
                    "steps": {k: v.differs for k, v in report.steps.items()},
                    "problem": report.problem,
                }
                for folder, report in zip(folders, reports, strict=True)
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
