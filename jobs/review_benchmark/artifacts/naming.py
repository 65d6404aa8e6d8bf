"""Where the result of an agent for a review lies."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.text import slugs


class Places:
    """The result files of a scoring: in folders by model where there are several."""

    def __init__(self, models: Iterable[str], reviews: Iterable[str]) -> None:
        self._models = slugs(models)
        self._reviews = slugs(reviews)

    def result(self, model: str, review: str) -> str:
        """The file of what a model made of a review."""
        name = f"benchmark_{self._reviews[review]}.json"
        if len(self._models) == 1:
            return f"results/{name}"
        return f"results/{self._models[model]}/{name}"
