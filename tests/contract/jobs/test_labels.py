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
from tests.contract.jobs.jobs import JobCase, run

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
    if case.job.labelling is None:
        pytest.skip("people label whether its replies are right, which is no truth")
    limit = ITEMS.get(case.name, 2)
    words = case.words(tmp_path)
    made = run(tmp_path, *words, "--limit", limit, "--no-report")
    asked = {task["key"] for task in made.tasks() if task["state"] == "completed"}
    with label_source(RunFolder(made.runs / "r")) as source:
        # a task that the monitor shows leads to the items that it is about
        assert {*source.items_named(asked)} <= {*source.items}
        return LabelledRun(
            runs=made.runs,
            labels={
                about: _value(source, about) for about in source.questions(source.items)
            },
            fields={field.name: field for field in source.fields},
        )


def _value(source: LabelSource, about: ItemField) -> str:
    """What a model replied, or else the first value that there is."""
    values = [reply.value for reply in source.replies.get(about, ()) if reply.value]
    return next(iter(values), None) or source.field(about.field).choices[0].value


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
