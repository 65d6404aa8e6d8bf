"""What the panels say of limits, money and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.replies import ServedCount
from store.status import LimitsSeen
from store.views import MinuteRow
from tests.tui.sights import later, snapshot, with_signs, with_status
from tui.drawing.glyphs import ASCII, UNICODE
from tui.drawing.room import LEAD, Room
from tui.drawing.run import errors, figures, models
from tui.drawing.run.models import limited_by, short_names
from tui.drawing.run.panels import PARTS
from tui.sources.sight import US_PER_MINUTE, Snapshot


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return snapshot(tmp_path_factory.mktemp("panels") / "r1")


def busy(seen: Snapshot, *, rpm: float | None, tpm: float | None) -> Snapshot:
    """A run that sent 60 requests and 5,000 tokens in its last whole minute."""
    seen = later(seen, 180)
    seen = with_signs(seen, heartbeat_us=seen.now_us)
    row = MinuteRow(
        t=seen.now_us // US_PER_MINUTE - 1,
        stage="ask",
        model="m-large",
        started=60,
        succeeded=50,
        failed=0,
        retried=3,
        tokens_in=4000,
        tokens_out=1000,
        cost_usd=0.25,
    )
    limits = LimitsSeen(
        model="m-large", concurrency=8, rpm=rpm, tpm=tpm, paused_until_us=None
    )
    seen = with_status(seen, limits=(limits,))
    return replace(seen, facts=replace(seen.facts, minutes=(row,)))


def drawn(
    draw: Callable[[Snapshot, Room], object], seen: Snapshot, width: int = 72
) -> str:
    room = Room(width=width, height=12, glyphs=UNICODE)
    return draw(seen, room).plain  # type: ignore[attr-defined, no-any-return]


def test_findings_stand_below_the_errors(live: Snapshot) -> None:
    mixed = ServedCount(
        model="m-large", field="fingerprint", answers={"fp_1": 3, "fp_2": 1}
    )
    seen = with_status(live, served=(mixed,))
    last = drawn(errors.errors, seen).splitlines()[-1]
    assert last.strip().startswith("m-large: 2 fingerprints (fp_1 3, fp_2 1)")
    assert (
        drawn(errors.errors, live).splitlines()
        == (drawn(errors.errors, seen).splitlines()[:-1])
    )
    # a low panel keeps its rows
    room = Room(width=72, height=3, glyphs=UNICODE)
    assert "fingerprints" not in errors.errors(seen, room).plain


@pytest.mark.parametrize(
    ("rpm", "tpm", "said"),
    [
        (60.0, None, "requests/min of m-large"),
        (None, 5200.0, "tokens/min of m-large"),
        (100.0, 9000.0, ""),
        (None, None, ""),
    ],
)
def test_what_holds_a_run_back_is_named(
    live: Snapshot, rpm: float | None, tpm: float | None, said: str
) -> None:
    seen = busy(live, rpm=rpm, tpm=tpm)
    assert limited_by(seen) == said
    assert ("!" in drawn(models.models, seen)) == bool(said)


def test_before_the_first_whole_minute_nothing_is_known_of_rates(
    live: Snapshot,
) -> None:
    line = drawn(models.models, live).split("\n")[1]
    assert line.split()[0] == "m-large"
    assert line.split()[2:] == ["1/8", "-/60", "-", "-", "-"]
    assert "no whole minute yet" in drawn(figures.goodput, live)
    assert "/h" not in drawn(figures.cost, live)


def test_money_is_told_with_its_rate_and_its_budget(live: Snapshot) -> None:
    seen = with_status(busy(live, rpm=None, tpm=None), budget_usd=2.0)
    text = drawn(figures.cost, seen)
    assert "$0.7500 · $7.50/h, last 2 min" in text
    assert "of $2.00" in text


def test_a_price_that_is_unknown_is_never_zero(live: Snapshot) -> None:
    text = drawn(figures.cost, with_status(live, cost_usd=None))
    assert text.startswith("? spent")
    assert "$0" not in text


def test_models_keep_their_providers_where_names_would_be_the_same() -> None:
    names = ["openai/m", "azure/m"]
    assert list(short_names(names).values()) == names


@given(width=st.integers(20, 200), height=st.integers(1, 60), is_ascii=st.booleans())
def test_no_panel_draws_beyond_its_room(
    live: Snapshot, width: int, height: int, *, is_ascii: bool
) -> None:
    glyphs = ASCII if is_ascii else UNICODE
    room = Room(width=width, height=height, glyphs=glyphs, has_lead=True)
    for part in PARTS:
        lines = part.draw(live, room).split("\n")
        assert len(lines) <= max(3, height), part.name
        assert all(line.cell_length <= width + LEAD for line in lines), part.name
