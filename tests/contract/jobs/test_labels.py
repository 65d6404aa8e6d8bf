"""Every job is scored against labels, and a changed label is named as the cause."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.labels.source import LabelSource, label_source
from runner.labelling import COMMAND_KEYS, LabelField
from store.labels.fold import ItemField
from store.runs import RunFolder
from tests.commands import Done, command
from tests.contract.jobs.data import sample
from tests.contract.jobs.jobs import FAST, JobCase, run
from tests.contract.jobs.test_import import flat
from tests.corpus import write_corpus
from tests.runner import toy_jobs

REVIEWS = sample("review-benchmark")
OF_REPLIES: dict[str, tuple[object, ...]] = {
    "variants": ("run", "paper-investigation", "--mode", "extract", "--limit", 2),
    "names": ("run", "property-extraction", "--mode", "verify", "--limit", 2),
    "results of another agent": (
        *("import", "review-benchmark", "--truth", REVIEWS / "truth"),
        *("--results", REVIEWS / "results"),
    ),
    "a job of one's own": ("run", f"{toy_jobs.__file__}:toy"),
}
"""Runs of which people label whether replies are correct."""

ITEMS = {"screening": 12, "review-benchmark": 1, "property-extraction": 1}
"""Items of a run, by job; two of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRun:
    """A small run, and the labels of everything in it, as one of its models replied."""

    runs: Path
    labels: dict[ItemField, str]
    fields: dict[str, LabelField]

    def command(self, *words: object) -> Done:
        """A command about runs, which must succeed."""
        done = command(*words, "--runs-dir", self.runs)
        assert done.code == 0, done.err
        return done

    def keys(self, about: ItemField, value: str) -> tuple[str, ...]:
        """What a person types to give a value."""
        choices = {one.value: one.key for one in self.fields[about.field].choices}
        return (choices[value],) if value in choices else ("=", value)

    def imported(self, labels: dict[ItemField, str]) -> str:
        """Record labels of Ann, beside those that she gave."""
        path = self.runs / "labels.csv"
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("item", "field", "value"))
            rows.writerows((*about, value) for about, value in labels.items())
        return self.command("labels", "import", "r", path, "--author", "ann").out

    def scored(self) -> dict[str, Any]:
        """Score it against its labels."""
        words = ("--gold", "labels", "--no-report", "--json")
        card: dict[str, Any] = json.loads(self.command("score", "r", *words).out)
        return card

    def causes(self, before: int, after: int) -> set[str]:
        """The kinds of causes of a difference."""
        done = self.command("diff", "r", before, after, "--json")
        stages = json.loads(done.out)["causes"]
        return {cause["kind"] for stage in stages for cause in stage["causes"]}


@pytest.fixture
def labelled(case: JobCase, tmp_path: Path) -> LabelledRun:
    """A run of each job by its baseline."""
    limit = ITEMS.get(case.name, 2)
    words = case.words(tmp_path)
    made = run(tmp_path, *words, "--limit", limit, "--no-report")
    asked = {task["key"] for task in made.tasks() if task["state"] == "completed"}
    with label_source(RunFolder(made.runs / "r")) as source:
        # a task that the monitor shows leads to the items that it is about
        assert {*source.items_named(asked)} <= {*source.items}
        return _labelled(made.runs, source)


def _labelled(runs: Path, source: LabelSource) -> LabelledRun:
    return LabelledRun(
        runs=runs,
        labels={
            about: _value(source, about) for about in source.questions(source.items)
        },
        fields={field.name: field for field in source.fields},
    )


def _value(source: LabelSource, about: ItemField) -> str:
    """What a model replied, or else the first value that there is."""
    first = source.field(about.field).choices[0].value
    if source.labelling.needs_reply:
        return first
    values = [reply.value for reply in source.replies.get(about, ()) if reply.value]
    return next(iter(values), None) or first


def test_people_label_by_keys_and_a_changed_label_is_the_cause(
    labelled: LabelledRun,
) -> None:
    for field in labelled.fields.values():
        keys = [choice.key for choice in field.choices]
        assert len({*keys}) == len(keys)
        assert all(len(key) == 1 and key not in COMMAND_KEYS for key in keys)
        assert len(keys) > 1 or field.is_open
    about, value = next(iter(labelled.labels.items()))
    with _typed(*labelled.keys(about, value), "q"):
        done = labelled.command("label", "r", "--plain", "--author", "ann")
    assert "1 label recorded" in done.err
    assert f"Recorded {len(labelled.labels) - 1:,} label" in labelled.imported(
        labelled.labels
    )
    first = labelled.scored()
    assert first["missing"] == 0
    assert labelled.scored()["digest"] == first["digest"]
    about, other = _changes(labelled)
    labelled.imported({about: other})
    changed = labelled.scored()
    assert changed["digest"] != first["digest"]
    assert labelled.causes(first["scoring"], changed["scoring"]) == {"label"}
    field = ("--field", about.field) if about.field else ()
    value = labelled.labels[about]
    labelled.command(
        *("labels", "adjudicate", "r", about.item, *field),
        *("--value", value, "--author", "cy"),
    )
    assert labelled.scored()["digest"] == first["digest"]


def _changes(labelled: LabelledRun) -> tuple[ItemField, str]:
    """The first label, and what else people could have said."""
    about, value = next(iter(labelled.labels.items()))
    field = labelled.fields[about.field]
    values = ["2", "3"] if field.is_open else []
    values += [choice.value for choice in field.choices if choice.is_gold]
    return about, next(other for other in values if other != value)


@contextmanager
def _typed(*lines: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.StringIO("".join(f"{line}\n" for line in lines))
    try:
        yield
    finally:
        sys.stdin = before


@pytest.mark.parametrize("words", OF_REPLIES.values(), ids=list(OF_REPLIES))
def test_labels_of_replies_score_runs_that_have_no_other_truth(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    more = () if "toy_jobs" in str(words[1]) else FAST
    done = command(
        *words, *more, "--run-id", "r", "--no-report", "--no-score", "--runs-dir", runs
    )
    assert done.code == 0, done.err
    with label_source(RunFolder(runs / "r")) as source:
        assert source.labelling.needs_reply
        labelled = _labelled(runs, source)
    labelled.imported(labelled.labels)
    first = labelled.scored()
    assert {
        path: one["value"]
        for of_model in first["models"].values()
        for path, one in of_model["metrics"].items()
    } == {"labelled.accuracy": 1.0}
    about = next(iter(labelled.labels))
    labelled.imported({about: "incorrect"})
    changed = labelled.scored()
    assert changed["models"] != first["models"]
    assert labelled.causes(first["scoring"], changed["scoring"]) == {"label"}


def test_labels_of_another_run_say_nothing_of_a_reply(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a", "b"):
        command("run", "replies", *FAST, "--run-id", name, "--runs-dir", runs)
    shared = ("--labels", tmp_path / "shared", "--author", "ann", "--runs-dir", runs)
    with _typed("c", "i", "q"):
        command("label", "a", "--plain", *shared)
    words = (
        "--gold",
        "labels",
        "--labels-from",
        tmp_path / "shared",
        "--runs-dir",
        runs,
    )
    assert command("score", "a", "--no-report", *words).code == 0
    refused = command("score", "b", "--no-report", *words)
    assert "is a gold value of b" in refused.err
    of_runs = (*shared[:2], *shared[4:])
    assert _estimated_labels("a", *of_runs) == 2
    assert _estimated_labels("b", *of_runs) == 0
    bundled = command("bundle", "a", "--runs-dir", runs)
    archive = next((runs / "a" / "exports").glob("*.zip"))
    assert bundled.code == 0, bundled.err
    assert command("verify", archive).code == 0


def _estimated_labels(*words: object) -> int:
    """Labels that estimates of a run count."""
    done = command("estimate-quality", *words, "--json")
    return sum(field["labels"] for field in json.loads(done.out)["fields"])


def test_a_label_counts_for_the_reply_that_was_labelled(tmp_path: Path) -> None:
    runs, replies = tmp_path / "runs", tmp_path / "replies.jsonl"
    corpus = write_corpus(tmp_path / "corpus", 3)

    def answered(*variants: str) -> None:
        rows = (
            {"stage": "extract", "key": f"PMC800000{i}", "response": f'["{variant}"]'}
            for i, variant in enumerate(variants)
        )
        replies.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    answered("rs1", "rs2", "rs3")
    words = (*("--mode", "extract"), *("--model", f"recorded:{replies}"), "--no-score")
    of_runs = ("--runs-dir", runs)
    done = command(
        "run", "paper-investigation", *corpus, *words, "--run-id=r", *of_runs
    )
    assert done.code == 0, done.err
    label = ("label", "r", "--plain", "--author=ann", *of_runs)
    with _typed("c", "i", "c"):
        assert "3 labels recorded" in command(*label).err
    answered("rs1", "rs4", "rs3")
    command("retry", "r", "--filter", "stage:extract", *of_runs)
    assert command("resume", "r", "--no-score", *of_runs).code == 0
    assert json.loads(command("labels", "r", "--json", *of_runs).out)["stale"] == 1
    assert _estimated_labels("r", *of_runs) == 2
    scored = command("score", "r", "--gold=labels", "--no-report", *of_runs)
    assert "left out: 1 of a changed text or reply" in scored.err
    with _typed("c", "c"):
        assert "1 label recorded" in command(*label).err
    assert json.loads(command("labels", "r", "--json", *of_runs).out)["stale"] == 0


def test_imported_answers_are_scored_against_keys_by_people(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command(*flat("--run-id", "r", "--no-report", "--runs-dir", str(runs)))
    with label_source(RunFolder(runs / "r")) as source:
        assert not source.labelling.needs_reply
        labelled = _labelled(runs, source)
    labelled.imported(labelled.labels)
    first = labelled.scored()
    about, other = _changes(labelled)
    labelled.imported({about: other})
    assert labelled.causes(first["scoring"], labelled.scored()["scoring"]) == {"label"}
