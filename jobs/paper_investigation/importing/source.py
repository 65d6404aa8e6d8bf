"""One file of work made elsewhere, and what the command line said about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from jobs.noticed import Noticed
from jobs.paper_investigation.bench import paper_id
from jobs.paper_investigation.record import Fact
from jobs.paper_investigation.rows import Row, read_rows
from jobs.paper_investigation.settings import PIPELINES, Pipeline, Settings
from jobs.rows.mapping import ColumnMap, found_words, renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to import."""

    path: Path
    settings: Settings
    model: str | None = None  #: of every row, whatever the file says
    replicate: int | None = None  #: likewise
    columns: ColumnMap = field(default_factory=dict)  #: fields by renamed keys

    def rows(self) -> Iterator[Row]:
        """The file's objects, one at a time, with their keys by the names used here."""
        rows = read_rows(self.path, self.settings.encoding_errors, Noticed())
        for row in rows:
            fields = renamed(row.fields, self.columns)
            yield replace(row, fields=fields) if self.columns else row

    def model_of(self, row: Row) -> str:
        """The model that gave a row's answers."""
        model = self.model or row.text("model")
        if not model:
            raise row.error("model is missing (name it with --model)")
        return model

    def replicate_of(self, row: Row) -> int:
        """The replicate that a row belongs to, 1 where nothing says so."""
        replicate = self.replicate or row.fields.get("replicate") or 1
        if not isinstance(replicate, int) or replicate < 1:
            raise row.error("replicate is not a number from 1 (correct or remove it)")
        return replicate

    def paper_of(self, row: Row) -> str:
        """The row's paper."""
        if "pmcid" not in row.fields:
            found = found_words(list(row.fields), ("pmcid",))
            raise row.error(f"pmcid is missing ({found}; pass --map KEY=pmcid)")
        return paper_id(row, self.settings)


def reply_text(row: Row, name: str) -> str:
    """A model's reply as it stands, blanks included; "" for null."""
    text = row.fields.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise row.error(f"{name} is not text (a model's reply is expected)")
    return text


def pipeline_of(row: Row, name: str) -> Pipeline:
    """A field that names a pipeline."""
    text = row.text(name)
    for pipeline in PIPELINES:
        if text == pipeline:
            return pipeline
    raise row.error(f"{name} is {text[:30]!r} (one of {', '.join(PIPELINES)})")


def recorded(row: Row, names: tuple[str, ...]) -> dict[str, Fact]:
    """Those of the named fields that the row has: compared later, never trusted."""
    return {name: row.fields[name] for name in names if name in row.fields}
