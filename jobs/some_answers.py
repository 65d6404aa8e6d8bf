"""A part of a run's answers, held so that it can be read several times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runner.job import Answer, Answers, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeAnswers:
    """A few families of a run; a `runner.job.Answers`."""

    held: tuple[tuple[Answer, ...], ...]
    models: tuple[str, ...]
    replicates: int
    imported: bool

    @classmethod
    def where(cls, answers: Answers, is_wanted: Callable[[Task], bool]) -> SomeAnswers:
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
