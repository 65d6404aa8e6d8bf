"""The headline so far: its provenance first, then what fits of it."""

from __future__ import annotations

import pytest

from tests.tui.fake_history import HEADLINE
from tests.tui.sights import HOSTILE
from tui.render.glyphs import UNICODE
from tui.render.layout import Room
from tui.render.metrics import HeadlineState, headline, provenance
from tui.sources.headline import Headline, HeadlineMetric, HeadlineProgress

KNOWN = HeadlineProgress().started(0).answered(10, HEADLINE)
OF = "so far, of 812 ended tasks, as of event 12,345, computed "


@pytest.mark.parametrize(
    ("reckoning", "said"),
    [
        (HeadlineProgress(), "not computed yet: r does"),
        (HeadlineProgress().started(38), "computing for 12 s"),
        (KNOWN, f"{OF}40 s ago"),
        (KNOWN.started(49), f"{OF}40 s ago · computing for 1.0 s"),
        (
            KNOWN.started(49).failed(50, "the corpus is gone"),
            f"not computed: the corpus is gone; r tries again · {OF}40 s ago",
        ),
    ],
)
def test_what_it_is_made_of_and_how_old_it_is_comes_first(
    reckoning: HeadlineProgress, said: str
) -> None:
    assert provenance(HeadlineState(reckoning=reckoning, now_s=50)) == said


@pytest.mark.parametrize(("width", "height"), [(116, 8), (96, 5), (76, 14), (156, 40)])
def test_it_fits_its_room_and_counts_what_does_not(width: int, height: int) -> None:
    room = Room(width=width, height=height, glyphs=UNICODE)
    lines = headline(HeadlineState(reckoning=KNOWN, now_s=50), room).plain.split("\n")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "95% interval" in lines[1]
    assert "0.5000" in lines[2]
    shown = sum("metric_" in line for line in lines)
    more = 24 - shown
    assert lines[-1].strip().startswith(f"and {more} more" if more else "metric_11")


def test_names_from_outside_and_figures_without_an_interval_do_no_harm() -> None:
    metric = HeadlineMetric(path=HOSTILE, model=HOSTILE, value=7, n=7, lo=None, hi=None)
    found = Headline(metrics=(metric,), level=None, seq=1, ended=1, is_partial=False)
    known = HeadlineProgress().started(0).answered(0, found)
    room = Room(width=100, height=8, glyphs=UNICODE)
    text = headline(HeadlineState(reckoning=known, now_s=1), room).plain
    assert "\x1b" not in text
    _, heads, row = text.split("\n")
    assert "interval" in heads.split()
    assert row.split()[-3:] == ["7", "-", "7"]


def test_a_metric_has_its_name_and_where_there_is_room_its_key() -> None:
    metric = HeadlineMetric(
        path="all.micro.sensitivity",
        name="Sensitivity",
        model="m",
        value=0.5,
        n=7,
        lo=0.25,
        hi=0.75,
    )
    found = Headline(metrics=(metric,), level=0.9, seq=1, ended=1, is_partial=False)
    known = HeadlineProgress().started(0).answered(0, found)
    shown = {}
    for width in (76, 110):
        room = Room(width=width, height=8, glyphs=UNICODE)
        text = headline(HeadlineState(reckoning=known, now_s=1), room).plain
        _, heads, row = text.split("\n")
        shown[width] = (heads.split(), row.split())
    assert shown[110] == (
        ["metric", "model", "value", "90%", "interval", "n", "key"],
        ["Sensitivity", "m", "0.5000", "0.2500–0.7500", "7", "all.micro.sensitivity"],
    )
    assert shown[76] == tuple(cells[:-1] for cells in shown[110])
