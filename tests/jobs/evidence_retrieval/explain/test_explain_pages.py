"""explain whatever it is given: hostile names and texts, narrow pages, wrong items."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.data import (
    Criterion,
    EvidenceDataset,
    Gold,
    PoolSentence,
    Post,
)
from jobs.evidence_retrieval.explain import explain
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.text_format import (
    WIDTH,
    TextColumn,
    clip,
    cut,
    display_width,
    hanging_lines,
    one_line,
    padded,
    text_table,
)
from runner.errors import UsageError
from runner.messages import Reply
from store.printable import printable
from tests.jobs.evidence_retrieval.asked import data
from tests.jobs.evidence_retrieval.world import answers

WIDE = "長い" * 50
HOSTILE = f"\x1b[2J\nreplies\n  \u202egate\u2066 {WIDE}\u0301\ufe0f 👩\u200d🚀"


def hostile() -> EvidenceDataset:
    """Everything that comes from files is hostile but for the tail that tells it."""
    post = Post(
        id=f"p{HOSTILE}",
        sentences=tuple(
            PoolSentence(sid=n, uid=f"{n}{HOSTILE}", text=f"{n}{HOSTILE}")
            for n in range(3)
        ),
    )
    criterion = Criterion(id=f"c{HOSTILE}", text=f"t{HOSTILE}", name=f"n{HOSTILE}")
    return EvidenceDataset(
        settings=EvidenceSettings(),
        posts=(post,),
        criteria=(criterion,),
        gold=Gold(
            posts=frozenset({post.id}),
            evidence={(post.id, criterion.id): (post.sentences[1].uid,)},
        ),
        folds={post.id: f"f{HOSTILE}"},
        configs=(
            Config(name=f"one{HOSTILE}"),
            Config(name=f"two{HOSTILE}", rerank="assess"),
        ),
    )


def ours(page: str) -> list[str]:
    """The lines of a page that quote nothing."""
    return [line for line in page.splitlines() if not line.startswith("      | ")]


def test_hostile_names_and_texts_stay_in_their_lines() -> None:
    asked = hostile()
    (post,), (criterion,) = asked.posts, asked.criteria
    key = f"{post.id}/{criterion.id}"
    made = answers(asked, lambda _: Reply(text=HOSTILE), models=(f"m{HOSTILE}",))
    for run in (made, None):
        page = explain(asked, run, (key, post.id))
        lines = ours(page)
        assert all(line == printable(line) for line in lines)
        assert all(display_width(line) <= WIDTH for line in lines)
        assert lines.count("replies") == (run is not None)
        assert lines.count("sentences") == 1
        assert "\n      | t\x1b[2J\n      | replies\n" in page


def test_names_that_are_cut_show_so() -> None:
    asked = hostile()
    (post,), (criterion,) = asked.posts, asked.criteria
    page = explain(asked, None, (f"{post.id}/{criterion.id}",))
    assert page.startswith("p\u241b[2J\u240areplies\u240a  <202E>gate<2066> 長い長い")
    assert ours(page)[0].endswith("…")


@given(st.text(), st.integers(1, 40))
def test_a_word_takes_no_more_than_its_width(text: str, width: int) -> None:
    made = clip(text, width)
    assert display_width(made) <= width
    assert "\n" not in made
    whole = one_line(text)
    assert whole == made or (made[-1] == "…" and whole.startswith(made[:-1]))


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_cells_of_a_column_begin_or_end_in_one_place(
    rows: list[tuple[str, str]],
) -> None:
    first, second = (
        [one_line(row[n]).replace(" ", "_")[:20] for row in rows] for n in (0, 1)
    )
    columns = [
        TextColumn(title="a", cells=first, has_words=True),
        TextColumn(title="b", cells=second),
    ]
    lines = list(text_table(columns))
    assert len(lines) == len(rows) + 1
    assert all(display_width(line) <= WIDTH for line in lines)
    wide = max(display_width(cell) for cell in ["a", *first])
    last = max(display_width(cell) for cell in ["b", *second])
    for cell, number, line in zip(first, second, lines[1:], strict=True):
        row = f"  {padded(cell, wide)}  {padded(number, last, is_number=True)}"
        assert line == cut(row.rstrip(), WIDTH)


@given(st.text("ab 長é\u0301", max_size=400), st.text("ab長 ", max_size=30))
def test_hanging_lines_fit_and_hang_below_their_label(text: str, label: str) -> None:
    for place, line in enumerate(hanging_lines(f"  {label}", text)):
        assert display_width(line) <= WIDTH
        before = f"  {label}" if not place else " " * (2 + display_width(label))
        assert line.startswith(before)


def test_cells_are_counted_as_terminals_do() -> None:
    assert display_width("a長é\u0301") == 1 + 2 + 1
    assert unicodedata.category("\u0301") == "Mn"
    assert cut("長長長", 5) == "長長…"
    assert cut("長長長", 4) == "長…"


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("post_l/A.1", "the nearest is post_1/A.1."),
        ("post_l", "the nearest is post_1."),
        ("post_1/A1", "the nearest are post_1/A.1, post_1/A.2."),
        ("post_1/", "the nearest are post_1/A.2, post_1/A.1."),
        ("", "name a post by its id, or a query as post/criterion."),
        ("zzz\x1b[2J/q", "There is no post and no query 'zzz\u241b[2J/q'; name a post"),
    ],
)
def test_an_unknown_item_is_named_with_what_is_near(item: str, sentence: str) -> None:
    asked = data({"post_1": ["One."], "other": ["Two."]})
    with pytest.raises(UsageError) as caught:
        explain(asked, None, ("post_1", item))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_fits_both_ways_is_a_query() -> None:
    asked = data({"a": ["One."], "a/A.1": ["Two."]})
    assert "\ncriterion  A.1\n" in explain(asked, None, ("a/A.1",))
    assert "\ncriterion  A.1\n" in explain(asked, None, ("a/A.1/A.1",))


def test_a_page_is_the_same_whatever_is_explained_with_it() -> None:
    asked = data({"a": ["I lie awake."], "b": ["Work."]})
    reply = Reply(text='{"evidence_probability": 5, "sentences": []}')
    made = answers(asked, lambda _: reply, models=("m", "n"))
    alone = explain(asked, made, ("b/A.2",))
    assert explain(asked, made, ("a/A.1", "b/A.2")).endswith("\n\n" + alone)
    assert alone.count("b/A.2  ") == len(made.models)
    assert explain(replace(asked), made, ("b/A.2",)) == alone
