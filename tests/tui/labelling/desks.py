"""Items to label that no job made, and desks over them with real label logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jobs.kit.labels.desk import LabelDesk, LabelSelection
from jobs.kit.labels.source import LabelSource
from runner.job import QuotedPassage
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)
from tests.tui.hostile import HOSTILE

CHOICES = (
    LabelChoice(value="include", key="i"),
    LabelChoice(value="exclude", key="e"),
    LabelChoice(value="unclear", key="u", is_gold=False),
)
FIELD = LabelField(name="", question="Is it relevant?", choices=CHOICES)
SIZE = LabelField(name="size", question="How many?", choices=CHOICES[2:], is_open=True)
SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=alert(1)>"
ATTACK = "\n".join((*HOSTILE[:-1], SCRIPT))
"""All that a text may hold, but for the line of a megabyte."""


class Quiz(Labelling):
    """Labels of plain items, with a reply of one model to each."""

    def __init__(self, *fields: LabelField) -> None:
        self._fields = fields or (FIELD,)

    def fields(self, dataset: Any) -> tuple[LabelField, ...]:
        """The fields of the quiz."""
        del dataset
        return self._fields

    def items(self, dataset: Mapping[str, LabelItem]) -> Iterator[str]:
        """All of them."""
        return iter(dataset)

    def item(self, dataset: Mapping[str, LabelItem], key: str) -> LabelItem:
        """One of them."""
        return dataset[key]

    def replies(self, dataset: Mapping[str, LabelItem], answers: Any) -> Any:
        """`include` to every field, with the first words as a quote."""
        del answers
        for key, item in dataset.items():
            quote = " ".join(item.text.split()[:4])
            for field in self._fields:
                yield ModelLabel(
                    item=key,
                    field=field.name,
                    model="m-large",
                    replicate=1,
                    value="include",
                    reason=f"secret reason of {key}",
                    probability=0.75,
                    quotes=(QuotedPassage(quote=quote, passage=quote),),
                    task=7,
                )


def items(count: int) -> dict[str, LabelItem]:
    """Items whose keys say their places."""
    return {
        key: LabelItem(
            key=key,
            title=f"Title of {key}",
            text=f"We enrolled {n} adults in this trial. It was long.",
        )
        for n in range(1, count + 1)
        for key in (f"item-{n:05}",)
    }


def hostile() -> dict[str, LabelItem]:
    """An item that attacks whatever shows it."""
    return {
        "\x1b]0;key\x07<b>": LabelItem(
            key="\x1b]0;key\x07<b>", title=ATTACK, text=ATTACK
        )
    }


@asynccontextmanager
async def desk_over(
    dataset: Mapping[str, LabelItem],
    folder: Path,
    selection: LabelSelection | None = None,
    *fields: LabelField,
) -> AsyncIterator[LabelDesk]:
    """A desk over items; the labels are in *folder*."""
    quiz: Any = Quiz(*fields)
    source = LabelSource(
        run="r1", job=quiz, labelling=quiz, dataset=dataset, answers=quiz
    )
    with ThreadPoolExecutor(1) as reader:
        yield LabelDesk(source, folder, selection or LabelSelection(), reader)
