"""Reads the results of other agents: one JSON file a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import msgspec

from jobs.kit.inputs.column_map import ColumnMap, describe_columns, rename_keys
from jobs.kit.inputs.files import objects_in, read_json, read_text
from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.data import AgentRecord, Certainty, Direction
from jobs.review_benchmark.truth_files import JsonFields, note_bad_pmid
from runner.errors import DatasetError
from runner.scorecard import Finding

LABEL = "imported"
"""Whose work it is where neither file nor name says so."""

STAND_IN = "row:"
"""Begins what stands for a missing `document_id`: its list, and its place there."""

_RECORD = (
    "document_id",
    "pmid",
    "doi",
    "title",
    "year",
    "relevance_score",
    "rationale",
    "other_titles",
)
INCLUDED = ("included_papers", "included")
EXCLUDED = ("excluded_papers", "excluded")
UNSEEN = "database_papers"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What an agent found and decided for one review."""

    review: str
    label: str  #: the agent, or the library that it searched
    records: tuple[AgentRecord, ...]  #: included first, then excluded, each as given
    unseen: tuple[AgentRecord, ...] = ()
    """Papers of the agent's database that its search did not offer."""
    conclusion: str = ""
    direction: Direction | None = None  #: of the effect concluded; None: not given
    certainty: Certainty | None = None  #: the same
    findings: tuple[Finding, ...] = ()  #: what is odd about it


def result_files(sources: Iterable[Path]) -> tuple[Path, ...]:
    """The files that are named, and those in folders that are named, by name.

    Raises:
        DatasetError: a path does not exist, or a folder holds no JSON file.
    """
    paths: list[Path] = []
    for path in sources:
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise DatasetError(f"{path}: there is no .json file in it (name another).")
        paths += inside
    return tuple(paths)


FIELDS = (
    *("cochrane_id", "library", "conclusion", *INCLUDED, *EXCLUDED),
    *("papers", "included_document_ids", *_RECORD),
)
"""What a key of a result may be mapped to."""


def values_in(path: Path) -> tuple[Any, ...]:
    """The results in a file as JSON values: one, a list of them, or one a line.

    Raises:
        DatasetError: the file is not to be read, or is not JSON.
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
    """Each result in a file with its text: that of the file where it holds one alone.

    Raises:
        DatasetError: it is not to be read, or is in neither of the two forms.
    """
    values = values_in(path)
    for number, value in enumerate(values, start=1):
        where = path.name if len(values) == 1 else f"{path.name} entry {number}"
        renamed = rename_keys(value, renamed_keys or {})
        is_whole = renamed is value and len(values) == 1
        text = read_text(path) if is_whole else msgspec.json.encode(renamed).decode()
        yield text, result_of(renamed, where, findings, label=_label(path))


def result_of(
    value: object, where: str, findings: InputFindings, *, label: str = ""
) -> AgentResult:
    """The result in a JSON value.

    Args:
        value: what a file held.
        where: the file, as an error names it.
        findings: learns of papers without an id, and of those in both lists.
        label: whose work it is where the value does not say.

    Raises:
        DatasetError: it is in neither of the two forms.
    """
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: not an object (one review is expected).")
    fields = JsonFields(where=where, values=value)
    review = fields.text("cochrane_id")
    if not review:
        raise fields.error(
            "cochrane_id is missing "
            f"({describe_columns(list(fields.values), FIELDS[:7])}; say which "
            "review it is, or pass --map KEY=cochrane_id)"
        )
    return AgentResult(
        review=review,
        label=fields.text("library") or label or LABEL,
        records=_records(fields, findings),
        unseen=tuple(_list_records(fields, UNSEEN, findings))
        if UNSEEN in fields.values
        else (),
        conclusion=fields.text("conclusion"),
        direction=fields.word("conclusion_direction", get_args(Direction)),
        certainty=fields.word("conclusion_certainty", get_args(Certainty)),
    )


def _label(path: Path) -> str:
    return path.stem.partition("__")[2]


def _records(fields: JsonFields, findings: InputFindings) -> tuple[AgentRecord, ...]:
    if "papers" in fields.values:
        return _flagged(fields, findings)
    names = [
        next((name for name in aliases if name in fields.values), None)
        for aliases in (INCLUDED, EXCLUDED)
    ]
    if names == [None, None]:
        raise fields.error(
            "neither included_papers nor papers is there (one of them is expected; "
            f"{describe_columns(list(fields.values), FIELDS[:7])}; pass --map "
            "OLD=NEW for a key that is called otherwise)"
        )
    lists = [_list_records(fields, name, findings) for name in names]
    _repeated(fields, lists[0], findings)
    included_documents = {record.document for record in lists[0]}
    for record in lists[1]:
        if record.document in included_documents:
            findings.add(
                "in_both_lists",
                "warn",
                fields.where,
                "Papers stand among the included and the excluded; they count as "
                "included.",
                example=record.document,
            )
    return (*(replace(record, included=True) for record in lists[0]), *lists[1])


def _flagged(fields: JsonFields, findings: InputFindings) -> tuple[AgentRecord, ...]:
    """The second form: papers, and the ids of those that are included."""
    value = fields.values.get("included_document_ids")
    if not isinstance(value, list):
        raise fields.error("included_document_ids is missing (a list of ids)")
    included = {str(document_id) for document_id in value}
    papers = _list_records(fields, "papers", findings)
    _repeated(fields, papers, findings)
    unknown = sorted(included - {record.document for record in papers})
    if unknown:
        raise fields.error(
            f"included_document_ids names {unknown[0]}, which is not among papers "
            "(add or remove it)"
        )
    return (
        *(
            replace(record, included=True)
            for record in papers
            if record.document in included
        ),
        *(record for record in papers if record.document not in included),
    )


def _list_records(
    fields: JsonFields, name: str | None, findings: InputFindings
) -> Sequence[AgentRecord]:
    if name is None:
        return ()
    return [
        _record(paper_fields, f"{STAND_IN}{name}:{index}", findings)
        for index, paper_fields in enumerate(fields.objects(name))
    ]


def _repeated(
    fields: JsonFields, records: Iterable[AgentRecord], findings: InputFindings
) -> None:
    """Rows of one document are all counted, in precision too."""
    for document, n in Counter(record.document for record in records).items():
        if n > 1:
            findings.add(
                "repeated_rows",
                "warn",
                fields.where,
                "Papers stand in one list several times; each row counts.",
                example=document,
            )


def _record(fields: JsonFields, stand_in: str, findings: InputFindings) -> AgentRecord:
    where = fields.where.partition(":")[0]
    document = fields.identifier("document_id")
    if not document:
        findings.add(
            "no_document_id",
            "warn",
            where,
            "Papers have no document_id; their place in the list stands for it.",
            example=stand_in,
        )
    pmid = fields.identifier("pmid")
    note_bad_pmid(pmid, where, findings)
    return AgentRecord(
        document=document or stand_in,
        pmid=pmid,
        doi=fields.text("doi"),
        title=fields.text("title"),
        year=fields.year("year"),
        score=fields.number("relevance_score"),
        rationale=fields.text("rationale"),
        other_titles=fields.texts("other_titles"),
        further=fields.without(_RECORD),
    )
