"""The table of planted faults fits the product: no fault is stale."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.__main__ import ROOT, ScratchTree, file_of, read_faults, sources

FAULTS = read_faults()


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    return sources(ROOT)


def test_the_snippet_of_each_fault_occurs_once_in_the_product(
    texts: dict[Path, str],
) -> None:
    assert [fault.name for fault in FAULTS if file_of(fault, texts) is None] == []


def test_a_snippet_that_occurs_twice_is_stale(texts: dict[Path, str]) -> None:
    assert file_of(replace(FAULTS[0], old="import"), texts) is None


def test_each_fault_changes_the_source_and_has_a_name_of_its_own() -> None:
    assert [fault.name for fault in FAULTS if fault.old == fault.new] == []
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_each_room_has_twenty_faults() -> None:
    assert set(Counter(fault.room for fault in FAULTS).values()) == {20}


def test_the_tests_of_each_fault_are_there() -> None:
    paths = {test.partition("::")[0] for fault in FAULTS for test in fault.tests}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_a_planted_fault_is_gone_afterwards(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for folder in ("store", "runner", "jobs", "tui"):
        (tree / folder).mkdir(parents=True)
    source = tree / "store" / "cap.py"
    source.write_text("return taken <= cap\n")
    scratch = ScratchTree(tree, tmp_path / "scratch")
    fault = replace(FAULTS[0], old="<=", new="<")
    path = file_of(fault, scratch.texts)
    assert path is not None
    with scratch.planted(fault, path):
        planted, planted_at = path.read_text(), path.stat().st_mtime
    assert planted == "return taken < cap\n"
    assert path.read_text() == source.read_text() == "return taken <= cap\n"
    assert planted_at != path.stat().st_mtime
