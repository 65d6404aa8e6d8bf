"""A part of a run's answers, such as those about the one item that is explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runner.job import Answers
from runner.task import Answer, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeAnswers:
    """Some families of a run; a `runner.job.Answers`."""

    held: tuple[tuple[Answer, ...], ...]
    models: tuple[str, ...]
    replicates: int
    imported: bool

    @classmethod
    def of(cls, answers: Answers, is_wanted: Callable[[Task], bool]) -> SomeAnswers:
        """The families whose first task is wanted, in one pass."""
        return cls(
            held=tuple(f for f in answers.families() if is_wanted(f[0].task)),
            models=answers.models,
            replicates=answers.replicates,
            imported=answers.imported,
        )

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        return iter(self.held)
