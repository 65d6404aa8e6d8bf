"""Imports the results of other agents as the answers of a run.

A file becomes one answer, kept as it was read: how its papers are matched is decided
when it is scored, and decided again when the rules change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobs.kit.inputs.column_map import ColumnMap, column_map, keys_of
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


class ResultsImporter:
    """The job's `runner.job.Importer`."""

    formats: Mapping[str, str] = {"results": "JSON objects with a cochrane_id"}

    def read(
        self,
        files: tuple[Path, ...],
        settings: ReviewBenchmarkSettings,
        *,
        model: str | None,
        form: str | None,  # noqa: ARG002 - there is but one
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """An answer for each file of a review that is asked for.

        Args:
            files: named by their place; those that settings name come first.
            settings: of the run.
            model: name of the agent, whatever the files say.
            form: a name in `formats`, or None.
            replicates: number of the replicate that a file holds.

        Raises:
            DatasetError: a file is off, or its review has no ground truth.
            UsageError: no file is named, or the reviews are not.
        """
        if settings.truth is None:
            raise UsageError("Name the folder of published reviews: --truth DIR.")
        sources = (*settings.results, *files)
        if not sources:
            raise UsageError("Name the results of an agent: --results DIR or FILE.")
        every = read_truth(settings.truth, InputFindings())
        review_ids = {review.id for review in every}
        requested = {review.id for review in chosen(every, settings)}
        seen: dict[tuple[str, str, int], Path] = {}
        paths = result_files(sources)
        keys = _keys(paths, settings)
        every_result = (
            (path, text, result)
            for path in paths
            for text, result in read_results(path, InputFindings(), keys)
        )
        for path, text, result in every_result:
            if result.review not in review_ids:
                raise DatasetError(
                    f"{path.name}: there is no ground truth of {result.review} (add "
                    f"cochrane_{result.review}.json to {settings.truth})."
                )
            if result.review not in requested:
                continue
            number = replicates.get(path, 1)
            if replicates:
                _require_ids(result, path)
            agent = model or result.label
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


def _keys(paths: Sequence[Path], settings: ReviewBenchmarkSettings) -> ColumnMap:
    """The fields by the keys of the files that `--map` renames.

    Raises:
        UsageError: no file has a key that is mapped.
    """
    if not settings.map:
        return {}
    seen = [
        key for path in paths for value in values_in(path) for key in keys_of(value)
    ]
    return column_map(settings.map, FIELDS, seen)


def _require_ids(result: AgentResult, path: Path) -> None:
    """Replicates become one by the ids of their papers."""
    if any(record.document.startswith(STAND_IN) for record in result.records):
        raise DatasetError(
            f"{path.name}: papers have no document_id, by which replicates are joined "
            "(add them, or import the replicates as agents of their own)."
        )


importer = ResultsImporter()
