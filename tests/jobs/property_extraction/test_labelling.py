"""People state the values of papers, and a run is scored against them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.labels.source import label_source
from jobs.property_extraction.labelling import NONE, label_of, rows_of
from jobs.property_extraction.rows import Prediction
from runner.errors import DatasetError
from store.runs import RunFolder
from tests.commands import command

FAST = ("--no-report", "--boot-b", "0")


@pytest.mark.parametrize(
    ("label", "cells"),
    [
        ("none", []),
        ("39 K", [("39", "K", "", "")]),
        ("1.2 x 10^3 cm ; 7", [("1.2 x 10^3", "cm", "", ""), ("7", "", "", "")]),
        ("39 | K | MgB2", [("39", "K", "MgB2", "")]),
        ("39 K | | MgB2 | 0 T", [("39 K", "", "MgB2", "0 T")]),
        ("type II", [("type II", "", "", "")]),
    ],
)
def test_a_label_states_values(label: str, cells: list[tuple[str, ...]]) -> None:
    rows = rows_of("P1", "Tc", label, is_number=True)
    assert [(r.value, r.unit, r.material, r.condition) for r in rows] == cells


@pytest.mark.parametrize("label", ["1|2|3|4|5", "| K", "39 K; | K"])
def test_what_is_no_value_is_a_sentence(label: str) -> None:
    with pytest.raises(DatasetError, match="label it again as"):
        rows_of("P1", "Tc", label)


def test_text_that_is_no_number_is_not_split() -> None:
    (row,) = rows_of("P1", "form", "2 crystals")
    assert (row.value, row.unit) == ("2 crystals", "")


def scored(*words: object) -> dict[str, Any]:
    done = command("score", "r", "--json", *FAST, *words)
    assert done.code == 0, done.err
    card: dict[str, Any] = json.loads(done.out)
    assert card["missing"] == 0
    return card


def metrics(card: dict[str, Any]) -> dict[str, Any]:
    (model,) = card["models"].values()
    values: dict[str, Any] = model["metrics"]
    return {path: metric["value"] for path, metric in values.items()}


def test_labels_that_are_the_curated_values_give_the_published_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("run", "property-extraction", "--run-id", "r", *FAST)
    assert done.code == 0, done.err
    with label_source(RunFolder(Path("runs/r"))) as source:
        data, items = source.dataset, source.items
        rows = [
            (
                item,
                field.name,
                label_of(
                    [
                        Prediction(
                            refno=item,
                            name=row.name,
                            value=row.value,
                            unit=row.unit,
                            material=row.material,
                            condition=row.condition,
                        )
                        for row in data.truth
                        if (row.refno, row.name) == (item, field.name)
                    ]
                ),
            )
            for item in items
            for field in source.fields
        ]
    _import(rows)
    assert metrics(scored("--gold", "labels")) == metrics(scored())
    # a paper that is labelled in part is left out, and its rows are no mistakes
    _import([(items[0], rows[0][1], "undecided")])
    fewer = scored("--gold", "labels")
    assert fewer["stale"] == 1
    # one that reports nothing at all is judged
    _import([(items[0], name, NONE) for item, name, _ in rows if item == items[0]])
    assert scored("--gold", "labels")["stale"] == 0


def _import(rows: list[tuple[str, str, str]]) -> None:
    with Path("labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("item", "field", "value"))
        writer.writerows(rows)
    done = command("labels", "import", "r", "labels.csv", "--author", "ann")
    assert done.code == 0, done.err
