"""A toy job with a setting `against`, as jobs have that verify stored results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from runner.job import Answers, ImportedAnswer, InputFile, TaskSpec
from runner.scorecard import Finding, Metric, Scorecard
from tests.runner.toy_jobs import ToyJob, ToySettings


class CheckedSettings(ToySettings):
    """Settings of `Checked`."""

    words: int = 0
    against: Path | None = None  #: holds the number of items that somebody counted


class Counted:
    """Reads one answer a line."""

    formats: Mapping[str, str] = {"lines": "text"}

    def read(
        self, files: tuple[Path, ...], settings: CheckedSettings, **given: object
    ) -> Iterator[ImportedAnswer]:
        del settings, given
        for number, line in enumerate(files[0].read_text().splitlines()):
            spec = TaskSpec(stage="read", key=str(number))
            yield ImportedAnswer(spec=spec, model="elsewhere", replicate=1, text=line)


class Checked(ToyJob):
    """`ToyJob`, scored by its items, which may be verified against a file."""

    name = "checked"
    Settings = CheckedSettings
    importer = Counted()

    def inputs(self, settings: CheckedSettings) -> tuple[InputFile, ...]:
        path = settings.against
        return (InputFile(setting="against", path=path),) if path else ()

    def score(self, dataset: CheckedSettings, answers: Answers) -> Scorecard:
        n = sum(1 for _ in answers.families())
        metrics = (
            Metric(path="items", value=n, n=n),
            Metric(path="nothing", value=None, n=0),
        )
        card = Scorecard(
            models=dict.fromkeys(answers.models, metrics),
            summary=f"{n} items",
            headline="items",
            findings=(
                Finding(code="many", severity="error", where="items", message="Odd."),
            ),
        )
        if dataset.against is None or int(dataset.against.read_text()) == n:
            return card
        return replace(card, failures=(f"There are {n} items.",))


job = Checked()
