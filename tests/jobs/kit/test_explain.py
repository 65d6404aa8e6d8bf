"""Unknown items, answers with and without a reply, pages one after another."""

from __future__ import annotations

import pytest

from jobs.kit.explain import (
    closest,
    failure_text,
    pages_text,
    reply_blocks,
    select,
    unknown_item,
)
from runner.errors import UsageError
from runner.job import Answer, Task
from runner.messages import ParseFailure, Reply
from store.document import as_text

TASK = Task(number=1, stage="answer", key="a", model="m", replicate=1)
POSTS = {"post_1": [1, 2], "post_2": [3]}


def chosen(*items: str) -> list[int]:
    return select(
        items,
        lambda item: POSTS.get(item, []),
        kinds="post",
        otherwise="name a post.",
        near=lambda item: closest(item, POSTS),
    )


def test_items_are_selected_in_the_order_in_which_they_were_typed() -> None:
    assert chosen("post_2", "post_1", "post_2") == [3, 1, 2, 3]


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("post_3", "There is no post 'post_3'; the nearest are post_2, post_1."),
        ("zz\x1b", "There is no post 'zz\u241b'; name a post."),
    ],
)
def test_an_unknown_item_is_named_with_what_is_near(item: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen("post_1", item)
    assert str(caught.value) == sentence


def test_near_names_may_be_quoted_and_are_cut() -> None:
    error = unknown_item("x", ["y" * 90], kinds="name", otherwise="", quote=repr)
    assert str(error) == f"There is no name 'x'; the nearest is '{'y' * 59}…'."
    assert closest("zzz", ["a", "b"]) == []
    assert len(closest("zzz", ["a", "b"], always=True)) == 2


def lines(answer: Answer, *, is_quoted: bool = True) -> list[str]:
    readings = [("read", "yes"), ("noticed", "")]
    blocks = reply_blocks(answer, readings, is_quoted=is_quoted)
    return as_text(blocks).split("\n")


def test_a_reply_is_quoted_with_its_end_and_what_was_read() -> None:
    reply = Reply(text="Yes.\nread     no", finish_reason="length")
    assert lines(Answer(task=TASK, reply=reply)) == [
        "      | Yes.",
        "      | read     no",
        "    ended    length",
        "    read     yes",
    ]
    assert lines(Answer(task=TASK, reply=reply), is_quoted=False) == [
        "    read     yes"
    ]


def test_an_answer_without_a_reply_says_why() -> None:
    assert lines(Answer(task=TASK, skip="no text")) == ["    skipped  no text"]
    assert lines(Answer(task=TASK, error="Timeout")) == ["    error    Timeout"]
    assert lines(Answer(task=TASK, is_open=True)) == ["    open     not answered yet"]


def test_pages_are_parted_by_a_blank_line() -> None:
    assert pages_text([["a", "b"], ["c"]]) == "a\nb\n\nc\n"


def test_a_failure_is_named_with_its_detail() -> None:
    assert failure_text(ParseFailure(reason="empty")) == "empty"
    assert failure_text(ParseFailure(reason="no", detail="x")) == "no: x"
