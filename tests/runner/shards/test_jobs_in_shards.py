"""Every job that ships, in shards: each task once, all of a family in one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.plan import identity
from runner.registry import load_job
from runner.shards.parts import item_of_spec, shard_of, takes_spec
from runner.workload import load_workload
from tests.runner.shards.sharded import Split, placed, rows, sample

JOBS = (
    "evidence-retrieval",
    "paper-investigation",
    "property-extraction",
    "review-benchmark",
    "screening",
)


@pytest.mark.parametrize("name", JOBS)
def test_three_shards_have_the_tasks_and_the_scores_of_the_whole_run(
    tmp_path: Path, name: str
) -> None:
    work = sample(load_job(name))
    alone = Split(tmp_path / "alone", work)
    assert alone.whole().outcome == "finished"
    split = Split(tmp_path / "split", work)
    found, first_stage = [], {}
    for index in range(3):
        assert split.part(index, 3).outcome == "finished"
        folder = split.folder.shard(index, 3)
        found += [(identity(row), row.state, row.reason) for row in rows(folder)]
        first_stage.update(placed(folder))
    whole = rows(alone.folder)
    assert len(found) == len(set(found)) == len(whole)
    assert set(found) == {(identity(row), row.state, row.reason) for row in whole}
    firsts = [identity(row) for row in whole if row.root == row.task]
    assert [first_stage[place] for place in range(len(firsts))] == firsts
    assert split.card() == alone.card()


SETTINGS = {
    "paper-investigation": [{}, {"mode": "questions"}],
    "property-extraction": [{}, {"requote": False}],
    "evidence-retrieval": [{}, {"batch": "query"}],
    "review-benchmark": [{}],
    "screening": [{}, {"criteria_source": "llm"}],
}


@pytest.mark.parametrize("name", JOBS)
def test_what_is_gathered_together_is_of_one_item(name: str) -> None:
    job = load_job(name)
    settings = sample(job).settings
    for other in SETTINGS[name]:
        changed = job.Settings.model_validate({**settings.model_dump(), **other})
        work = load_workload(job, changed)
        takes = takes_spec(shard_of("0/2"), job, work.dataset)
        items: dict[str, set[str]] = {}
        taken = []
        for spec in job.plan(work.dataset):
            item = item_of_spec(job, work.dataset, spec)
            items.setdefault(spec.group or spec.key, set()).add(item)
            taken.append(takes(spec))
        assert all(len(found) == 1 for found in items.values())
        assert any(taken)
        assert not all(taken)
