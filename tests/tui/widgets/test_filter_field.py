"""A filter is completed by what the language and the run know."""

from __future__ import annotations

import pytest

from store.events import KINDS
from store.query import EVENT_KEYS, KEYS, parse_event_query, parse_query
from tui.sources.tasks import Names
from tui.widgets.filter_field import completed, event_words

NAMES = Names(
    total=9,
    stages=("ask", "judge twice"),
    models=("m-large", "m-small"),
    errors=("RateLimited",),
    parse_failures=("truncated",),
)


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        ("sta", "state:"),
        ("state:fa", "state:failed"),
        ("stage:a", "stage:ask"),
        ("state:failed -mod", "state:failed -model:"),
        ("-model:m-s", "-model:m-small"),
        ("parse:t", "parse:truncated"),
        ("err:R", "err:RateLimited"),
        ("stage:j", None),
        ('stage:"j', 'stage:"judge twice"'),
        ("", None),
        ("state:failed ", None),
        ("PMC123", None),
    ],
)
def test_the_last_word_is_completed(value: str, whole: str | None) -> None:
    assert completed(value, NAMES) == whole


def test_every_key_is_offered_and_every_value_can_be_read() -> None:
    for key in KEYS:
        whole = completed(key, NAMES)
        assert whole in {f"{key}:", f"{key}>"}
        with_value = completed(whole, NAMES) or f"{whole}12"
        assert parse_query(with_value).terms[0].parameters or key == "state"
    for word in (
        "queued",
        "running",
        "waiting",
        "completed",
        "failed",
        "skipped",
        "held",
    ):
        whole = completed(f"state:{word[:-1]}", NAMES)
        assert whole == f"state:{word}"
        assert parse_query(whole).terms


def test_a_name_that_would_act_on_the_terminal_is_not_offered() -> None:
    names = Names(total=1, stages=("a\x1b]0;t\x07", 'a"b', "a\u202eb"))
    assert completed("stage:a", names) is None


def test_filters_of_events_are_completed_by_their_own_keys_and_kinds() -> None:
    for key in EVENT_KEYS:
        assert completed(key, NAMES, event_words) == f"{key}:"
    for kind in KINDS:
        whole = completed(f"kind:{kind[:-1]}", NAMES, event_words)
        assert whole == f"kind:{kind}"
        assert parse_event_query(whole).kinds == {kind}
    assert completed("-err:R", NAMES, event_words) == "-err:RateLimited"
    assert completed("state:fa", NAMES, event_words) is None
