"""What a run can be compared with.

What the command prints of a comparison, read; and what tasks cost.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from jobs.kit.comparison.models import ComparisonOptions, compare_models, largest_gaps
from jobs.kit.comparison.rendering import as_json
from store.events import Entry, Event
from store.runs import RunFolder
from tests.jobs.kit.comparison.item_columns import means, pooled, side
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.tui.comparisons import FakeChild, pair, record
from tests.tui.sights import snapshot, with_status
from tui.sources.command import CommandAnswers, CommandFailed
from tui.sources.comparison import (
    ComparisonSource,
    NothingToCompare,
    PricedComparison,
    TaskCost,
    choice_typed,
    comparison_choices,
)
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


def test_skipped_tasks_are_not_open(own: RunSnapshot) -> None:
    counts = replace(own.status.tasks, planned=15, completed=12, failed=2, skipped=1)
    own = with_status(_with(own, "x", "y"), tasks=counts)
    first = next(iter(comparison_choices(own, "r1", [])))
    assert (first.ended, first.planned) == (14, 14)


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


WORDS = ("r1", "r2")


def runs(folder: Path, second: Sequence[Sequence[Entry | Event]] = COURSE) -> Path:
    """A folder with two runs."""
    for name, units in (("r1", COURSE), ("r2", second)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        written(folder / name / "log.db", *units)
    return folder


def compared(
    folder: Path, child: FakeChild, words: tuple[str, ...] = WORDS
) -> PricedComparison:
    return asyncio.run(ComparisonSource(folder, child, CommandAnswers()).compare(words))


def test_what_the_command_prints_is_read(tmp_path: Path) -> None:
    low = means({f"p{n}": n / 40 for n in range(30)})
    high = means({f"p{n}": 0.9 + n / 400 for n in range(2, 33)})
    ratio = pooled({f"p{n}": (n, n + 1.0) for n in range(30)})
    a = side({"score": low, "none": means({}), "r": ratio, "a": low})
    b = side({"score": high, "none": means({}), "r": ratio})
    made = compare_models([(a, b)], (), ComparisonOptions(b=50))
    listed = [largest_gaps(match, "score", 3) for match in made]
    printed = as_json(made, None, ComparisonOptions(b=50), listed)
    child = FakeChild([{"job": "j", "notes": ["n"], **printed}])
    found = compared(runs(tmp_path), child).compared
    (read,) = found.pairs
    assert (found.notes, found.b, found.level) == (("n",), 50, 0.95)
    assert (read.a.run, read.a.model, read.a.seq) == ("r", "m", 7)
    assert (
        read.metrics["score"].difference
        == printed["pairs"][0]["metrics"]["score"]["difference"]
    )
    assert read.metrics["score"].verdict == "better"
    assert read.metrics["r"].test is not None
    assert read.metrics["r"].test.p == 1.0
    assert read.metrics["none"].a is None
    assert read.only_a == ("a",)
    assert [gap.item for gap in read.items] == [gap.item for gap in listed[0]]


def test_the_same_is_not_asked_twice_until_a_log_is_another(tmp_path: Path) -> None:
    child = FakeChild([record(pair())])
    source = ComparisonSource(runs(tmp_path), child, CommandAnswers())

    async def ask() -> int:
        found = await source.compare(WORDS)
        assert await source.compare(WORDS) == found
        await source.items(found, found.compared.pairs[0], "avg_score")
        return len(child.asked)

    assert asyncio.run(ask()) == 2
    tail = ("--runs-dir", str(tmp_path), "--json")
    assert child.asked[0] == ("compare", "r1", "r2", *tail)
    assert child.asked[1][:5] == (
        *("compare", "r1:m-large", "r2:m-large"),
        *("--metric", "avg_score"),
    )
    before = asyncio.run(source.seqs(WORDS))
    shutil.rmtree(tmp_path / "r2")
    (tmp_path / "r2").mkdir()
    written(tmp_path / "r2" / "log.db", *COURSE[:3])
    assert asyncio.run(source.seqs(WORDS))["r2"] < before["r2"]
    assert asyncio.run(ask()) == 4


def test_costs_are_known_only_where_all_prices_are(tmp_path: Path) -> None:
    child = FakeChild([record(pair())])
    costs = compared(runs(tmp_path, COURSE[:2]), child).costs
    assert costs["r1", "m-large"] == TaskCost(usd=0.25, tasks=2)
    assert costs["r2", "m-large"] == TaskCost(usd=None, tasks=0)


def test_the_first_filter_that_fits_a_task_is_taken(tmp_path: Path) -> None:
    source = ComparisonSource(
        runs(tmp_path), FakeChild([record(pair())]), CommandAnswers()
    )

    async def fitting(*filters: str) -> str:
        return await source.fitting(await source.compare(WORDS), filters)

    assert asyncio.run(fitting("item:item-1/q:1", "item:item-1")) == "item:item-1"
    assert asyncio.run(fitting("item:item-1", "item:item")) == "item:item-1"
    assert asyncio.run(fitting("item:none", "item:no")) == "item:no"


@pytest.mark.parametrize(
    ("answer", "words", "sentence"),
    [
        (CommandFailed("r1 and r2 have nothing in common"), WORDS, "nothing in common"),
        ([], WORDS, "printed 0 records"),
        ([{"job": 1}], WORDS, "prints what this monitor cannot read"),
        ([record(pair())], ("r1", "r3:m"), "no run in .* has the id or prefix 'r3'"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    tmp_path: Path,
    answer: list[dict[str, object]] | CommandFailed,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    with pytest.raises(CommandFailed, match=sentence):
        compared(runs(tmp_path), FakeChild(answer), words)
