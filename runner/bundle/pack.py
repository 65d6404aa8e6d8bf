"""Packs a scoring and all its inputs in one file: `siftlog bundle RUN`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED

from runner.bundle import archive
from runner.bundle.manifest import (
    CONFIG,
    FORMAT,
    LABELS,
    LOG,
    NAME,
    SCORECARD,
    SCORES,
    BundleMember,
    Manifest,
    encoded,
    environment,
    files,
    required,
)
from runner.bundle.verify import changed_settings, check
from runner.clients.client import Secret
from runner.errors import DatasetError, RunnerError, UsageError
from runner.fingerprint import input_hashes
from runner.messages import headers_of, variable_in
from runner.options import read_toml
from runner.registry import GROUP, job_of
from runner.reply_labels import scoring_inputs
from runner.run.folder import drafting
from runner.score.render import REPORT
from runner.score.repeat import chosen, redraw
from runner.workload import fitting
from store.database import copy_log, open_reader
from store.events import RunStarted, ScoringRecorded
from store.labels.folder import author_of, label_logs
from store.read.history import bodies
from store.read.status import run_started, scorings, status
from store.runs import RunFolder, certificates_in
from store.tables import head, last_seq


def input_members(started: RunStarted, recorded: ScoringRecorded) -> Mapping[str, Path]:
    """Return the files that the scoring read, by member, unchanged since.

    Raises:
        DatasetError: a file is missing or changed.
    """
    job = job_of(started)
    for recorded_input in recorded.inputs:
        if not Path(recorded_input.path).exists():
            raise DatasetError(
                f"{recorded_input.path} ({recorded_input.setting}), which "
                f"scoring {recorded.number} has read, is missing: restore "
                "it, or score the run without it."
            )
    settings = fitting(job, json.loads(recorded.settings))
    inputs = scoring_inputs(job, settings)
    by_member = files(settings, inputs)
    if changed := changed_settings(recorded.inputs, input_hashes(inputs)):
        paths = {
            recorded_input.setting: recorded_input.path
            for recorded_input in recorded.inputs
        }
        raise DatasetError(
            f"{paths.get(changed[0], changed[0])} ({changed[0]}) is not what scoring "
            f"{recorded.number} has read: put that one back, or make a new scoring "
            "with siftlog score and bundle it."
        )
    return by_member


def scoring_files(
    folder: RunFolder, recorded: ScoringRecorded, *, report: bool
) -> Mapping[str, Path]:
    """Return the files of a scoring, recreated if missing.

    Args:
        folder: the run's folder.
        recorded: the scoring.
        report: create its report too if missing.

    Raises:
        RunnerError: its scorecard was changed, or cannot be recreated.
    """
    score_folder = folder.scores / str(recorded.number)
    if not score_folder.exists() or (report and not (score_folder / REPORT).exists()):
        redraw(folder, recorded)
    card = score_folder / SCORECARD
    content = card.read_bytes() if card.is_file() else b""
    if hashlib.sha256(content).hexdigest() != recorded.digest:
        raise RunnerError(
            f"{card} differs from what scoring {recorded.number} wrote: "
            "remove its folder to recreate it."
        )
    return {
        f"{SCORES}/{recorded.number}/{file.relative_to(score_folder).as_posix()}": file
        for file in score_folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def label_logs_of(folder: RunFolder, shared: Path | None) -> Mapping[str, Path]:
    """Return the label logs of a run, by member.

    Args:
        folder: the run's folder.
        shared: folder of further label logs, which several runs share; None: none.

    Raises:
        UsageError: *shared* has no label log.
        StoreError: a label log cannot be read.
    """
    logs = [*label_logs(folder.labels)]
    if shared is not None:
        further = label_logs(shared)
        if not further:
            raise UsageError(
                f"{shared} has no label log: name another --labels (SIFTLOG_LABELS)."
            )
        logs += further if shared.resolve() != folder.labels.resolve() else ()
    members: dict[str, Path] = {}
    for log in logs:
        if author_of(log) is None:
            continue  # its writer died, or is about to record its first event
        member, number = f"{LABELS}/{log.name}", 1
        while member in members:  # an author may have a log in both folders
            number += 1
            member = f"{LABELS}/{log.stem}-{number}.db"
        members[member] = log
    return members


def copied_labels(
    folder: RunFolder,
    shared: Path | None,
    drafts: Path,
    progress: Callable[[str], None],
) -> Mapping[str, Path]:
    """Return copies of the label logs of a run, by member.

    Raises:
        UsageError: *shared* has no label log.
        StoreError: a label log cannot be read or copied.
    """
    copies = {}
    for member, log in label_logs_of(folder, shared).items():
        target = drafts / member
        target.parent.mkdir(exist_ok=True)
        copy_log(log, target, progress)
        copies[member] = target
    return copies


def certificate_files(folder: RunFolder) -> Mapping[str, Path]:
    """Return the files of the run's certificates, by member."""
    return {
        file.relative_to(folder.path).as_posix(): file
        for certificate in certificates_in(folder.path)
        for file in certificate.parent.rglob("*")
        if file.is_file() and not file.is_symlink() and not file.name.startswith(".")
    }


def measured(
    sources: Mapping[str, Path], progress: Callable[[str], None]
) -> tuple[BundleMember, ...]:
    """Return size and hash of each file, by name.

    Raises:
        RunnerError: a file's name is not allowed in a bundle.
    """
    members = []
    for name in sorted(sources):
        if wrong := archive.problem(name):
            raise RunnerError(
                f"The file {name!r} of a bundle {wrong}: rename it, and "
                "score the run again."
            )
        digest, size = hashlib.sha256(), 0
        with sources[name].open("rb") as file:
            for piece in archive.pieces(file):
                digest.update(piece)
                size += len(piece)
                progress(f"{size / 1e6:,.0f} MB of {name} measured")
        members.append(BundleMember(name=name, size=size, sha256=digest.hexdigest()))
    return tuple(members)


_OVERLAP = 1 << 14
"""Bytes of a chunk that are checked again with the next one: no key is longer."""


def keys(environment: Mapping[str, str], config: Path) -> dict[str, Secret]:
    """Return this machine's keys by variable: `*_API_KEY`, and those of the run."""
    names = {name for name in environment if name.endswith("_API_KEY")}
    if config.exists():
        names.update(_variables(read_toml(config)))
    return dict(_set(sorted(names), environment))


def _variables(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _variables(value)
        elif name == "api_key_env":
            yield str(value)
        elif name == "extra_headers":
            references = (variable_in(header) for _, header in headers_of(str(value)))
            yield from (variable for _, variable in filter(None, references))


def _set(
    names: Iterable[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, Secret]]:
    for name in names:
        try:
            yield name, Secret(environment.get(name, ""))
        except UsageError:
            continue  # never sent to an endpoint


def without_keys(
    member: str, pieces: Iterable[bytes], keys: Mapping[str, Secret]
) -> Iterator[bytes]:
    """Yield the chunks of a file unchanged.

    Raises:
        RunnerError: they contain one of the keys.
    """
    before = b""
    for piece in pieces:
        window = before + piece
        for variable, secret in keys.items():
            if secret.is_in(window):
                raise RunnerError(
                    f"{member} holds the key that {variable} has here: take it "
                    "out, or replace the key where it was issued, before you "
                    "share the bundle."
                )
        before = window[-_OVERLAP:]
        yield piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A created bundle."""

    path: Path
    manifest: Manifest
    size: int  #: bytes
    sha256: str  #: of the file


def make_bundle(
    folder: RunFolder,
    number: int | None,
    out: Path | None,
    *,
    report: bool,
    labels: Path | None = None,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
) -> Bundle:
    """Pack a scoring, with everything needed to recompute it, into one file.

    Nothing is appended to the run. If the run is live, the bundle has its events so
    far.

    Args:
        folder: the run's folder.
        number: number of the scoring; None: the newest.
        out: the file, replaced if it exists; None: in the run's exports.
        report: create the scoring's report first if missing.
        labels: folder of label logs that several runs share; None: the run's alone.
        environ: variables with keys, which a bundle must not contain.
        progress: receives one-line progress messages.

    Raises:
        UsageError: there is no such scoring, or *out* is not a plain file.
        DatasetError: an input is missing or was changed since the scoring.
        RunnerError: a file contains a key, or the scorecard cannot be recomputed.
        StoreError: the log cannot be read or copied.
    """
    with open_reader(folder.log) as reader:
        scored = scorings(reader)
        if not scored and folder.is_alive():
            raise UsageError(
                f"Run {folder.run_id} is still running and has no scoring "
                "yet: bundle it when it has ended."
            )
        recorded = chosen(folder.run_id, scored, number, is_alive=folder.is_alive())
        first = run_started(reader)
    by_member = {
        **input_members(first, recorded),
        **scoring_files(folder, recorded, report=report),
        **certificate_files(folder),
    }
    if folder.config.is_file():
        by_member[CONFIG] = folder.config
    target = out or folder.exports / f"{folder.run_id}.{recorded.number}.siftlog.zip"
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is not a plain file: name another --out.")
    try:
        with drafting(target) as drafts:
            log = drafts / LOG
            copy_log(folder.log, log, progress)
            label_copies = copied_labels(folder, labels, drafts, progress)
            members = {**by_member, **label_copies, LOG: log}
            manifest = Manifest(
                format=FORMAT,
                **manifest_fields(
                    log,
                    recorded.number,
                    recorded.digest,
                    measured(members, progress),
                ),
            )
            secrets = keys(environ, folder.config)
            _refuse_keys(log, secrets, progress)
            draft = drafts / "draft"
            sha256 = packed(draft, manifest, members, secrets, progress)
            for copied in (log, *label_copies.values()):
                copied.unlink()  # free its disk space for the check
            prove(draft, folder.run_id, progress)
            draft.replace(target)
    except OSError as error:
        raise RunnerError(
            f"{error.filename or target} cannot be bundled or written ("
            f"{error.strerror}): check the free space, or name another "
            "--out."
        ) from error
    return Bundle(
        path=target, manifest=manifest, size=target.stat().st_size, sha256=sha256
    )


def manifest_fields(
    log: Path, scoring: int, digest: str, members: tuple[BundleMember, ...]
) -> dict[str, Any]:
    """Return the fields of a manifest except the format.

    Args:
        log: as it is bundled.
        scoring: its number.
        digest: SHA-256 of its scorecard, in hex.
        members: all except the manifest.
    """
    with open_reader(log) as reader:
        first, state = run_started(reader), status(reader)
        return {
            "run": first.run_id,
            "job": first.job,
            "scoring": scoring,
            "digest": digest,
            "partial": state.tasks.open > 0 or not state.planning_exhausted,
            "events": last_seq(reader),
            "head": head(reader),
            "environment": environment(required(*_packages(first.job))),
            "members": members,
        }


def _refuse_keys(
    log: Path, secrets: Mapping[str, Secret], progress: Callable[[str], None]
) -> None:
    """Search compressed payloads of the log for keys.

    Raises:
        RunnerError: one contains a key.
    """
    if not secrets:
        return
    with open_reader(log) as reader:
        for location, body in bodies(reader):
            progress(f"{location} is searched for keys")
            for _ in without_keys(f"{LOG}, {location},", (body,), secrets):
                pass


def _packages(job: str) -> list[str]:
    """Return the distributions of this program and of the job."""
    dists = (point.dist for point in entry_points(group=GROUP, name=job))
    return ["siftlog", *(dist.name for dist in dists if dist is not None)]


class _Guarded:
    """Checks files for keys and counts them while they are packed."""

    def __init__(
        self, keys: Mapping[str, Secret], progress: Callable[[str], None]
    ) -> None:
        self._keys = keys
        self._progress = progress
        self._packed_bytes = 0

    def pieces(
        self, member: BundleMember, source: Path, total_bytes: int
    ) -> Iterator[bytes]:
        """Yield a file in chunks.

        Raises:
            RunnerError: it contains a key, or has just changed.
        """
        digest = hashlib.sha256()
        with source.open("rb") as file:
            for piece in without_keys(member.name, archive.pieces(file), self._keys):
                digest.update(piece)
                yield piece
                self._packed_bytes += len(piece)
                self._progress(
                    f"{self._packed_bytes / 1e6:,.0f} of "
                    f"{total_bytes / 1e6:,.0f} MB packed"
                )
        if digest.hexdigest() != member.sha256:
            raise RunnerError(
                f"{source} changed while it was bundled: try again when "
                "nothing writes to it."
            )


def packed(
    draft: Path,
    manifest: Manifest,
    files: Mapping[str, Path],
    keys: Mapping[str, Secret],
    progress: Callable[[str], None],
) -> str:
    """Write the archive; return its SHA-256.

    Raises:
        RunnerError: a file contains one of the keys, or has just changed.
    """
    guarded = _Guarded(keys, progress)
    head = encoded(manifest)
    total_bytes = sum(member.size for member in manifest.members)

    def members() -> Iterator[tuple[str, int, Iterator[bytes]]]:
        yield NAME, len(head), iter((head,))
        for member in manifest.members:
            source = files[member.name]
            yield member.name, member.size, guarded.pieces(member, source, total_bytes)

    sha256 = archive.write(draft, members(), method=ZIP_DEFLATED)
    if total_bytes > archive.RATIO * draft.stat().st_size:
        # otherwise it would look like a zip bomb
        sha256 = archive.write(draft, members(), method=ZIP_STORED)
    return sha256


def prove(
    draft: Path, run_id: str, progress: Callable[[str], None], job: str = ""
) -> None:
    """Refuse to publish a bundle that fails verification.

    Args:
        draft: the bundle.
        run_id: of the run.
        progress: receives one-line progress messages.
        job: the Python file of the job; "": the one that the log names.

    Raises:
        RunnerError: the check finds a fault.
    """
    report = check(draft, progress, within=draft.parent, job=job)
    for fault in report.faults:
        raise RunnerError(
            f"Run {run_id} cannot be bundled, for its bundle could not be verified: "
            f"{fault.where}: {fault.message}; siftlog verify {run_id} checks the log, "
            f"and siftlog score {run_id} makes a scoring that today's code gives."
        )
