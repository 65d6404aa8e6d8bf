"""What a run can be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from store.runs import RunFolder
from tests.tui.sights import snapshot, with_status
from tui.sources.comparison import NothingToCompare, choice_typed, comparison_choices
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, SnapshotOrProblem


@pytest.fixture
def own(tmp_path: Path) -> RunSnapshot:
    return snapshot(tmp_path / "r1")


def _listed(sights: Mapping[str, SnapshotOrProblem | None]) -> list[ListedRun]:
    return [
        ListedRun(folder=RunFolder(Path("runs") / run), snapshot=sight)
        for run, sight in sights.items()
    ]


def _with(own: RunSnapshot, *models: str, job: str = "sample-job") -> RunSnapshot:
    return with_status(own, models={"subject": list(models)}, job=job)


def test_own_models_come_first_then_each_with_itself_then_others(
    own: RunSnapshot,
) -> None:
    own = _with(own, "x", "y")
    listed = _listed({"r1": own, "b": _with(own, "y"), "c": _with(own, "x", "y:free")})
    found = [choice.words for choice in comparison_choices(own, "r1", listed)]
    assert found == [
        ("r1",),
        ("r1:x", "r1:y"),
        ("r1:y", "b:y"),
        ("r1:x", "c:x"),
        ("r1:x", "b:y"),
        ("r1:x", "c:y:free"),
        ("r1:y", "c:x"),
        ("r1:y", "c:y:free"),
    ]


def test_runs_that_share_models_are_one_choice_too(own: RunSnapshot) -> None:
    own = _with(own, "x", "y")
    first = list(comparison_choices(own, "r1", _listed({"b": own})))[2]
    assert (first.words, first.a, first.b) == (
        ("r1", "b"),
        "2 models",
        "b  each with itself",
    )


def test_what_cannot_be_compared_is_no_choice(own: RunSnapshot) -> None:
    own = _with(own, "x")
    listed = _listed(
        {
            "other-job": _with(own, "x", job="another"),
            "unread": None,
            "broken": ReadProblem(sentence="it is gone"),
            "--csv=out": _with(own, "x"),
            "last": _with(own, "x"),
        }
    )
    assert not list(comparison_choices(own, "r1", listed))


def test_what_is_typed_is_b_or_both(tmp_path: Path) -> None:
    (tmp_path / "of runs").mkdir()
    folder = str(tmp_path / "of runs")
    assert choice_typed("r1", "r2") == ("r1", "r2")
    assert choice_typed("r1", " r2:m:free ") == ("r1", "r2:m:free")
    assert choice_typed("r1", "r1:x r2:y") == ("r1:x", "r2:y")
    assert choice_typed("r1", folder) == ("r1", folder)


@pytest.mark.parametrize("text", ["--csv=x", "r1 --csv=x", "r1 r2 r3", "r2 r1"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(NothingToCompare):
        choice_typed("r1", text)
