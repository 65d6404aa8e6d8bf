"""Shares of faulty replies: warnings have a sign and a sentence, small counts none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.query import parse_query
from store.read.usage import ReplyShares
from tests.replacing import replace
from tests.tui.sights import HOSTILE, snapshot, with_status
from tui.render.glyphs import ASCII, UNICODE
from tui.render.layout import LEAD, Room
from tui.render.quality import (
    LEAST_REPLIES,
    TITLE,
    WARN_FROM,
    quality,
    quality_goals,
    quality_height,
    quality_rows,
    warnings,
)
from tui.sources.result import ScoringResult, ShareOf
from tui.sources.run_snapshot import RunSnapshot

ROOM = Room(width=100, height=12, glyphs=UNICODE)


def shares(model: str = "m-large", **counted: int) -> ReplyShares:
    names = (
        *("replies", "truncated", "refused", "filtered"),
        *("empty", "unparsed", "failed"),
    )
    return ReplyShares(model=model, **{name: counted.get(name, 0) for name in names})


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> RunSnapshot:
    return snapshot(tmp_path_factory.mktemp("quality") / "r1")


def test_models_stand_side_by_side_with_a_warning_in_words(live: RunSnapshot) -> None:
    seen = with_status(
        live,
        replies=(
            shares(replies=200, unparsed=10, refused=1, filtered=1),
            shares("m-small", replies=LEAST_REPLIES - 1, unparsed=20),
        ),
    )
    head, large, small, warning = quality(seen, ROOM).plain.split("\n")
    assert head.split()[:6] == [
        *("model", "replies", "unparsed", "truncated", "refused", "ungrounded")
    ]
    assert large.split()[:3] == ["m-large", "200", "!"]
    assert "! 5.0 %" in large
    assert "1.0 %" in large
    assert small.count("too few") == 5
    said = "! warning: m-large: 5.0 % of 200 replies unparsed, with refused ones"
    assert warning == said
    assert quality_height(seen) == 4
    assert f"{WARN_FROM:.0%}".replace("%", " %") in TITLE
    assert "overlap" in TITLE


def test_ungrounded_is_unknown_until_a_scoring_says_it(live: RunSnapshot) -> None:
    seen = with_status(live, replies=(shares(replies=200),))
    assert quality(seen, ROOM).plain.split("\n")[1].split()[-5] == "-"
    result = ScoringResult(
        number=1,
        folder=Path("scores/1"),
        headline=None,
        ungrounded={"m-large": ShareOf(value=0.25, n=80)},
    )
    scored = replace(seen, result=result)
    assert list(warnings(scored)) == [
        "warning: m-large: 25.0 % of 80 quotes and values ungrounded"
    ]


def test_before_the_first_reply_it_says_so(live: RunSnapshot) -> None:
    seen = with_status(live, replies=())
    assert quality(seen, ROOM).plain == "No reply has arrived yet."
    assert quality_height(seen) == 2


def test_refused_replies_that_are_all_the_unparsed_ones_have_one_warning(
    live: RunSnapshot,
) -> None:
    replies = (shares(replies=75, unparsed=4, refused=4),)
    seen = with_status(live, replies=replies, parse_failures={"refusal": 4}, reasked={})
    assert list(warnings(seen)) == [
        "warning: m-large: 5.3 % of 75 replies refused and so unparsed"
    ]
    mixed = with_status(seen, parse_failures={"refusal": 3, "no_json": 1})
    assert len(list(warnings(mixed))) == 2


def test_a_row_leads_to_replies_that_were_not_parsed_else_to_all(
    live: RunSnapshot,
) -> None:
    replies = (shares(replies=9, unparsed=1), shares("m-small", replies=9))
    goals = quality_goals(with_status(live, replies=replies))
    assert goals == [
        "model:m-large parse:*",
        "model:m-small state:completed",
    ]
    assert all(parse_query(goal) for goal in goals)


@given(
    width=st.integers(20, 200),
    height=st.integers(3, 20),
    is_ascii=st.booleans(),
    counted=st.lists(st.integers(0, 10_000), min_size=2, max_size=2),
)
def test_it_stays_in_its_room_whatever_the_names_and_numbers(
    live: RunSnapshot, width: int, height: int, counted: list[int], *, is_ascii: bool
) -> None:
    glyphs = ASCII if is_ascii else UNICODE
    queue = live.status.queues[0]
    seen = with_status(
        live,
        queues=(replace(queue, model=HOSTILE), queue),
        replies=tuple(
            shares(model, replies=n, unparsed=n // 2, truncated=n)
            for model, n in zip((HOSTILE, "m-large"), counted, strict=True)
        ),
    )
    assert len(quality_rows(seen)) == 2
    room = Room(width=width, height=height, glyphs=glyphs, has_lead=True)
    lines = quality(seen, room).split("\n")
    assert len(lines) <= height
    assert all(line.cell_length <= width + LEAD for line in lines)
    assert all(c.isprintable() or c == "\n" for c in quality(seen, room).plain)
