"""What the command prints of a comparison, read; and what tasks cost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs.comparison.models import ComparisonOptions, compare_models, largest_gaps
from jobs.comparison.rendering import as_json
from store.events import Entry, Event
from tests.jobs.comparison.item_columns import means, pooled, side
from tests.store.logs import COURSE, written
from tests.tui.comparisons import FakeChild, pair, record
from tui.sources.command import CommandAnswers, CommandFailed
from tui.sources.comparison import ComparisonSource, PricedComparison, TaskCost

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
        ([record(pair())], ("r1", "r3:m"), "no run in .* is called 'r3'"),
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
