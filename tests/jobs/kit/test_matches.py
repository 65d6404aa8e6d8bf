"""Accuracy of answers that are right or wrong, on every kind of answer."""

from __future__ import annotations

from jobs.kit.matches import score_matches
from jobs.kit.testing import MemoryAnswers
from runner.job import Answer, Stage, Task
from runner.messages import ParseFailure, Reply
from runner.scorecard import Verdict


def read_number(data: None, task: Task, reply: Reply) -> int | ParseFailure:
    del data, task
    if not reply.text:
        return ParseFailure(reason="empty_reply")
    return int(reply.text)  # raises for words


COUNT = Stage(name="count", parse=read_number)


def answer(number: int, key: str, text: str | None, replicate: int = 1) -> Answer:
    task = Task(number=number, stage="count", key=key, model="m", replicate=replicate)
    return Answer(task=task, reply=None if text is None else Reply(text=text))


def verdicts_of(*answers: Answer) -> list[Verdict]:
    run = MemoryAnswers.of((each,) for each in answers)
    card = score_matches(COUNT, None, run, {"a": 1, "b": 2})
    return [row for row in card.details if isinstance(row, Verdict)]


def test_unreadable_replies_are_wrong_and_name_the_reason() -> None:
    rows = verdicts_of(answer(1, "a", ""), answer(2, "b", "two"), answer(3, "b", "2"))
    assert [row.correct for row in rows] == [False, False, True]
    assert [row.rule for row in rows] == ["empty_reply", "parser_error", "equal"]
    assert [row.value for row in rows] == ["", "", "2"]


def test_failed_answers_and_unknown_items_are_left_out() -> None:
    assert verdicts_of(answer(1, "a", None), answer(2, "gone", "3")) == []


def test_accuracy_counts_answers_and_items_average_replicates() -> None:
    replies = [("a", "1", 1), ("a", "2", 2), ("b", "2", 1)]
    run = MemoryAnswers.of(
        (answer(number, key, text, replicate),)
        for number, (key, text, replicate) in enumerate(replies, start=1)
    )
    card = score_matches(COUNT, None, run, {"a": 1, "b": 2})
    (metric,) = card.models["m"]
    assert (metric.value, metric.n) == (2 / 3, 3)
    assert metric.lo is not None
    assert metric.lo < 2 / 3
    values = card.comparable["m"]["accuracy"]()
    assert dict(zip(values.items, values.first, strict=True)) == {"a": 0.5, "b": 1.0}


def test_accuracy_over_nothing_is_undefined() -> None:
    run = MemoryAnswers(held=(), models=("m",))
    card = score_matches(COUNT, None, run, {})
    assert card.models["m"][0].value is None
    assert card.summary == "m: accuracy n/a (0 of 0 answers)"
