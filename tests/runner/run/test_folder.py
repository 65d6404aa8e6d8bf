"""A folder that appears whole or not at all.

What a scoring says of its run's course: cost and tokens, whole and for each unit.
Answers on their way into a log: what went in comes out, in memory or in a file.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.imported_answers import AnswerSpool
from runner.job import ImportedAnswer, TaskSpec
from runner.plan import BLOCK
from runner.run.folder import replaced
from runner.score.render import operations_json
from runner.scorecard import Scorecard
from store.database import open_reader
from store.read.status import Status, status
from store.read.usage import UsageCount, usage_counts
from tests.replacing import replace
from tests.store.logs import written
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
from tests.store.samples import reply as answer

KILLED = """
import os, signal, sys
from pathlib import Path
from runner.run.folder import replaced

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

with replaced(Path(sys.argv[1]), force=True) as draft:
    (draft / "half").write_text("half")
    if sys.argv[2] == "inside":
        die()
    # the second of the two moves, or what is removed after it
    if sys.argv[2] == "between":
        draft.__class__.replace = lambda own, to, move=Path.replace: (
            die() if own == draft else move(own, to)
        )
    else:
        import shutil
        shutil.rmtree = die
"""


def fill(target: Path, text: str, *, force: bool = False) -> None:
    with replaced(target, force=force) as draft:
        (draft / "file").write_text(text)


def fail(target: Path, error: BaseException) -> None:
    with replaced(target, force=True) as draft:
        (draft / "file").write_text("two")
        raise error


def held(folder: Path) -> dict[str, str]:
    """All files below a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_is_made_with_those_above_it_and_replaced_only_by_force(
    tmp_path: Path,
) -> None:
    target = tmp_path / "a" / "set"
    fill(target, "one")
    with pytest.raises(UsageError, match=r"exists already: name another --out, or use"):
        fill(target, "two")
    assert held(tmp_path) == {"a/set/file": "one"}
    (target / "own").write_text("mine")
    fill(target, "two", force=True)
    # nothing is merged into, and nothing is left beside it
    assert held(tmp_path) == {"a/set/file": "two"}
    assert [path.name for path in target.parent.iterdir()] == ["set"]


def test_a_folder_of_the_working_folder_may_be_named_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Path("set"), "one")
    assert held(tmp_path) == {"set/file": "one"}


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "elsewhere" / "set"
    link.symlink_to(target)
    fill(link, "one")
    fill(link, "two", force=True)
    assert link.readlink() == target
    assert held(tmp_path / "elsewhere") == {"set/file": "two"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link"]


@pytest.mark.parametrize("error", [ValueError("bad row"), KeyboardInterrupt()])
def test_whatever_goes_wrong_inside_the_old_folder_stays(
    tmp_path: Path, error: BaseException
) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    with pytest.raises(type(error)):
        fail(target, error)
    assert held(tmp_path) == {"set/file": "one"}


def test_a_full_disk_is_one_sentence_and_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(UsageError, match="set cannot be written: No space left"):
        fail(target, error)
    assert held(tmp_path) == {"set/file": "one"}


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("mine")
    with pytest.raises(UsageError, match=r"file is not a folder: name another --out\."):
        fill(target, "one", force=True)
    with pytest.raises(
        UsageError, match=r"^\. is not a folder that can be replaced: name anothe"
    ):
        fill(Path(), "one", force=True)
    with pytest.raises(UsageError, match=r"cannot be written: Not a directory\."):
        fill(target / "set", "one")
    assert held(tmp_path) == {"file": "mine"}


def killed(target: Path, where: str) -> None:
    """A process that replaces *target* is killed there."""
    done = subprocess.run([sys.executable, "-c", KILLED, target, where], check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_process_killed_in_the_middle_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    killed(target, "inside")
    assert held(target) == {"file": "one"}
    # what it had begun lies hidden beside it, and goes; what others write stays
    others = tmp_path / f".set.{os.getppid()}.draft"
    others.mkdir()
    (others / "file").write_text("three")
    earlier = tmp_path / f".set.{os.getpid()}.draft"
    earlier.mkdir()
    assert sum(path.suffix == ".draft" for path in tmp_path.iterdir()) == 3
    fill(target, "two", force=True)
    assert held(tmp_path) == {"set/file": "two", f"{others.name}/file": "three"}


def test_what_a_process_killed_between_the_moves_took_away_is_put_back(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s[e]t"
    fill(target, "one")
    killed(target, "between")
    assert not target.exists()
    with pytest.raises(UsageError, match=r"killed, and is restored: name anoth"):
        fill(target, "two")
    assert held(target) == {"file": "one"}
    killed(target, "between")
    fill(target, "two", force=True)
    assert held(target) == {"file": "two"}


def test_what_a_process_killed_after_the_moves_left_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    killed(target, "after")
    assert held(target) == {"half": "half"}
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".old", ""]
    fill(target, "two", force=True)
    assert held(tmp_path) == {"set/file": "two"}


CARD = Scorecard(
    models={},
    summary="",
    units={"m-large": {"record": 4, "rightly excluded": 0}, "m-none": {"record": 4}},
)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> tuple[Status, list[UsageCount]]:
    """Two stages of one model, one call in vain, and one answer of another model."""
    path = written(
        tmp_path_factory.mktemp("run") / "log.db",
        [
            RUN_STARTED,
            plan([task(1), task(2, stage="judge"), task(3, model="m-small")]),
        ],
        [started(1), failed(1), started(1, 2)],
        [answer(1, b"x", 2, cost_usd=0.5), completed(1, 2)],
        [started(2), answer(2, b"x", cost_usd=0.25), completed(2)],
        [started(3), answer(3, b"x", cost_usd=8.0), completed(3)],
    )
    with open_reader(path) as reader:
        return status(reader), usage_counts(reader)


def said(state: Status, usage: list[UsageCount]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(operations_json(state, usage, CARD))["models"]
    return found


def test_what_a_model_took_is_told_by_what_its_job_counts(
    course: tuple[Status, list[UsageCount]],
) -> None:
    found = said(*course)
    assert [*found] == ["m-large", "m-none"]
    own = found["m-large"]
    assert (own["replies"], own["tokens_in"], own["cost_usd"]) == (2, 100, 0.75)
    assert own["per"]["record"] == {
        "n": 4,
        "tokens_in": 25.0,
        "tokens_out": own["tokens_out"] / 4,
        "cost_usd": 0.1875,
    }
    assert {*own["per"]["rightly excluded"].values()} == {0, None}
    assert found["m-none"]["per"]["record"]["cost_usd"] == 0.0


def test_a_cost_that_is_not_known_is_none_and_an_import_took_nobody_knows_what(
    course: tuple[Status, list[UsageCount]],
) -> None:
    state, usage = course
    found = said(replace(state, cost_usd=None), usage)["m-large"]
    assert (found["cost_usd"], found["per"]["record"]["cost_usd"]) == (None, None)
    assert found["per"]["record"]["tokens_in"] == 25.0
    assert said(replace(state, imported=True), usage) == {}


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
answers = st.builds(
    ImportedAnswer,
    spec=st.builds(
        TaskSpec,
        stage=texts,
        key=texts,
        skip=st.none() | texts,
        context=st.none() | texts,
        group=st.none() | texts,
    ),
    model=texts,
    replicate=st.integers(1, 9),
    text=st.none() | texts,
    finish_reason=texts,
    error=st.none() | texts,
    descends=st.booleans(),
)


@given(st.lists(answers))
def test_a_spool_gives_back_what_it_took_and_gives_it_again(
    given: list[ImportedAnswer],
) -> None:
    with AnswerSpool() as spool:
        assert list(spool.fill(given)) == given
        assert list(spool) == given
        assert list(spool) == given


@pytest.mark.parametrize("in_memory", [1, 1 << 20])
@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, 2 * BLOCK + 1])
def test_neither_blocks_nor_a_file_change_the_order(n: int, in_memory: int) -> None:
    given = [
        ImportedAnswer(
            spec=TaskSpec(stage="s", key=f"i{i}"), model="m", replicate=1, text="x" * i
        )
        for i in range(n)
    ]
    with AnswerSpool(in_memory) as spool:
        assert list(spool.fill(given)) == given
        assert list(spool) == given
