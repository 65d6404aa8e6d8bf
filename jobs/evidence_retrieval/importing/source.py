"""One file of work made elsewhere, and what it says of each query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.evidence_retrieval.importing.given import Given, Truth
from jobs.evidence_retrieval.inputs.judgements import owner_by_prefix
from jobs.evidence_retrieval.inputs.posts import read_posts
from jobs.evidence_retrieval.settings import Settings
from jobs.inputs.column_map import ColumnMap
from jobs.inputs.files import csv_columns
from jobs.inputs.rows import InputFindings, InputRow
from runner.errors import DatasetError

QUERY = ("post_id", "criterion_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one file says of one query."""

    where: str  #: the file and the line, for errors
    post: str
    criterion: str
    truth: Truth = field(default_factory=Truth)
    given: Mapping[str, Given] = field(default_factory=dict)  #: by model

    @property
    def query(self) -> tuple[str, str]:
        """Which query it speaks of."""
        return self.post, self.criterion

    def error(self, sentence: str) -> DatasetError:
        """The error that says *sentence* about this place."""
        return DatasetError(f"{self.where}: {sentence}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Which post a sentence belongs to: as `--sentences` says, else by its id."""

    posts: Mapping[str, str] | None = None  #: by uid

    @classmethod
    def of(cls, settings: Settings) -> Owners:
        """As the settings say; raise `DatasetError` where the sentences are off."""
        if settings.sentences is None:
            return cls()
        # what is noticed about that file is said by `load`
        _, pools = read_posts(settings, InputFindings())
        return cls(posts={uid: post for uid, (post, _) in pools.places.items()})

    def foreign(self, post: str, uids: Iterable[str]) -> str | None:
        """The first of *uids* that is no sentence of *post*."""
        if self.posts is None:
            return next((uid for uid in uids if owner_by_prefix(uid) != post), None)
        return next((uid for uid in uids if self.posts.get(uid) != post), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to import."""

    path: Path
    settings: Settings
    owners: Owners
    noticed: InputFindings
    model: str  #: whose predictions or rankings a file without names holds
    columns: ColumnMap = field(default_factory=dict)  #: fields by renamed columns

    @property
    def names(self) -> tuple[str, ...]:
        """The file's columns by the names used here."""
        return tuple(self.columns.get(name, name) for name in csv_columns(self.path))

    def query(self, row: InputRow) -> tuple[str, str]:
        """The post and criterion that a row speaks of."""
        post, criterion = row.text("post_id"), row.text("criterion_id")
        if "/" in criterion:
            raise row.error(
                f"criterion_id {criterion!r} holds '/', which stands between post and "
                "criterion in the name of a query (rename the criterion)"
            )
        return post, criterion

    def sentences(self, row: InputRow, name: str, post: str) -> tuple[str, ...]:
        """A cell of sentence ids, each of which must belong to the row's post."""
        uids = row.texts(name)
        foreign = self.owners.foreign(post, uids)
        if foreign is not None:
            raise row.error(f"{name} holds {self.why_foreign(foreign, post)}")
        return uids

    def ranked(self, row: InputRow, name: str, post: str) -> tuple[str, ...]:
        """A ranking: sentence ids, none of them twice."""
        uids = self.sentences(row, name, post)
        if len(set(uids)) < len(uids):
            double = next(uid for uid in uids if uids.count(uid) > 1)
            raise row.error(f"{name} lists {double} twice (keep its first place)")
        return uids

    def why_foreign(self, uid: str, post: str) -> str:
        """What is wrong with a sentence id, and what to do."""
        if self.owners.posts is None:
            return (
                f"{uid!r}, no sentence of {post} by its id (it should be {post}_<n>; "
                "else name the sentences with --sentences)"
            )
        return f"{uid!r}, no sentence of {post} in --sentences (correct the id)"

    def parts(self, rows: Iterable[InputRow]) -> Iterator[tuple[InputRow, Part]]:
        """Each row with the query that it speaks of."""
        for row in rows:
            post, criterion = self.query(row)
            where = f"{row.file} line {row.line}"
            yield row, Part(where=where, post=post, criterion=criterion)
