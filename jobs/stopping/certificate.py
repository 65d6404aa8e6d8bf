"""Builds the certificate of a stop, which anyone can recompute.

Every value is computed from the label events, the library and this code: a certificate
that is recomputed from its copies of the label logs is equal byte for byte. Its folder:

    RUN/certificates/1/certificate.json   the document
    RUN/certificates/1/certificate.html   the same as a page for reviewers, and .md
    RUN/certificates/1/labels/*.db        copies of the label logs as they were
    RUN/certificates/1/order.csv          the ranked order
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from jobs.kit.metrics import recall_bound
from jobs.screening import stop_rule
from jobs.stopping import screening_fold
from jobs.stopping.reading_order import order_hash
from jobs.stopping.screening_fold import ScreeningFold, in_order
from store.database import copy_log, open_reader
from store.errors import ignore_progress
from store.filesystem import make_folder, sync_folder
from store.labels.fold import LabelEntry, population_hash
from store.labels.folder import LabelFolder, author_of, label_logs
from store.runs import CERTIFICATES
from store.tables import head, last_seq

SCHEMA: Final = "siftlog.certificate/1"
NAME: Final = "certificate.json"
ORDER: Final = "order.csv"
LABELS: Final = "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The records that are screened, by hashes."""

    files: Mapping[str, str]  #: SHA-256 of each file, in hex, by its name
    texts: Mapping[str, str]  #: SHA-256 of each record's text, in hex, by key
    without_abstract: int

    @property
    def hashes(self) -> list[str]:
        """Hashes of the files, in their order."""
        return list(self.files.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedLog:
    """A label log in a certificate, with the position of its end."""

    log: str  #: name of its file
    author: str
    events: int
    head: str  #: last link of its chain, in hex
    sha256: str  #: of the copy, in hex


@cache
def code_sha256() -> str:
    """Return the SHA-256 of the code that computes the bound, in hex."""
    digest = hashlib.sha256()
    for module in (recall_bound, stop_rule, screening_fold):
        digest.update(inspect.getsource(module).encode())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_copies(folder: Path) -> tuple[list[CopiedLog], list[LabelEntry]]:
    """Read heads and events of a certificate's label logs, in the order of a union.

    Raises:
        StoreError: a log cannot be read.
    """
    heads = []
    for log in label_logs(folder):
        with open_reader(log) as reader:
            heads.append(
                CopiedLog(
                    log=log.name,
                    author=author_of(log) or "",
                    events=last_seq(reader),
                    head=head(reader),
                    sha256=file_sha256(log),
                )
            )
    logs = LabelFolder(folder)
    logs.poll()
    return heads, in_order(logs.entries)


def certificate(
    fold: ScreeningFold, library: Library, heads: Sequence[CopiedLog]
) -> dict[str, Any]:
    """Return the document of a stop.

    Args:
        fold: fold of all events of the logs.
        library: the records.
        heads: heads of the label logs.

    Raises:
        ValueError: there is no plan.
    """
    status, statement = fold.status, fold.plan
    if status is None or statement is None:
        raise ValueError("the label logs hold no plan of a screening")
    plan = statement.event
    return {
        "schema": SCHEMA,
        "number": len(fold.stops) + 1,
        "run": fold.run,
        "target": plan.target,
        "alpha": plan.alpha,
        "reached": status.should_stop,
        "recall_at_least": status.recall,
        "relevant_at_most": status.most_relevant,
        "relevant_found": status.relevant,
        "labelled": status.read,
        "records": status.records,
        "stopped_at": _time(fold.last_us),
        "planned_at": _time(statement.ts_us),
        "planned_by": plan.author,
        "labelled_by": sorted(fold.authors),
        "library": {
            "files": [
                {"name": name, "sha256": sha256}
                for name, sha256 in library.files.items()
            ],
            "without_abstract": library.without_abstract,
            "population_sha256": population_hash(library.texts),
            "texts_sha256": order_hash(
                f"{key} {sha256}" for key, sha256 in sorted(library.texts.items())
            ),
        },
        "ranking": {
            "order": plan.order,
            "order_sha256": plan.order_sha256,
            "models": plan.models,
            "run_events": plan.run_seq,
            "run_head": plan.run_head,
            "scoring": plan.scoring,
            "scoring_digest": plan.scoring_digest,
        },
        "plan": {
            "event": statement.id,
            "question": plan.question,
            "seed": plan.seed,
            "later": fold.other_plans,
        },
        "logs": [
            {
                "log": one.log,
                "author": one.author,
                "events": one.events,
                "head": one.head,
                "sha256": one.sha256,
            }
            for one in heads
        ],
        "reading_order_sha256": order_hash(fold.order),
        "draws_counted": status.draws_counted,
        "draws": [
            {
                "event": draw.id,
                "record": draw.record,
                "unread": draw.unread,
                "relevant": draw.is_relevant,
            }
            for draw in fold.draws
        ],
        "draws_irregular": fold.irregular,
        "disputed": fold.disputed,
        "code": {"siftlog": _version(), "sha256": code_sha256()},
    }


@cache
def _version() -> str:
    return version("siftlog")  # searches the installed packages each time


def _time(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="microseconds")


def encoded(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of certificate.json."""
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def encoded_order(order: Sequence[str]) -> bytes:
    """Return the bytes of order.csv."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("rank", "record"))
    writer.writerows(enumerate(order, 1))
    return text.getvalue().encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCertificate:
    """A certificate on disk."""

    path: Path  #: of certificate.json
    document: Mapping[str, Any]
    sha256: str


def write_certificate(
    run_folder: Path,
    labels: Path,
    library: Library,
    order: Sequence[str],
    pages: Callable[[Mapping[str, Any]], Mapping[str, bytes]],
) -> WrittenCertificate:
    """Write the certificate of a stop, completely or not at all.

    No event may be recorded meanwhile: hold the lock of the label folder.

    Args:
        run_folder: folder of the run.
        labels: folder of the label logs.
        library: the records.
        order: their keys in ranked order.
        pages: builds the pages of a document, by name.

    Raises:
        StoreError: a label log cannot be read or copied.
        OSError: the folder cannot be written.
    """
    folder = run_folder / CERTIFICATES
    make_folder(folder)
    draft = folder / f".draft.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        (draft / LABELS).mkdir(parents=True)
        for log in label_logs(labels):
            if author_of(log) is not None:
                copy_log(log, draft / LABELS / log.name, ignore_progress)
        heads, entries = read_copies(draft / LABELS)
        fold = ScreeningFold(run_folder.name, library.texts).receive_all(entries)
        document = certificate(fold, library, heads)
        content = encoded(document)
        (draft / ORDER).write_bytes(encoded_order(order))
        for name, page in pages(document).items():
            (draft / name).write_bytes(page)
        (draft / NAME).write_bytes(content)
        for file in draft.rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    os.fsync(opened.fileno())
        target = folder / str(document["number"])
        shutil.rmtree(
            target, ignore_errors=True
        )  # left by a process that died before its event
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sync_folder(folder)
    return WrittenCertificate(
        path=target / NAME,
        document=document,
        sha256=hashlib.sha256(content).hexdigest(),
    )
