"""Fakes for tests of jobs: a run's answers without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from runner.job import ImportedAnswer
from runner.reply import Reply
from runner.scorecard import Cell, Line, Row, Scorecard
from runner.task import Answer, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswers:
    """Answers held in memory; a `runner.job.Answers`."""

    held: tuple[tuple[Answer, ...], ...]  #: by family
    models: tuple[str, ...]
    replicates: int = 1
    imported: bool = False

    @classmethod
    def of(cls, families: Iterable[tuple[Answer, ...]]) -> MemoryAnswers:
        """The answers of *families*, with the models in order of first sight."""
        held = tuple(families)
        firsts = [family[0].task for family in held]
        return cls(
            held=held,
            models=tuple(dict.fromkeys(task.model for task in firsts)),
            replicates=max((task.replicate for task in firsts), default=1),
        )

    @classmethod
    def of_import(cls, imported: Iterable[ImportedAnswer]) -> MemoryAnswers:
        """The answers that a run has after an import."""
        families: list[list[Answer]] = []
        for number, given in enumerate(imported, start=1):
            if not given.descends:
                families.append([])
            families[-1].append(_answer(number, given))
        made = cls.of(tuple(family) for family in families)
        return cls(
            held=made.held,
            models=made.models,
            replicates=made.replicates,
            imported=True,
        )

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        return iter(self.held)


def _answer(number: int, given: ImportedAnswer) -> Answer:
    spec = given.spec
    reply = None
    if given.text is not None:
        reply = Reply(text=given.text, finish_reason=given.finish_reason)
    return Answer(
        task=Task(
            number=number,
            stage=spec.stage,
            key=spec.key,
            model=given.model,
            replicate=given.replicate,
            context=spec.context,
        ),
        reply=reply,
        error=given.error,
        skip=spec.skip,
    )


def written(card: Scorecard) -> dict[str, str]:
    """The artifacts of a scoring as files: name to text."""
    files = {artifact.name: [artifact.text] for artifact in card.artifacts}
    for detail in card.details:
        if isinstance(detail, Line):
            files[detail.artifact].append(detail.text)
    return {name: "".join(pieces) for name, pieces in files.items()}


def tabulated(card: Scorecard, name: str) -> list[dict[str, Cell]]:
    """The rows of one table, by column."""
    (table,) = (table for table in card.tables if table.name == name)
    streamed = (
        detail.cells
        for detail in card.details
        if isinstance(detail, Row) and detail.table == name
    )
    rows = (*table.rows, *streamed)
    return [dict(zip(table.columns, cells, strict=True)) for cells in rows]
