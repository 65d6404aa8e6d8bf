"""What a run can be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from store.runs import RunFolder
from tests.tui.sights import snapshot, with_status
from tui.sources.choices import NoChoice, choices, typed
from tui.sources.listing import Listed
from tui.sources.sight import Sight, Snapshot, Trouble


@pytest.fixture
def own(tmp_path: Path) -> Snapshot:
    return snapshot(tmp_path / "r1")


def _listed(sights: Mapping[str, Sight | None]) -> list[Listed]:
    return [
        Listed(folder=RunFolder(Path("runs") / run), sight=sight)
        for run, sight in sights.items()
    ]


def _with(own: Snapshot, *models: str, job: str = "sample-job") -> Snapshot:
    return with_status(own, models={"subject": list(models)}, job=job)


def test_own_models_come_first_then_each_with_itself_then_others(own: Snapshot) -> None:
    own = _with(own, "x", "y")
    listed = _listed({"r1": own, "b": _with(own, "y"), "c": _with(own, "x", "y:free")})
    found = [choice.words for choice in choices(own, "r1", listed)]
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


def test_runs_that_share_models_are_one_choice_too(own: Snapshot) -> None:
    own = _with(own, "x", "y")
    first = list(choices(own, "r1", _listed({"b": own})))[2]
    assert (first.words, first.a, first.b) == (
        ("r1", "b"),
        "2 models",
        "b  each with itself",
    )


def test_what_cannot_be_compared_is_no_choice(own: Snapshot) -> None:
    own = _with(own, "x")
    listed = _listed(
        {
            "other-job": _with(own, "x", job="another"),
            "unread": None,
            "broken": Trouble(sentence="it is gone"),
            "--csv=out": _with(own, "x"),
            "last": _with(own, "x"),
        }
    )
    assert not list(choices(own, "r1", listed))


def test_what_is_typed_is_b_or_both(tmp_path: Path) -> None:
    (tmp_path / "of runs").mkdir()
    folder = str(tmp_path / "of runs")
    assert typed("r1", "r2") == ("r1", "r2")
    assert typed("r1", " r2:m:free ") == ("r1", "r2:m:free")
    assert typed("r1", "r1:x r2:y") == ("r1:x", "r2:y")
    assert typed("r1", folder) == ("r1", folder)


@pytest.mark.parametrize("text", ["--csv=x", "r1 --csv=x", "r1 r2 r3", "r2 r1"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(NoChoice):
        typed("r1", text)
