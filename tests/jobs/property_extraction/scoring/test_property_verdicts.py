"""The monitor has a verdict on each task with a reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.property_extraction.score import PaperVerdicts
from runner.job import Answer, Task
from runner.messages import Reply
from runner.scorecard import Verdict
from tests.jobs.property_extraction.scored_rows import (
    ALIAS,
    STATED,
    RowAnswers,
    scored,
    stated,
)


@dataclass(frozen=True)
class Asked:
    """Single answers of one model."""

    answers: tuple[Answer, ...]
    models: tuple[str, ...] = ("m1",)
    replicates: int = 1
    imported: bool = False

    def families(self) -> Iterator[tuple[Answer, ...]]:
        return ((answer,) for answer in self.answers)


def asked(stage: str, key: str, text: str | None) -> Answer:
    task = Task(number=1, stage=stage, key=key, model="m1", replicate=1)
    return Answer(task=task, reply=None if text is None else Reply(text=text))


def verdict(answer: Answer) -> Verdict | None:
    found = [*PaperVerdicts(results=scored(STATED), answers=Asked((answer,)))]
    return found[0] if found else None


def test_each_paper_has_its_counts_and_is_right_if_nothing_is_missed_or_made_up() -> (
    None
):
    rows = (stated("P1", "Tc", "10", "K"), stated("P1", "Hc2", "20", "kOe"), STATED[3])
    results = scored(rows, aliases=ALIAS)
    first, second = PaperVerdicts(results=results, answers=RowAnswers(rows))
    assert (first.key, first.value, first.expected) == ("P1", "2 rows", "3 rows")
    assert (first.correct, first.rule) == (True, "TP 2 FP 0 FN 0")
    assert (second.correct, second.rule) == (False, "TP 0 FP 1 FN 2")


def test_what_is_read_of_a_reply_is_told_apart_from_how_it_scores() -> None:
    entries = [{"property": "Tc", "value": "10"}, {"property": "Tc"}]
    own = verdict(asked("extract", "P1", json.dumps({"properties": entries})))
    assert own is not None
    assert (own.value, own.rule) == ("1 row", "TP 1 FP 1 FN 1, 1 dropped")


def test_a_piece_of_a_paper_is_neither_right_nor_wrong() -> None:
    own = verdict(asked("extract", "P1#2", '{"properties": []}'))
    assert own is not None
    assert (own.value, own.correct, own.rule) == ("0 rows", None, "")


def test_an_unread_reply_has_its_reason_and_no_reply_no_verdict() -> None:
    own = verdict(asked("extract", "Q9", "I cannot help with that."))
    assert own is not None
    assert (own.value, own.correct) == ("", None)
    assert own.rule
    assert verdict(asked("extract", "P1", None)) is None


def test_a_second_request_tells_quotes_and_withdrawals() -> None:
    rows = [{"id": 1, "quote": "Tc is 10 K"}, {"id": 2, "withdraw": True}]
    own = verdict(asked("requote", "P1", json.dumps({"rows": rows})))
    assert own is not None
    assert (own.value, own.correct) == ("1 quote, 1 withdrawn", None)
