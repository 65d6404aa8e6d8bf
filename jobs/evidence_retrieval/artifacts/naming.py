"""Where a model's files lie: at the top if it is alone, else in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.text import slugs


class Places:
    """The folders of a scoring's models."""

    def __init__(self, models: Sequence[str]) -> None:
        self._slugs = slugs(models)
        self._is_alone = len(models) == 1

    def one(self, model: str, name: str) -> str:
        """A file that a model has once."""
        return name if self._is_alone else f"{self._slugs[model]}/{name}"

    def all(self, model: str, name: str) -> tuple[str, ...]:
        """A file that stands in the model's folder, and at the top if it is alone."""
        inside = f"{self._slugs[model]}/{name}"
        return (inside, name) if self._is_alone else (inside,)


def step_files(pattern: str, steps: Sequence[str]) -> dict[str, str]:
    """The file of each list of a model, such as `run.reranked.txt`."""
    return {step: pattern.format(slug) for step, slug in slugs(steps).items()}
