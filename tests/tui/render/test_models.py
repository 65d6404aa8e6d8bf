"""What the panels say of limits, money and models.

How a run was set up: everything is named, and no secret is shown. A run in eight lines:
never more, whatever the run is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import Input, RunStarted
from store.read.forecast import ForecastInterval
from store.read.limits import ObservedLimits
from store.read.live import MinuteRow
from store.read.usage import ServedCount
from tests.replacing import replace
from tests.tui.sights import (
    HOSTILE,
    every_state,
    later,
    snapshot,
    with_signs,
    with_status,
)
from tui.inline import LINES, brief
from tui.render import errors, models, progress
from tui.render.glyphs import ASCII, UNICODE
from tui.render.layout import LEAD, Room
from tui.render.models import limited_by, short_names
from tui.render.run_panels import RUN_PANELS
from tui.screens.config import MASK, configured, mask_secrets, masked
from tui.sources.run_snapshot import US_PER_MINUTE, RunSnapshot


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> RunSnapshot:
    return snapshot(tmp_path_factory.mktemp("panels") / "r1")


def busy(seen: RunSnapshot, *, rpm: float | None, tpm: float | None) -> RunSnapshot:
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
    limits = ObservedLimits(
        model="m-large", concurrency=8, rpm=rpm, tpm=tpm, paused_until_us=None
    )
    seen = with_status(seen, limits=(limits,))
    return replace(seen, facts=replace(seen.facts, minutes=(row,)))


def drawn(
    draw: Callable[[RunSnapshot, Room], object], seen: RunSnapshot, width: int = 72
) -> str:
    room = Room(width=width, height=12, glyphs=UNICODE)
    return draw(seen, room).plain  # type: ignore[attr-defined, no-any-return]


def test_findings_stand_below_the_errors(live: RunSnapshot) -> None:
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
    live: RunSnapshot, rpm: float | None, tpm: float | None, said: str
) -> None:
    seen = busy(live, rpm=rpm, tpm=tpm)
    assert limited_by(seen) == said
    spans = models.models(seen, Room(width=80, height=9, glyphs=UNICODE)).spans
    assert any("waiting" in str(span.style) for span in spans) == bool(said)


def test_a_limit_that_was_set_stands_beside_what_the_endpoint_leaves_of_it(
    live: RunSnapshot,
) -> None:
    seen = busy(live, rpm=None, tpm=None)
    (limits,) = seen.status.limits
    lowered = with_status(seen, limits=(replace(limits, ceiling=12),))
    assert " 1/8 of 12 " in drawn(models.models, lowered)
    assert " of 8" not in drawn(
        models.models, with_status(seen, limits=(replace(limits, ceiling=8),))
    )


def test_before_the_first_whole_minute_nothing_is_known_of_rates(
    live: RunSnapshot,
) -> None:
    line = drawn(models.models, live).split("\n")[1]
    assert line.split()[0] == "m-large"
    assert line.split()[2:] == ["1/8", "-/60", "-", "-", "none"]
    assert "no whole minute yet" in drawn(progress.rate, live)
    assert "/h" not in drawn(progress.cost, live)
    # with a rate since the start, too
    young = later(live, 70)
    young = with_signs(young, heartbeat_us=young.now_us)
    assert young.rate is not None
    assert drawn(models.models, young).split("\n")[1].split()[3:5] == ["-/60", "-"]


def test_money_is_told_with_its_rate_and_its_budget(live: RunSnapshot) -> None:
    seen = with_status(busy(live, rpm=None, tpm=None), budget_usd=2.0)
    text = drawn(progress.cost, seen)
    assert "$0.7500 · $7.50/h, so far" in text
    assert "of $2.00" in text


def test_a_projection_is_not_cut_in_a_narrow_panel(
    live: RunSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    interval = ForecastInterval(low=0.6854, expected=0.7052, high=0.7254)
    monkeypatch.setattr(type(live), "comes_to_usd", interval)
    for width, line in (
        (60, "projected $0.7052 ($0.6854 to $0.7254)"),
        (36, "projected $0.7052 ($0.6854–$0.7254)"),
    ):
        room = Room(width=width, height=6, glyphs=UNICODE)
        assert line in progress.cost(live, room).plain.split("\n")


def test_a_price_that_is_unknown_is_never_zero(live: RunSnapshot) -> None:
    text = drawn(progress.cost, with_status(live, cost_usd=None))
    assert text.startswith("cost ?")
    assert "$0" not in text


def test_models_keep_their_providers_where_names_would_be_the_same() -> None:
    names = ["openai/m", "azure/m"]
    assert list(short_names(names).values()) == names


@given(width=st.integers(20, 200), height=st.integers(1, 60), is_ascii=st.booleans())
def test_no_panel_draws_beyond_its_room(
    live: RunSnapshot, width: int, height: int, *, is_ascii: bool
) -> None:
    glyphs = ASCII if is_ascii else UNICODE
    room = Room(width=width, height=height, glyphs=glyphs, has_lead=True)
    for part in RUN_PANELS:
        lines = part.draw(live, room).split("\n")
        assert len(lines) <= max(3, height), part.name
        assert all(line.cell_length <= width + LEAD for line in lines), part.name


KEY = "sk-proj-0123456789abcdef"
BEGAN = RunStarted(
    run_id="r1",
    job="claim-extract",
    job_version="7",
    code_sha256="c0de",
    settings=json.dumps({"limit": 5, "endpoint": {"api_key": "hunter2"}}),
    models={"subject": ["m-large", "m-small"], "judge": ["m-judge"]},
    replicates=3,
    inputs=[Input(setting="papers", path="/data/papers", sha256="ab12")],
    siftlog_version="0.1.0",
    budget_usd=5.0,
)


def test_it_names_models_plan_inputs_settings_and_hashes() -> None:
    text = configured(BEGAN, {"extract": 1204}, {"concurrency": 8})
    for words in (
        "claim-extract 7",
        "sha256 c0de",
        "m-large, m-small",
        "m-judge",
        "extract  1,204",
        "/data/papers",
        "ab12",
        "$5.00",
        "limit",
        "concurrency  8",
    ):
        assert words in text


def test_nothing_secret_is_shown_wherever_it_stands() -> None:
    config = {
        "authorization": "Bearer abc",
        "headers": [{"X-Api-Key": "hunter2"}, {"note": f"use {KEY} here"}],
        "base_url": "https://ann:hunter2@example.org/v1",
        "session_cookie": "hunter2",
        "apiKey": "hunter2",
    }
    began = replace(BEGAN, models={"subject": [f"m?key={KEY}"]})
    text = configured(began, {}, config)
    for secret in ("hunter2", "abc", KEY):
        assert secret not in text.replace("ab12", "")
    assert text.count(MASK) == 8


@pytest.mark.parametrize("name", ["max_tokens", "context_tokens", "keyword", "n"])
def test_what_is_no_secret_is_shown(name: str) -> None:
    assert masked({name: "512"}) == {name: "512"}
    assert masked({"api_key": "", "top_key": 5}) == {"api_key": "", "top_key": 5}


def test_a_header_keeps_its_kind() -> None:
    assert mask_secrets("Authorization: Bearer xyz.abc") == "Authorization: Bearer ***"
    assert mask_secrets("http://host:8000/v1") == "http://host:8000/v1"


def test_a_missing_configuration_is_said() -> None:
    assert "none that can be read" in configured(BEGAN, {}, None)
    assert "tasks planned by stage\n    none" in configured(BEGAN, {}, {})


@pytest.mark.parametrize("width", [40, 80, 160])
def test_every_state_takes_eight_lines(tmp_path: Path, width: int) -> None:
    for state, seen in every_state(tmp_path / "r1"):
        text = brief(seen, Room(width=width, height=LINES, glyphs=UNICODE)).plain
        lines = text.split("\n")
        assert len(lines) == LINES
        assert state.replace("_", " ")[: width - 20] in lines[0]
        assert max(map(len, lines)) <= width


def test_errors_are_counted_by_class_and_stages_beyond_the_room_are(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")
    lane = live.status.queues[0]
    many = with_status(
        live,
        run_id=HOSTILE,
        queues=[replace(lane, stage=f"stage-{n}") for n in range(9)],
    )
    text = brief(many, Room(width=100, height=LINES, glyphs=UNICODE)).plain
    assert len(text.split("\n")) == LINES
    assert "and 8 more" in text
    assert "failed attempts: Overloaded 3" in text
    assert all(character.isprintable() or character == "\n" for character in text)
