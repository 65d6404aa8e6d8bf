"""Replies of other tools as the tasks of a job: order, replicates, what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.ask.job import job as ask
from jobs.replies.job import job as replies
from runner.errors import DatasetError
from runner.imports.tasks import ForeignImporter
from runner.job import ImportedAnswer, Job
from runner.workload import load_workload
from tests.runner.imports.foreign_files import json_log, lines, sample


def imported(
    job: Job, dataset: object, *files: Path, item: str = ""
) -> tuple[ForeignImporter, list[ImportedAnswer]]:
    importer = ForeignImporter(job, dataset, item)
    answers = importer.read(files, None, model=None, form=None, replicates={})
    return importer, list(answers)


def places(answers: list[ImportedAnswer]) -> list[tuple[str, str, int, str | None]]:
    return [(a.spec.key, a.model, a.replicate, a.spec.skip) for a in answers]


def plain(folder: Path, *rows: tuple[str, str, str]) -> Path:
    return lines(
        folder / "plain.jsonl",
        *({"id": item, "model": model, "reply": text} for item, model, text in rows),
    )


def test_tasks_come_in_the_order_of_the_plan_whatever_the_file_has(
    tmp_path: Path,
) -> None:
    path = plain(
        tmp_path,
        ("b", "y", "1"),
        ("a", "x", "2"),
        ("b", "x", "3"),
        ("b", "y", "4"),
    )
    dataset = replies.load(replies.Settings(rows=(path,)))
    _, answers = imported(replies, dataset, path)
    assert places(answers) == [
        ("b", "y", 1, None),
        ("b", "y", 2, None),
        ("b", "x", 1, None),
        ("a", "x", 1, None),
    ]
    assert [answer.text for answer in answers] == ["1", "4", "3", "2"]


def test_the_number_of_replies_read_is_shown(tmp_path: Path) -> None:
    path = plain(tmp_path, *((f"i{n}", "m", "x") for n in range(250)))
    told = [f"plain.jsonl: {count} replies read" for count in (100, 200)]
    shown: list[str] = []
    work = load_workload(replies, replies.Settings(rows=(path,)), progress=shown.append)
    assert shown == told
    shown.clear()
    importer = ForeignImporter(replies, work.dataset, progress=shown.append)
    for _ in importer.read((path,), None, model=None, form=None, replicates={}):
        pass
    assert shown == told


def test_epochs_order_replicates_and_scores_are_kept_by_replies(tmp_path: Path) -> None:
    path = json_log(
        tmp_path / "a.json",
        sample(1, epoch=2, scores={"f1": {"value": 0.5}}),
        sample(1, epoch=1),
    )
    dataset = replies.load(replies.Settings(rows=(path,)))
    importer, (first, second) = imported(replies, dataset, path)
    assert first.spec.context == '{"scores":{"includes":1.0,"length":7.0}}'
    assert second.spec.context == '{"scores":{"f1":0.5}}'
    assert dict(importer.dropped) == {"explanations of scores": 2}


def test_scores_that_metrics_cannot_be_computed_of_are_left_out(
    tmp_path: Path,
) -> None:
    scores = [1e100, -1e101, 10**400]
    path = lines(
        tmp_path / "plain.jsonl",
        *(
            {"id": str(n), "model": "m", "reply": "x", "score": {"ok": 1, "s": score}}
            for n, score in enumerate(scores)
        ),
    )
    dataset = replies.load(replies.Settings(rows=(path,)))
    importer, answers = imported(replies, dataset, path)
    contexts = [json.loads(answer.spec.context or "") for answer in answers]
    assert contexts == [
        {"scores": {"ok": 1.0, "s": 1e100}},
        {"scores": {"ok": 1.0}},
        {"scores": {"ok": 1.0}},
    ]
    assert dict(importer.dropped) == {
        "scores beyond 1e100": 1,
        "scores that are no number": 1,
    }


def test_a_job_takes_replies_by_a_field_and_counts_what_it_does_not_keep(
    tmp_path: Path,
) -> None:
    papers = lines(
        tmp_path / "papers.jsonl",
        *({"id": str(pmid), "text": "Twelve took part."} for pmid in (101, 102, 103)),
    )
    settings = ask.Settings(papers=(papers,), question=("How many?",))
    dataset = ask.load(settings)
    samples = [sample(number) for number in (1, 2, 9)]
    path = json_log(tmp_path / "a.json", *samples)
    importer, answers = imported(ask, dataset, path, item="metadata.pmid")
    assert places(answers) == [
        ("101", "mock/a", 1, None),
        ("102", "mock/a", 1, None),
    ]
    assert importer.missing == 1
    assert dict(importer.dropped) == {
        "explanations of scores": 2,
        "prompts": 2,
        "right answers": 2,
        "scores": 2,
        "items that ask does not have, such as '109'": 1,
    }
    with pytest.raises(DatasetError, match=r"No reply is of an item of ask: it has no"):
        imported(ask, dataset, path)
    with pytest.raises(DatasetError, match=r"has no field 'doi' \(its fields are meta"):
        imported(ask, dataset, path, item="doi")
