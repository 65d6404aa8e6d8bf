"""Imports the results of other agents as the answers of a run.

A file becomes one answer, kept as it was read: how its papers are matched is decided
when it is scored, and decided again when the rules change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs.column_map import keys_of
from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.inputs import chosen
from jobs.review_benchmark.result_files import (
    FIELDS,
    STAND_IN,
    AgentResult,
    read_results,
    result_files,
    values_in,
)
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import read_truth
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec


class ResultsImporter(FileImporter[ReviewBenchmarkSettings]):
    """Imports the results of agents."""

    forms: ClassVar[Mapping[str, ImportForm]] = {
        "results": ImportForm(recognised="JSON objects with a cochrane_id")
    }
    default_form = "results"
    fields = FIELDS
    no_files = "Name the results of an agent: --results DIR or FILE."

    def named(self, settings: ReviewBenchmarkSettings) -> Iterator[ImportFile]:
        """The results that settings name."""
        yield from (ImportFile(path=path) for path in settings.results)

    def paths(self, path: Path) -> Sequence[Path]:
        """A file, or those of a folder."""
        return result_files((path,))

    def keys(
        self,
        file: ImportFile,
        settings: ReviewBenchmarkSettings,  # noqa: ARG002 - of the base
    ) -> Iterator[str]:
        """The keys at every depth."""
        for value in values_in(file.path):
            yield from keys_of(value)

    def answers(
        self, files: Sequence[ImportFile], settings: ReviewBenchmarkSettings
    ) -> Iterator[ImportedAnswer]:
        """An answer for each file of a review that is asked for."""
        if settings.truth is None:
            raise UsageError("Name the folder of published reviews: --truth DIR.")
        every = read_truth(settings.truth, InputFindings())
        review_ids = {review.id for review in every}
        requested = {review.id for review in chosen(every, settings)}
        has_replicates = any(file.replicate is not None for file in files)
        seen: dict[tuple[str, str, int], Path] = {}
        every_result = (
            (file, text, result)
            for file in files
            for text, result in read_results(file.path, InputFindings(), file.renamed)
        )
        for file, text, result in every_result:
            path = file.path
            if result.review not in review_ids:
                raise DatasetError(
                    f"{path.name}: there is no ground truth of {result.review} (add "
                    f"cochrane_{result.review}.json to {settings.truth})."
                )
            if result.review not in requested:
                continue
            number = file.replicate or 1
            if has_replicates:
                _require_ids(result, path)
            agent = file.model or result.label
            key = (result.review, agent, number)
            if key in seen:
                raise DatasetError(
                    f"{path.name}: {seen[key].name} holds {result.review} of {agent} "
                    "too (name the agents apart, or give one a --replicate)."
                )
            seen[key] = path
            yield ImportedAnswer(
                spec=TaskSpec(stage="result", key=result.review),
                model=agent,
                replicate=number,
                text=text,
            )
        if not seen:
            raise DatasetError(
                "None of the results is of a review that is asked for (--review ID)."
            )


def _require_ids(result: AgentResult, path: Path) -> None:
    """Replicates become one by the ids of their papers."""
    if any(record.document.startswith(STAND_IN) for record in result.records):
        raise DatasetError(
            f"{path.name}: papers have no document_id, by which replicates are joined "
            "(add them, or import the replicates as agents of their own)."
        )


importer = ResultsImporter()
