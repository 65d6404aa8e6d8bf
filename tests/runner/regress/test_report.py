"""Causes of a difference, and the table of the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runner.cli.console import CHECK_FAILED, DONE
from runner.regress.report import CheckedStep, Codes, StepTally, changed_classes
from store.code_fingerprint import CodeFingerprint
from tests.commands import command
from tests.golden.runs import put_inputs, recorded
from tests.replacing import replace

CODE = CodeFingerprint(
    job="1", kit="1", metrics="1", engine="1", dependencies={"numpy": "2.2"}
)


@pytest.mark.parametrize(
    ("changes", "step", "causes"),
    [
        ({"job": "2"}, CheckedStep.PLAN, ("job",)),
        ({"kit": "2"}, CheckedStep.PARSE, ("kit",)),
        ({"metrics": "2"}, CheckedStep.SCORECARD, ("metrics",)),
        ({"engine": "2"}, CheckedStep.REQUESTS, ("engine",)),
        ({"dependencies": {}}, CheckedStep.SCORES, ("dependency",)),
        ({"kit": "2", "metrics": "2"}, CheckedStep.SCORECARD, ("kit", "metrics")),
        ({"kit": "2", "metrics": "2"}, CheckedStep.PARSE, ("kit",)),
        ({"metrics": "2"}, CheckedStep.PARSE, ("metrics",)),
        ({}, CheckedStep.SCORECARD, ("unexplained",)),
    ],
)
def test_classes_that_changed_are_the_causes(
    changes: dict[str, str], step: CheckedStep, causes: tuple[str, ...]
) -> None:
    before, now = Codes(CODE, "a"), Codes(replace(CODE, **changes), "b")
    assert changed_classes(before, now, step) == causes


def test_an_older_log_knows_only_whether_the_job_changed() -> None:
    now = Codes(CODE, "a")
    assert changed_classes(Codes(None, "b"), now, CheckedStep.PLAN) == ("unknown",)
    causes = changed_classes(Codes(None, "a"), now, CheckedStep.PLAN)
    assert causes == ("engine", "dependency")


def test_dependencies_are_named_with_both_versions() -> None:
    tally = StepTally()
    tally.add(7, "scoring 1", "a", "b")
    newer = {"numpy": "2.3", "scipy": "1.15"}
    now = Codes(replace(CODE, dependencies=newer), "a")
    tally.explain(Codes(CODE, "a"), now, CheckedStep.SCORECARD)
    assert tally.causes == ("dependency",)
    assert tally.changes == ("numpy 2.2 → 2.3", "scipy absent → 1.15")


def test_the_earliest_event_is_the_first_of_merged_parts() -> None:
    late, early = StepTally(), StepTally()
    late.add(9, "b", "", "")
    early.add(4, "a", "", "")
    late.merge(early)
    assert late.differs == 2
    assert late.first is not None
    assert late.first.seq == 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run that is equal, and one whose scorecard is not."""
    put_inputs()
    root = tmp_path_factory.mktemp("regress")
    for name, data in recorded().items():
        if name.startswith(("runs/cached-1/", "runs/imported/")):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return root / "runs"


def test_the_table_fits_80_columns_and_names_event_and_cause(folder: Path) -> None:
    long = folder.parent / "long" / f"20261128-190000-{'x' * 60}"
    shutil.copytree(folder / "imported", long)
    done = command("regress", long.parent, "--processes=1")
    assert done.code == CHECK_FAILED
    assert all(len(line) <= 80 for line in done.out.splitlines())
    title, row = done.out.splitlines()[:2]
    assert title == f"{'run':20}  plan  request  parse  score  card  event  cause"
    assert row.split()[1:] == ["-", "-", "=", "=", "1", "73", "unknown"]
    assert "1 run: 1 differ, 0 do not, 0 not checked." in done.out


def test_a_single_run_is_checked_by_its_path(folder: Path) -> None:
    done = command("regress", folder / "cached-1", "--json", "--processes=1")
    assert done.code == DONE
    (line,) = map(json.loads, done.out.splitlines())
    assert (line["run"], line["differs"], line["causes"]) == ("cached-1", False, [])


def test_a_folder_without_runs_is_a_sentence(tmp_path: Path) -> None:
    done = command("regress", tmp_path)
    assert done.code == 2
    assert f"There is no run in {tmp_path}: name a folder of runs." in done.err
