"""Recomputes a certificate from label events and library: `siftlog verify`.

Each difference is a sentence that names the file and the difference. A certificate in
the folder of its run is also compared with the run's current label logs: they must
begin with the events of the copies, and contain the hash of the certificate. Later
events are counted, and change nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.screening.inputs import ScreeningDataset, load
from jobs.screening.settings import ScreeningSettings
from jobs.stopping.certificate import (
    LABELS,
    NAME,
    ORDER,
    SCHEMA,
    Library,
    certificate,
    encoded,
    encoded_order,
    file_sha256,
    read_copies,
)
from jobs.stopping.certificate_page import pages
from jobs.stopping.library import open_library
from jobs.stopping.reading_order import order_hash
from jobs.stopping.screening_fold import ScreeningFold
from runner.bundle.manifest import moved
from runner.errors import RunnerError
from runner.registry import job_of
from runner.score.scoring import settings_in
from store.database import open_reader
from store.document import floored
from store.errors import StoreError
from store.labels.events import ScreeningStopped
from store.labels.fold import LabelEntry
from store.labels.folder import LabelFolder, verify_labels
from store.read.status import run_started
from store.runs import CERTIFICATES, RunFolder


@dataclass(slots=True, kw_only=True)
class CertificateReport:
    """The check of one certificate."""

    path: Path
    run: str = ""
    number: int | None = None
    recall: float | None = None  #: lower bound, recomputed
    target: float | None = None
    labelled: int | None = None
    records: int | None = None
    later_events: int | None = None  #: recorded since; None: unknown
    problems: list[str] = field(default_factory=list)  #: a sentence each
    notes: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether there are no differences."""
        return not self.problems

    @property
    def name(self) -> str:
        """The file, with its numbered folder."""
        return "/".join(self.path.absolute().parts[-2:])

    @property
    def sentence(self) -> str:
        """The statement that a sound certificate proves."""
        notes = "".join(f"; {note}" for note in self.notes)
        later = (
            f"; {self.later_events:,} label events have followed"
            if self.later_events
            else ""
        )
        return (
            f"{self.name} is sound: {self.labelled:,} of {self.records:,} records "
            f"labelled, recall at least {floored(self.recall or 0.0)} (target "
            f"{self.target:g}), computed again from the label events{later}{notes}"
        )

    @property
    def as_json(self) -> dict[str, Any]:
        """All fields, for `--json`."""
        return {
            "certificate": str(self.path),
            "run": self.run or None,
            "number": self.number,
            "sound": self.is_sound,
            "recall_at_least": self.recall,
            "target": self.target,
            "labelled": self.labelled,
            "records": self.records,
            "later_events": self.later_events,
            "problems": self.problems,
            "notes": self.notes,
        }


def check_certificate(path: Path, *, is_bundled: bool = False) -> CertificateReport:
    """Recompute a certificate, and list the differences.

    Args:
        path: path of `certificate.json`.
        is_bundled: whether it is in the folder of an unpacked bundle; only the bundle's
            inputs may be read then.
    """
    report = CertificateReport(path=path)
    try:
        report.problems += _problems(path, report, is_bundled=is_bundled)
    except (StoreError, RunnerError, OSError, ValueError) as error:
        report.problems.append(str(error))
    return report


def fold_of(path: Path) -> ScreeningFold:
    """Return the state of the screening that a certificate is about.

    Raises:
        RunnerError: its library or a copy of a label log is missing or changed.
        StoreError: a label log cannot be read.
    """
    folder, document = path.parent, _read(path.read_bytes())
    if isinstance(document, str):
        raise RunnerError(f"{path} {document}")
    run = _run_of(folder, document, is_bundled=False)
    library, problems = _library(folder, run, document, is_bundled=False)
    problems += _changed_logs(folder / LABELS, document)
    if library is None or problems:
        raise RunnerError(f"{path}: {problems[0]}")
    _, entries = read_copies(folder / LABELS)
    return ScreeningFold(str(document["run"]), library.texts).receive_all(entries)


def _problems(
    path: Path, report: CertificateReport, *, is_bundled: bool
) -> Iterator[str]:
    content = path.read_bytes()
    document = _read(content)
    if isinstance(document, str):
        yield f"{path.name} {document}"
        return
    folder = path.parent
    changed = list(_changed_logs(folder / LABELS, document)) or [
        f"{LABELS}/{log.log.name}: {problem}"
        for log in verify_labels(folder / LABELS)
        for problem in log.problems
    ]
    yield from changed
    if changed:
        return
    run = _run_of(folder, document, is_bundled=is_bundled)
    if run is None and is_bundled:
        yield f"{path.name} is of another run"
        return
    library, missing = _library(folder, run, document, is_bundled=is_bundled)
    yield from missing
    if library is None:
        return
    heads, entries = read_copies(folder / LABELS)
    fold = ScreeningFold(str(document["run"]), library.texts).receive_all(entries)
    again = certificate(fold, library, heads)
    report.run, report.number = fold.run, again["number"]
    report.recall, report.target = again["recall_at_least"], again["target"]
    report.labelled, report.records = again["labelled"], again["records"]
    yield from _against_plan(fold, library)
    stop = None if run is None else _stop_in(run, document, entries, report)
    if isinstance(stop, str):
        yield stop
    elif stop is not None and stop.certificate_sha256 != _sha256(content):
        yield f"{path.name} is not the file that the label log names as its certificate"
    if document.get("code") != again["code"] and isinstance(stop, ScreeningStopped):
        # the log confirms the file; another version of siftlog computed it
        report.notes.append(
            f"{path.name} was made by other code (siftlog "
            f"{_code_version(document)}); this code gives the same bound"
        )
        again["code"] = document["code"]
    differing = next(_differences(document, again, ""), None)
    if differing is not None:
        yield f"{path.name}: {differing}"
    elif encoded(again) != content:
        yield f"{path.name} is not written as siftlog writes it"
    yield from _changed_files(folder, again, fold)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _code_version(document: Mapping[str, Any]) -> str:
    code = document.get("code")
    return str(code.get("siftlog")) if isinstance(code, dict) else "of unknown version"


def _read(content: bytes) -> dict[str, Any] | str:
    """Return the document of a certificate, or a description of the error."""
    try:
        document = json.loads(content)
    except ValueError as error:
        return f"cannot be read ({error})"
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return f"is no certificate of this siftlog: its schema is not {SCHEMA}"
    logs = document.get("logs")
    if not isinstance(logs, list) or not all(
        isinstance(one, dict) and {"log", "sha256"} <= one.keys() for one in logs
    ):
        return "does not list its label logs"
    if not isinstance(document.get("run"), str):
        return "does not name its run"
    return document


def _changed_logs(folder: Path, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield copies of label logs that are missing, changed, or too many."""
    listed = {str(one["log"]): one["sha256"] for one in document["logs"]}
    there = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
    for name in sorted(there - listed.keys()):
        yield f"{LABELS}/{name} is not part of {NAME}"
    for name, sha256 in listed.items():
        if name not in there:
            yield f"{LABELS}/{name}, which {NAME} names, is missing"
        elif file_sha256(folder / name) != sha256:
            yield f"{LABELS}/{name} differs from the copy that {NAME} names"


def _run_of(
    folder: Path, document: Mapping[str, Any], *, is_bundled: bool
) -> RunFolder | None:
    """Return the run whose folder has the certificate, or None."""
    if folder.parent.name != CERTIFICATES:
        return None
    run = RunFolder(folder.absolute().parent.parent)
    if is_bundled:  # unpacked under another name
        with open_reader(run.log) as reader:
            return run if run_started(reader).run_id == document["run"] else None
    return run if run.run_id == document["run"] and run.log.is_file() else None


def _library(
    folder: Path,
    run: RunFolder | None,
    document: Mapping[str, Any],
    *,
    is_bundled: bool,
) -> tuple[Library | None, list[str]]:
    """Return the library of a certificate, from its folder or from its run."""
    listed = document.get("library")
    files = listed.get("files") if isinstance(listed, dict) else None
    if not isinstance(files, list):
        return None, [f"{NAME} does not name the files of its library"]
    if run is not None:
        with open_reader(run.log) as reader:
            settings = settings_in(job_of(run_started(reader)), reader, {})
        if not isinstance(settings, ScreeningSettings):
            return None, [f"run {run.run_id} is no run of screening"]
        if is_bundled:
            settings = ScreeningSettings.model_validate(
                moved(settings, run.path).model_dump()
            )
        here = [
            path
            if path.is_file() or not (folder / path.name).is_file()
            # the run was moved to another machine
            else folder / path.name
            for path in settings.library
        ]
        settings = settings.model_copy(update={"labels": None, "library": tuple(here)})
    else:
        names = [str(one.get("name")) for one in files if isinstance(one, dict)]
        settings = ScreeningSettings(library=tuple(folder / name for name in names))
    problems = [
        f"the library's file {path} is missing: put it back, or next to {NAME}"
        for path in settings.library
        if not path.is_file()
    ]
    hashes = [(path, file_sha256(path)) for path in settings.library if path.is_file()]
    listed_hashes = [one.get("sha256") for one in files if isinstance(one, dict)]
    for (path, sha256), then in zip(hashes, listed_hashes, strict=False):
        if not problems and sha256 != then:
            problems.append(
                f"the library's file {path.name} differs from the one that {NAME} names"
            )
    if problems:
        return None, problems
    dataset: ScreeningDataset = load(settings)
    return open_library(dataset).hashes, []


def _against_plan(fold: ScreeningFold, library: Library) -> Iterator[str]:
    if fold.plan is None:
        return
    plan = fold.plan.event
    if plan.library != library.hashes:
        yield "the library is not the one of the plan in the label log"
    if plan.records != len(library.texts):
        yield (
            f"the library has {len(library.texts):,} records, and the plan in the "
            f"label log {plan.records:,}"
        )


def _stop_in(
    run: RunFolder,
    document: Mapping[str, Any],
    copied: Sequence[LabelEntry],
    report: CertificateReport,
) -> ScreeningStopped | str | None:
    """Return the event of a certificate in the label logs of its run.

    Returns:
        The event; a sentence if the logs differ from the copies; None if there is none,
        such as with labels in another folder.
    """
    logs = LabelFolder(run.labels)
    logs.poll()
    now = {entry.id: entry for entry in logs.entries}
    if not now:
        report.notes.append(
            "its label logs are not in the run's folder and were not compared"
        )
        return None
    for entry in copied:
        if now.get(entry.id) != entry:
            return (
                f"the label logs in {run.labels} differ from the certificate at event "
                f"{entry.id}"
            )
    name = (document["run"], document.get("number"))
    stops = [
        entry.event
        for entry in now.values()
        if isinstance(entry.event, ScreeningStopped)
        and (entry.event.run, entry.event.number) == name
    ]
    report.later_events = len(now) - len(copied) - len(stops)
    if stops:
        return stops[0]
    report.notes.append("the label logs do not name it: its process ended before")
    return None


def _differences(then: object, now: object, path: str) -> Iterator[str]:
    """Yield the differences of two documents, each with its path."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*now, *(name for name in then if name not in now)]:
            at = f"{path}.{name}" if path else str(name)
            if name not in then:
                yield f"{at} is missing"
            elif name not in now:
                yield f"{at} is unknown"
            else:
                yield from _differences(then[name], now[name], at)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (a, b) in enumerate(zip(then, now, strict=True), 1):
            yield from _differences(a, b, f"{path}[{number}]")
    elif type(then) is not type(now) or then != now:
        yield f"{path} is {_short(then)}, and the events give {_short(now)}"


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 90 else f"{text[:90]}..."  # noqa: PLR2004 - a line


def _changed_files(
    folder: Path, document: Mapping[str, Any], fold: ScreeningFold
) -> Iterator[str]:
    """Yield pages and order that differ from those of the certificate."""
    for name, content in pages(document).items():
        if not (folder / name).is_file():
            yield f"{name} is missing"
        elif (folder / name).read_bytes() != content:
            yield f"{name} differs from the page of {NAME}"
    path = folder / ORDER
    if not path.is_file():
        yield f"{ORDER} is missing"
        return
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()[1:]
    order = [line.partition(",")[2] for line in lines]
    if (
        fold.plan is not None and order_hash(order) != fold.plan.event.order_sha256
    ) or encoded_order(order) != path.read_bytes():
        yield f"{ORDER} is not the ranked order of the plan"
