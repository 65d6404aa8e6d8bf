"""A session against a recorder that keeps a list: what is asked, and what is said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import siftlog
from jobs.ask.labelling import choices, label_field
from jobs.cli.plain_labelling import label_plainly, marked, question_text
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.labels.reply_labels import CHOICES
from jobs.kit.labels.session import LabelSession, checked_value
from jobs.kit.question_labelling import RowLabelling
from jobs.screening.labelling import DECISION
from runner.errors import UsageError
from runner.job import QuotedPassage
from runner.labelling import (
    COMMAND_KEYS,
    LabelChoice,
    LabelField,
    LabelItem,
    ModelLabel,
)
from siftlog import cells
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelWithdrawn,
)
from store.labels.fold import EventId, ItemField, LabelEntry, LabelSet, TextHashes
from tests.store.memory_log import FakeClock

KEYS = ("one", "two", "three")
QUESTIONS = [ItemField(key, "") for key in KEYS]


class Source:
    run = "r"

    def __init__(self, field: LabelField = DECISION) -> None:
        self._field = field
        self.replies: Mapping[ItemField, Sequence[ModelLabel]] = {
            ItemField("one", ""): (
                ModelLabel(
                    item="one",
                    field="",
                    model="m",
                    replicate=1,
                    value="include",
                    task=7,
                    quotes=(QuotedPassage(quote="text", passage="text of"),),
                ),
            )
        }

    def item(self, key: str) -> LabelItem:
        return LabelItem(key=key, title=f"title {key}", text=f"the text of {key}")

    @property
    def reply_hashes(self) -> TextHashes:
        return {}

    def field(self, name: str) -> LabelField:
        assert name == ""
        return self._field


class Recorder:
    """A label log in memory."""

    author = "ann"

    def __init__(self) -> None:
        self.entries: list[LabelEntry] = []

    def _add(self, event: Any) -> str:
        event_id = EventId("w", len(self.entries) + 1)
        self.entries.append(LabelEntry(len(self.entries), event_id, event))
        return str(event_id)

    async def record(self, item: str, value: str, **facts: Any) -> str:
        return self._add(
            LabelRecorded(author=self.author, item=item, value=value, **facts)
        )

    async def withdraw(self, label: str, *, reason: str = "") -> str:
        return self._add(LabelWithdrawn(author=self.author, label=label, reason=reason))

    async def adjudicate(self, item: str, value: str, **facts: Any) -> str:
        return self._add(
            Adjudicated(author=self.author, item=item, value=value, **facts)
        )

    @property
    def labels(self) -> LabelSet:
        return LabelSet.of(self.entries)


def session_of(recorder: Recorder, **options: Any) -> LabelSession:
    return LabelSession(
        options.pop("source", Source()),
        recorder,
        QUESTIONS,
        labels=recorder.labels,
        clock=options.pop("clock", FakeClock()),
        **options,
    )


@given(st.lists(st.sampled_from(["i", "e", "undo", "skip", "again"]), max_size=30))
def test_labels_are_what_was_answered_last_and_not_undone(steps: list[str]) -> None:
    async def run() -> None:
        recorder = Recorder()
        session = session_of(recorder)
        answers: list[tuple[str, str]] = []  # of all sessions
        here: list[tuple[str, str]] = []
        for step in steps:
            question = session.question
            if step == "again":  # the program is started anew
                session, here = session_of(recorder), []
            elif step == "undo":
                assert await session.undo() == bool(here)
                if here:
                    answers.remove(here[-1])
                    undone, _ = here.pop()
                    assert session.question is not None
                    assert session.question.item.key == undone
            elif question is None:
                continue
            elif step == "skip":
                session.skip()
            else:
                choice = DECISION.choice(step)
                assert choice is not None
                await session.answer(choice.value)
                answers.append((question.item.key, choice.value))
                here.append(answers[-1])
            current = recorder.labels.labelled_by("ann")
            assert {a.item: label.event.value for a, label in current.items()} == dict(
                answers
            )
            progress = session.progress
            assert progress.done == len(answers)
            assert progress.answered == len(here)
            assert (session.question is None) == (len(answers) == len(KEYS))

    asyncio.run(run())


def test_what_was_visible_is_recorded() -> None:
    async def run() -> list[LabelRecorded]:
        recorder, clock = Recorder(), FakeClock()
        session = session_of(recorder, clock=clock)
        assert session.question is not None
        assert session.question.is_blind
        assert session.question.has_hidden_replies
        clock.advance(4.5)
        session.note("odd")
        await session.answer("include", reason="table 2")
        await session.undo()
        session.reveal()
        assert session.question.replies[0].value == "include"
        await session.answer("exclude")
        await session_of(Recorder()).undo()
        assisted = session_of(Recorder(), is_assisted=True)
        assert assisted.question is not None
        assert not assisted.question.is_blind
        return [label.event for label in recorder.labels.labels]

    blind, revealed = asyncio.run(run())
    assert (blind.visible, blind.is_blind) == (["title", "text"], True)
    assert (blind.seconds, blind.reason) == (4.5, "odd table 2")
    assert blind.text_sha256 == Source().item("one").sha256
    assert (revealed.visible, revealed.run_task) == (["title", "text", "reply:m"], 7)
    assert revealed.is_blind is False


def test_a_changed_text_is_asked_again_and_a_draw_goes_with_its_label() -> None:
    async def run() -> LabelSet:
        recorder = Recorder()
        await recorder.record("one", "include", text_sha256="0" * 64)
        await recorder.record("two", "include")
        draw = recorder._add(
            ItemDrawn(
                author="bo",
                item="one",
                design="random",
                probability=0.25,
                seed=1,
                position=1,
                expected=1.0,
                population=3,
                population_sha256="",
            )
        )
        session = session_of(recorder)
        assert session.progress.total - session.progress.done == 2
        await session.answer("exclude")
        assert recorder.labels.labels[-1].event.draw == draw
        return recorder.labels

    labels = asyncio.run(run())
    assert labels.labels[-1].event.probability == 0.25
    assert labels.labels[-1].event.item == "one"


def test_an_adjudicator_sees_all_labels() -> None:
    async def run() -> LabelSet:
        recorder = Recorder()
        first = await recorder.record("one", "include")
        session = session_of(recorder, is_adjudicating=True)
        assert session.question is not None
        assert [label.id for label in session.question.labels] == [first]
        assert not session.question.is_blind
        await session.answer("exclude")
        return recorder.labels

    labels = asyncio.run(run())
    (decision,) = labels.adjudications
    assert (decision.event.value, decision.event.considered) == ("exclude", ["w:1"])
    assert labels.gold()[ItemField("one", "")].is_adjudicated


def test_a_value_must_be_one_of_the_field() -> None:
    async def run() -> None:
        session = session_of(Recorder())
        with pytest.raises(UsageError, match="include, exclude, unclear"):
            await session.answer("maybe")
        open_field = LabelField(name="", question="How many?", is_open=True)
        session = session_of(Recorder(), source=Source(open_field))
        with pytest.raises(UsageError, match="or a text"):
            await session.answer("  ")
        await session.answer(" 12 ")

    asyncio.run(run())


def test_a_typed_value_must_fit_its_field() -> None:
    def of(**spec: Any) -> Callable[[str], str]:
        return partial(
            checked_value, label_field("f", FieldSpec(ask="How many?", **spec))
        )

    assert of(type="integer")(" 1,204 ") == "1,204"
    assert of(type="integer")("not reported") == "not reported"
    assert of(type="number", unit="mg")("100 mg") == "100 mg"
    for refused, typed_text, expected in (
        (of(type="integer"), "y", "or a whole number"),
        (of(type="number"), "100 mg", "or a number"),
        (of(type="date"), "spring", "or a date such as 2021"),
    ):
        with pytest.raises(UsageError, match=expected):
            refused(typed_text)


def test_a_typed_truth_must_fit_its_row() -> None:
    class Trial(siftlog.RowModel):
        id: cells.Filled
        enrolled: cells.Count | None = None

    class Trials(siftlog.QuestionJob):
        Row, show, truth, question = Trial, ("id",), "enrolled", "How many?"

        def read(self, text: str) -> str:
            return text

        def offline(self, texts: dict[str, str]) -> str:
            return texts["id"]

    (field,) = RowLabelling(Trials()).fields(None)  # type: ignore[arg-type] # unused
    assert checked_value(field, "42") == "42"
    with pytest.raises(UsageError, match="undecided, or a whole number"):
        checked_value(field, "y")


def typed(*keys: str) -> tuple[list[str], LabelSet]:
    recorder, output = Recorder(), []
    words = iter(keys)
    asyncio.run(
        label_plainly(
            session_of(recorder),
            write=output.append,
            read=lambda: next(words, None),
            read_line=lambda _prompt: next(words, None),
        )
    )
    return output, recorder.labels


def test_plain_labelling_takes_keys() -> None:
    output, labels = typed("i", "s", "r", "/", "odd", "e", "x", "z", "u", "q")
    events = [label.event for label in labels.current.values()]
    assert [(e.item, e.value, e.reason) for e in events] == [
        ("one", "include", ""),
        ("three", "unclear", ""),
    ]
    assert labels.labels[1].is_withdrawn
    assert labels.labels[1].event.reason == "odd"
    assert any("'x' is no value" in line for line in output)
    done, _ = typed("i", "i", "i")
    assert done[-1] == "All items are labelled."


def test_the_keys_of_many_choices_take_several_lines() -> None:
    options = tuple(f"a rather long option {i}" for i in range(9))
    field = LabelField(
        name="",
        question="?",
        choices=choices(FieldSpec(ask="?", type="one-of", options=options)),
    )
    session = session_of(Recorder(), source=Source(field))
    assert session.question is not None
    page = question_text(session.question, session)
    assert max(map(len, page.splitlines())) <= 80
    assert all(f"] {option}" in page for option in options)
    assert page.endswith("[q] quit")


def test_hostile_text_is_made_harmless() -> None:
    class Hostile(Source):
        def item(self, key: str) -> LabelItem:
            return LabelItem(key=key, title="\x1b]0;x\x07", text="\x1b[2J\u202etext")

    output: list[str] = []
    asyncio.run(
        label_plainly(
            session_of(Recorder(), source=Hostile()),
            write=output.append,
            read=lambda: None,
            read_line=lambda _prompt: None,
        )
    )
    assert not {"\x1b", "\x07", "\u202e"} & set("".join(output))
    assert marked("a text of b", ["text of", "none"]) == "a [[text of]] b"


def test_keys_of_choices_are_free() -> None:
    options = tuple(f"option {i}" for i in range(40))
    fields: list[Sequence[LabelChoice]] = [
        DECISION.choices,
        CHOICES,
        choices(FieldSpec(ask="?", type="boolean")),
        choices(FieldSpec(ask="?", type="one-of", options=options)),
        choices(FieldSpec(ask="?", type="one-of", options=("yes", "undecided"))),
        choices(FieldSpec(ask="?", type="integer")),
    ]
    for of_field in fields:
        keys = [choice.key for choice in of_field]
        assert len({*keys}) == len(keys)
        assert not COMMAND_KEYS & {*keys}
        assert len({choice.value for choice in of_field}) == len(keys)
