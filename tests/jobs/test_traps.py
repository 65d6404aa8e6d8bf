"""Each numbered trap of a job's specification has a test, named in its `traps.txt`.

A line is a number and the id of a test, from the folder of the file: a test that is
gone or renamed fails here.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TRAPS = {
    "evidence_retrieval": 35,
    "property_extraction": 34,
    "review_benchmark": 30,
    "screening": 28,
}


@pytest.mark.parametrize("job", TRAPS)
def test_each_numbered_trap_has_a_test_that_exists(job: str) -> None:
    lines = (HERE / job / "traps.txt").read_text("utf-8").splitlines()
    named = [line.split() for line in lines if not line.lstrip().startswith("#")]
    assert {int(number) for number, _ in named} == {*range(1, TRAPS[job] + 1)}
    ids = [test.split("::") for _, test in named]
    gone = [each for each in ids if each[1] not in functions_of(HERE / job / each[0])]
    assert gone == []


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The functions of a module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(path.read_text("utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, functions))
