"""Parts of jobs that are imported late, or chosen by mode, fit the base class."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Iterator

import pytest

from jobs.kit.evaluation import SourceMeasures
from jobs.kit.job import Deferred, either
from runner.evaluation import Evaluation
from runner.job import Job
from runner.labelling import Labelling
from runner.registry import job_names, load_job

MISSING = Deferred("jobs.kit.job:no_such_name")


class Example:
    dumps = Deferred("json:dumps")
    codes = Deferred("errno:errorcode")
    missing = MISSING
    size = either(lambda value: isinstance(value, int), abs, len)


def test_a_deferred_function_is_called_without_the_job() -> None:
    assert Example().dumps({"a": 1}) == '{"a": 1}'


def test_a_deferred_value_is_the_value() -> None:
    assert Example().codes is errno.errorcode


def test_a_deferred_function_in_a_mapping_is_called_like_any_other() -> None:
    assert {"dumps": Deferred("json:dumps")}["dumps"]([1]) == "[1]"


def test_a_class_with_a_deferred_part_imports_nothing() -> None:
    assert Example.missing is MISSING
    with pytest.raises(AttributeError):
        _ = Example().missing


def test_the_first_argument_chooses_the_mode() -> None:
    assert Example().size(-3) == 3
    assert Example().size("four") == 4


def deferred(value: object) -> Iterator[Deferred]:
    """The deferred parts in an attribute of a class."""
    if isinstance(value, Deferred):
        yield value
    if isinstance(value, dict):
        for each in value.values():
            yield from deferred(each)
    if isinstance(value, staticmethod):
        for cell in value.__func__.__closure__ or ():
            yield from deferred(cell.cell_contents)


PARTS = [
    (name, part, target)
    for name in job_names()
    for part, value in vars(type(load_job(name))).items()
    for target in deferred(value)
]


@pytest.mark.parametrize(("name", "part", "target"), PARTS)
def test_deferred_parts_take_what_the_runner_passes(
    name: str, part: str, target: Deferred
) -> None:
    value = target.__get__(load_job(name), Job)
    if part == "prepare":
        functions = value.values() if isinstance(value, dict) else [value]
        counts = dict.fromkeys(functions, 1)
    elif part == "explain_inputs":
        counts = {value: 2}
    elif part == "importer":
        assert value.formats
        counts = {}
    elif part == "labelling":
        assert isinstance(value, Labelling)
        counts = {}
    elif part == "further":
        assert isinstance(value, SourceMeasures)
        counts = {value.collect: 2}
    elif part == "evaluation":
        assert isinstance(value, Evaluation)
        counts = {value.metrics: 1}
    else:
        counts = {value: len(inspect.signature(getattr(Job, part)).parameters) - 1}
    for function, count in counts.items():
        inspect.signature(function).bind(*range(count))


def test_jobs_have_deferred_parts() -> None:
    assert {part for _, part, _ in PARTS} >= {"score", "explain", "importer", "prepare"}
