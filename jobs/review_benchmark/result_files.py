"""Reads the results of other agents and imports them as the answers of a run.

There is one JSON file per review. It becomes one answer, stored unchanged: its papers
are matched at scoring, and again when the rules change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from pydantic import Field, TypeAdapter

from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs.cells import Trimmed
from jobs.kit.inputs.column_map import ColumnMap, describe_columns, keys_of, rename_keys
from jobs.kit.inputs.files import objects_in, read_json, read_text
from jobs.kit.inputs.rows import InputFindings, validated_value
from jobs.review_benchmark.data import (
    AgentRecord,
    StatedCertainty,
    StatedDirection,
    keeping_unknown,
)
from jobs.review_benchmark.inputs import chosen
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import note_bad_pmid, read_truth
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec
from runner.scorecard import Finding

LABEL = "imported"
"""Name of the agent if neither the file nor its name states one."""

STAND_IN = "row:"
"""Prefix of the substitute for a missing `document_id`: its list and index."""

INCLUDED = ("included_papers", "included")
EXCLUDED = ("excluded_papers", "excluded")
UNSEEN = "database_papers"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """An agent's records and decisions for one review."""

    review: Annotated[Trimmed, Field(validation_alias="cochrane_id")] = ""
    label: Annotated[Trimmed, Field(validation_alias="library")] = ""
    """The agent, or the library that it searched."""
    records: Annotated[tuple[AgentRecord, ...], Field(validation_alias="@records")] = ()
    """Included first, then excluded, each in the file's order."""
    unseen: Annotated[tuple[AgentRecord, ...], Field(validation_alias="@unseen")] = ()
    """Papers of the agent's database that its search did not find."""
    conclusion: Trimmed = ""
    direction: Annotated[
        StatedDirection, Field(validation_alias="conclusion_direction")
    ] = None  #: of the effect in the conclusion; None: not given
    certainty: Annotated[
        StatedCertainty, Field(validation_alias="conclusion_certainty")
    ] = None  #: the same
    findings: Annotated[tuple[Finding, ...], Field(validation_alias="@findings")] = ()
    """Findings about the file."""


_RESULT = TypeAdapter(AgentResult)
_RECORDS: TypeAdapter[dict[str, tuple[AgentRecord, ...]]] = TypeAdapter(
    dict[str, tuple[Annotated[AgentRecord, keeping_unknown(AgentRecord)], ...]]
)


FIELDS = (
    *("cochrane_id", "library", "conclusion", *INCLUDED, *EXCLUDED),
    *("papers", "included_document_ids", "document_id", "pmid", "doi", "title"),
    *("year", "relevance_score", "rationale", "other_titles"),
)
"""Fields to which a key of a result may be mapped."""


def values_in(path: Path) -> tuple[Any, ...]:
    """Return the results in a file as JSON values: one, a list, or one per line.

    Raises:
        DatasetError: the file is unreadable, or is not JSON.
    """
    try:
        value = read_json(path)
    except DatasetError:
        rows = tuple(fields for _, fields in objects_in(path))
        if len(rows) > 1:
            return rows
        raise
    return tuple(value) if isinstance(value, list) else (value,)


def read_results(
    path: Path, findings: InputFindings, renamed_keys: ColumnMap | None = None
) -> Iterator[tuple[str, AgentResult]]:
    """Yield each result in a file with its text; of a single one, the file's text.

    Raises:
        DatasetError: the file is unreadable, or is in neither of the two forms.
    """
    values = values_in(path)
    for number, value in enumerate(values, start=1):
        where = path.name if len(values) == 1 else f"{path.name} entry {number}"
        renamed = rename_keys(value, renamed_keys or {})
        is_whole = renamed is value and len(values) == 1
        text = read_text(path) if is_whole else msgspec.json.encode(renamed).decode()
        yield (
            text,
            result_of(renamed, where, findings, label=path.stem.partition("__")[2]),
        )


def result_of(
    value: object, where: str, findings: InputFindings, *, label: str = ""
) -> AgentResult:
    """Return the result in a JSON value.

    Args:
        value: the content of a file.
        where: the file, as an error names it.
        findings: collects papers without an id, and those in both lists.
        label: the agent, if the value does not state it.

    Raises:
        DatasetError: the value is in neither of the two forms.
    """
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: not an object (one review is expected).")
    fields = {name: it for name, it in value.items() if not name.startswith("@")}
    result = validated_value(_RESULT, fields, where)
    if not result.review:
        raise DatasetError(
            f"{where}: cochrane_id is missing "
            f"({describe_columns(list(value), FIELDS[:7])}; say which "
            "review it is, or pass --map KEY=cochrane_id)."
        )
    return replace(
        result,
        label=result.label or label or LABEL,
        records=_records(value, where, findings),
        unseen=_list_records(value, UNSEEN, where, findings),
    )


def _records(
    fields: Mapping[str, Any], where: str, findings: InputFindings
) -> tuple[AgentRecord, ...]:
    if "papers" in fields:
        return _flagged(fields, where, findings)
    included_name, excluded_name = (
        next((name for name in aliases if name in fields), "")
        for aliases in (INCLUDED, EXCLUDED)
    )
    if not included_name and not excluded_name:
        raise DatasetError(
            f"{where}: neither included_papers nor papers is there (one of them is "
            f"expected; {describe_columns(list(fields), FIELDS[:7])}; pass --map "
            "OLD=NEW for a key that is called otherwise)."
        )
    included = _list_records(fields, included_name, where, findings)
    excluded = _list_records(fields, excluded_name, where, findings)
    _repeated(included, where, findings)
    included_documents = {record.document for record in included}
    for record in excluded:
        if record.document in included_documents:
            findings.add(
                "in_both_lists",
                "warn",
                where,
                "Papers are both included and excluded; they count as included.",
                example=record.document,
            )
    return (*(replace(record, included=True) for record in included), *excluded)


def _flagged(
    fields: Mapping[str, Any], where: str, findings: InputFindings
) -> tuple[AgentRecord, ...]:
    """Return the records of the second form: papers, and the ids of included ones."""
    value = fields.get("included_document_ids")
    if not isinstance(value, list):
        raise DatasetError(
            f"{where}: included_document_ids is missing (a list of ids)."
        )
    included = {str(document_id) for document_id in value}
    papers = _list_records(fields, "papers", where, findings)
    _repeated(papers, where, findings)
    unknown = sorted(included - {record.document for record in papers})
    if unknown:
        raise DatasetError(
            f"{where}: included_document_ids names {unknown[0]}, which is not among "
            "papers (add or remove it)."
        )
    flagged = [
        replace(record, included=record.document in included) for record in papers
    ]
    return tuple(sorted(flagged, key=lambda record: not record.included))


def _list_records(
    fields: Mapping[str, Any], name: str, where: str, findings: InputFindings
) -> tuple[AgentRecord, ...]:
    """Return the records in a list; none if it is missing or null."""
    if not name or fields.get(name) is None:
        return ()
    records = validated_value(_RECORDS, {name: fields[name]}, where)[name]
    for index, record in enumerate(records):
        if not record.document:
            findings.add(
                "no_document_id",
                "warn",
                where,
                "Papers have no document_id; their position in the list is used.",
                example=f"{STAND_IN}{name}:{index}",
            )
        note_bad_pmid(record.pmid, where, findings)
    return tuple(
        record
        if record.document
        else replace(record, document=f"{STAND_IN}{name}:{index}")
        for index, record in enumerate(records)
    )


def _repeated(
    records: Iterable[AgentRecord], where: str, findings: InputFindings
) -> None:
    """Add a finding for repeated documents; all rows count, in precision too."""
    for document, n in Counter(record.document for record in records).items():
        if n > 1:
            findings.add(
                "repeated_rows",
                "warn",
                where,
                "Papers occur several times in one list; each row counts.",
                example=document,
            )


class ResultsImporter(FileImporter[ReviewBenchmarkSettings]):
    """Imports the results of agents."""

    forms: ClassVar[Mapping[str, ImportForm]] = {
        "results": ImportForm(recognised="JSON objects with a cochrane_id")
    }
    default_form = "results"
    fields = FIELDS
    no_files = "Name the results of an agent: --results DIR or FILE."

    def named(self, settings: ReviewBenchmarkSettings) -> Iterator[ImportFile]:
        """Yield the results that settings name."""
        yield from (ImportFile(path=path) for path in settings.results)

    def paths(self, path: Path) -> Sequence[Path]:
        """Return a file, or the JSON files of a folder, sorted by name."""
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise DatasetError(f"{path}: there is no .json file in it (name another).")
        return files

    def keys(
        self,
        file: ImportFile,
        settings: ReviewBenchmarkSettings,  # noqa: ARG002 - required by the base class
    ) -> Iterator[str]:
        """Yield the keys at every depth."""
        for value in values_in(file.path):
            yield from keys_of(value)

    def answers(
        self, files: Sequence[ImportFile], settings: ReviewBenchmarkSettings
    ) -> Iterator[ImportedAnswer]:
        """Yield an answer for each file of a selected review."""
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
            raise DatasetError("No result belongs to a selected review (--review ID).")


def _require_ids(result: AgentResult, path: Path) -> None:
    """Raise if papers lack the ids by which replicates are combined."""
    if any(record.document.startswith(STAND_IN) for record in result.records):
        raise DatasetError(
            f"{path.name}: papers have no document_id, by which replicates are joined "
            "(add them, or import the replicates as agents of their own)."
        )


importer = ResultsImporter()
