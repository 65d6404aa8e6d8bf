"""Criteria: JSON or CSV, in file order; without a file in natural order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.data import Criterion
from jobs.evidence_retrieval.inputs import load, natural_order
from runner.errors import DatasetError
from tests.jobs.evidence_retrieval.input_files import files


def criteria(folder: Path, content: object) -> tuple[Criterion, ...]:
    text = content if isinstance(content, str) else json.dumps(content)
    return load(files(folder, criteria=text)).criteria


@given(st.lists(st.text("A.019", max_size=5)))
def test_natural_order_is_an_order_of_the_distinct_ids(ids: list[str]) -> None:
    ordered = natural_order(ids)
    assert sorted(ordered) == sorted(set(ids))
    assert natural_order(reversed(ids)) == ordered


def test_numbers_in_ids_are_ordered_as_numbers() -> None:
    ids = ["B", "A.10", "A.2", "A.02", "10", "9", "A", "A.1.3", "A.1.12", ""]
    assert natural_order(ids) == (
        *("", "9", "10", "A", "A.1.3", "A.1.12", "A.02", "A.2", "A.10", "B"),
    )


def test_json_may_use_either_names_and_keeps_the_files_order(tmp_path: Path) -> None:
    content = {
        "criteria": [
            {"id": "A.10", "text": "tall", "name": "T"},
            {"criterion_id": "A.2", "description": "small"},
        ]
    }
    assert criteria(tmp_path, content) == (
        Criterion(id="A.10", text="tall", name="T"),
        Criterion(id="A.2", text="small"),
    )


def test_csv_keeps_the_files_order_and_ids_as_text(tmp_path: Path) -> None:
    found = criteria(tmp_path, "text,criterion_id\nb,02\na,NA\n")
    assert [(each.id, each.text) for each in found] == [("02", "b"), ("NA", "a")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"criteria": [{"id": "a", "text": "x"}, {"id": "b"}]}, "2: text is missing"),
        ({"criteria": [{"id": "a", "text": " "}]}, "1: criterion a has no text (write"),
        ({"criteria": [{"text": "x"}]}, "1: criterion_id is missing (fill"),
        ({"criteria": [{"id": "a/b", "text": "x"}]}, '1: criterion_id a/b holds "/"'),
        ({"criteria": [{"id": "a", "text": "x"}] * 2}, "2: criterion a occurs twice"),
        ({"criteria": ["a"]}, "1: not an object with id and text (write both)."),
    ],
)
def test_a_criterion_that_is_off_is_named_by_its_number(
    tmp_path: Path, content: object, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        criteria(tmp_path, content)
    assert str(caught.value).startswith(f"criteria.json criterion {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"criterion": []}', "criteria.json: no list of criteria (an object"),
        ('{"criteria": []}', "criteria.json: no criterion in it (at least one"),
        ("criterion_id,text\n", "criteria.csv: no criterion in it (at least one"),
        ("criterion_id,text\na,\n", "criteria.csv line 2: text is missing (fill"),
        (
            "criterion_id\na\n",
            "criteria.csv: column 'text' is missing (found: criterion_id",
        ),
    ],
)
def test_a_file_without_criteria_is_refused(
    tmp_path: Path, content: str, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        criteria(tmp_path, content)
    assert str(caught.value).startswith(said)
