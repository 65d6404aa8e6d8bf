"""Where the files of a model lie: in folders where there are several models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from jobs.text import slugs


def model_slugs(models: Iterable[str]) -> dict[str, str]:
    """Models as parts of file names: "/" becomes "--", what is unsafe beside it "_"."""
    plain = {model: model.replace("/", "--") for model in models}
    uses = Counter(plain.values())
    # of "a/b" and "a--b" only the second can be called so
    named = {model: model if uses[name] > 1 else name for model, name in plain.items()}
    found = slugs(named.values())
    return {model: found[name] for model, name in named.items()}


class Folders:
    """Names of files by model."""

    def __init__(self, models: Iterable[str]) -> None:
        self._slugs = model_slugs(models)

    def of(self, model: str, name: str) -> str:
        """A file of a model."""
        return name if len(self._slugs) == 1 else f"{self._slugs[model]}/{name}"
