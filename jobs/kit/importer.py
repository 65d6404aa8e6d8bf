"""Imports answers that other programs made; a job declares the forms of their files.

A form is data: how it is called, how it is recognised by the columns of a file, and
under which further spellings its columns are known. The importer collects the files,
applies `--map`, recognises the form of each file and hands them to the job, which turns
their rows into answers.

>>> from collections.abc import Iterator, Sequence
>>> class VoteImporter(FileImporter["VoteSettings"]):
...     forms = {
...         "votes": ImportForm(recognised="CSV paper, vote", needs=("paper", "vote")),
...         "scores": ImportForm(
...             recognised="CSV paper and score or rank",
...             needs=("paper", ("score", "rank")),
...             spellings={"paper": ("pmid",), "score": ("probability",)},
...         ),
...     }
...     fields = ("paper", "vote", "score", "rank", "model")
...     no_files = "Name the votes: --votes FILE."
...
...     def answers(
...         self, files: Sequence[ImportFile], settings: "VoteSettings"
...     ) -> Iterator[ImportedAnswer]:
...         yield from ()
>>> VoteImporter().formats["votes"]
'CSV paper, vote'
>>> VoteImporter.forms["scores"].fits(["paper", "rank"])
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from jobs.kit.inputs.column_map import (
    ColumnMap,
    ambiguous_column,
    column_map,
    describe_columns,
)
from jobs.kit.inputs.files import csv_columns
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer


class MappedSettings(Protocol):
    """Settings of a job that imports."""

    @property
    def map(self) -> tuple[str, ...]:
        """The pairs of `--map`."""
        ...


Settings = TypeVar("Settings", bound=MappedSettings, contravariant=True)  # noqa: PLC0105 - named like the parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportForm:
    """One way in which answers are written down."""

    recognised: str  #: what a file has, in words
    needs: tuple[str | tuple[str, ...], ...] = ()
    """Columns that each file has; of several in parentheses one. `*` is a wildcard."""
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further names of columns, where a file is of no form by the names used here."""

    def fits(self, columns: Collection[str]) -> bool:
        """Whether a file with these columns is in this form."""
        return all(
            any(
                fnmatchcase(column, name)
                for name in ((need,) if isinstance(need, str) else need)
                for column in columns
            )
            for need in self.needs
        )

    def respelled(self, file: str, columns: Sequence[str]) -> dict[str, str]:
        """Returns the columns of a file that have a further name, with their fields.

        Raises:
            DatasetError: two columns could be one field.
        """
        renamed = {}
        for name, others in self.spellings.items():
            present = [other for other in others if other in columns]
            if name in columns or not present:
                continue
            if len(present) > 1:
                raise ambiguous_column(file, present, name)
            renamed[present[0]] = name
        return renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFile:
    """A file to import."""

    path: Path
    form: str = ""  #: a name of a form; "": by the columns of the file
    model: str = ""  #: by its option or `--model`; "": none is named
    replicate: int | None = None  #: by `--replicate`; None: none is named
    renamed: ColumnMap = field(default_factory=dict)  #: fields by renamed columns


class FileImporter(ABC, Generic[Settings]):
    """The base of `runner.job.Importer` for files in several forms."""

    forms: ClassVar[Mapping[str, ImportForm]]
    """By name, in the order in which they are tried."""
    fields: ClassVar[Sequence[str]]
    """Names that a column may be mapped to; `*` stands for any characters."""
    hinted: ClassVar[Sequence[str]] = ()
    """Fields for which an error names the nearest column, where no form fits."""
    no_files: ClassVar[str] = "Name the files to import."
    """Error where no file is named."""
    default_form: ClassVar[str] = ""
    """The form of files where none is named; "": by the columns of each."""
    no_replicates: ClassVar[str] = ""
    """Error about `--replicate` where the forms take none."""

    def __init__(self) -> None:
        self.formats: Mapping[str, str] = {
            name: form.recognised for name, form in self.forms.items()
        }

    def named(self, settings: Settings) -> Iterable[ImportFile]:  # noqa: ARG002 - for jobs
        """Returns the files that settings name; they come first."""
        return ()

    def pairs(self, settings: Settings) -> Sequence[str]:
        """Returns the pairs of `--map` that rename columns of the files."""
        return settings.map

    def paths(self, path: Path) -> Iterable[Path]:
        """Returns the files that a path stands for; a job may take folders."""
        return (path,)

    def columns(self, file: ImportFile, settings: Settings) -> Sequence[str]:  # noqa: ARG002 - for jobs
        """Returns the columns by which the form of a file is recognised."""
        return csv_columns(file.path)

    def keys(self, file: ImportFile, settings: Settings) -> Iterable[str]:
        """Returns all names in a file that `--map` may rename."""
        return self.columns(file, settings)

    @abstractmethod
    def answers(
        self, files: Sequence[ImportFile], settings: Settings
    ) -> Iterator[ImportedAnswer]:
        """Reads the answers in files whose forms are known."""

    def read(
        self,
        files: tuple[Path, ...],
        settings: Settings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """Reads the answers in *files* and in those that settings name.

        Args:
            files: without a flag.
            settings: of the run.
            model: name of the model where a file or row has none.
            form: of *files*, a name in `formats`; None: by the columns of each.
            replicates: number of the replicate that a file holds.

        Raises:
            DatasetError: a file cannot be read, fits no form, or a row is off.
            UsageError: no file is named, `--map` names an unknown column, or replicates
                are named that the forms do not take.
        """
        if replicates and self.no_replicates:
            raise UsageError(self.no_replicates)
        sources = [
            replace(
                file,
                path=path,
                form=file.form or self.default_form,
                model=file.model or model or "",
                replicate=replicates.get(path),
            )
            for file in (
                *self.named(settings),
                *(ImportFile(path=path, form=form or "") for path in files),
            )
            for path in self.paths(file.path)
        ]
        if not sources:
            raise UsageError(self.no_files)
        renamed: ColumnMap = {}
        if pairs := self.pairs(settings):
            keys = (key for file in sources for key in self.keys(file, settings))
            renamed = column_map(pairs, self.fields, keys)
        recognised = [self._recognised(file, settings, renamed) for file in sources]
        yield from self.answers(recognised, settings)

    def _recognised(
        self, file: ImportFile, settings: Settings, renamed: ColumnMap
    ) -> ImportFile:
        if file.form and not self.forms[file.form].spellings:
            return replace(file, renamed=renamed)
        columns = [renamed.get(name, name) for name in self.columns(file, settings)]
        forms = {file.form: self.forms[file.form]} if file.form else self.forms
        for name, form in forms.items():
            respelled = form.respelled(file.path.name, columns)
            if form.fits([respelled.get(column, column) for column in columns]):
                return replace(file, form=name, renamed={**renamed, **respelled})
        formats = "; ".join(f"{name}: {words}" for name, words in self.formats.items())
        raise DatasetError(
            f"{file.path.name}: fits no known format "
            f"({describe_columns(columns, self.hinted)}; {formats}; rename a column "
            "with --map OLD=NEW, or force a format with --format)."
        )
