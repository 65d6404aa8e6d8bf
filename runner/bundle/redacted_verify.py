"""Checks what a redacted bundle holds beside its log: numbers, and no texts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from runner.bundle.certified import STATED, StatedCertificate, certified_folders
from runner.bundle.commitments import HASH_BYTES
from runner.bundle.frame import FRAME, frame_commitments
from runner.bundle.manifest import (
    LABELS,
    LOG,
    REBUILT,
    RedactedManifest,
    member_of,
    scorecard_of,
)
from runner.bundle.recorded import VALUES, VERDICTS, decoded_values, different
from runner.bundle.redaction import COMMITMENT
from runner.certificates import Stated
from store.database import LogReader, open_reader
from store.labels.folder import label_logs
from store.read.status import scorings
from store.redacted_log import stored_events
from store.runs import CERTIFICATES
from store.verify import LogFault


@dataclass(slots=True, kw_only=True)
class RedactionReport:
    """What a check of a redacted bundle could recompute."""

    commitments: int = 0  #: different ones, in the whole bundle
    verdicts: int = 0
    metrics: int = 0  #: in the scorecard
    recomputed: int = 0  #: of them, that came out the same
    unavailable: str = ""
    """Why they could not be computed from the frame, such as a job that is not
    installed."""
    certificates: dict[str, Stated] = field(default_factory=dict)
    """What certificates of screening state, by folder; computed again with the
    metrics."""
    by_frame: bool = False  #: computed from a frame, and not from values of items


class _Verdict(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A line of `verdicts.jsonl`."""

    task: int
    answer: int | str | None
    expected: int | str | None
    correct: bool | None
    confidence: float | None
    is_grounded: bool | None
    is_unparsed: bool


_BUCKETS: Final = 256
"""Of 60 million commitments, those of ten million tasks, one then holds 21 MB."""

_BUFFER: Final = 1 << 14
"""Bytes of a bucket in memory."""


class _DistinctHashes:
    """Counts different hashes with files in place of a set in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._buffers = [bytearray() for _ in range(_BUCKETS)]

    def update(self, hashes: Iterable[bytes]) -> None:
        """Add hashes in hex."""
        for text in hashes:
            value = bytes.fromhex(text.decode())
            buffer = self._buffers[value[0]]
            buffer += value
            if len(buffer) >= _BUFFER:
                with self._file(value[0]).open("ab") as file:
                    file.write(buffer)
                buffer.clear()

    def count(self) -> int:
        """Return the number of different hashes."""
        return sum(map(self._in_bucket, range(_BUCKETS)))

    def _in_bucket(self, bucket: int) -> int:
        file, content = self._file(bucket), bytes(self._buffers[bucket])
        if file.exists():
            content += file.read_bytes()
        return len(
            {content[at : at + HASH_BYTES] for at in range(0, len(content), HASH_BYTES)}
        )

    def _file(self, bucket: int) -> Path:
        return self._folder / f"{bucket:02x}"


_CHUNK: Final = 1 << 13
"""Task numbers of a chunk."""


class _TaskNumbers:
    """A set of task numbers, which takes a byte for each if they are dense."""

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}

    def add(self, task: int) -> None:
        chunk, at = divmod(task, _CHUNK)
        if chunk not in self._chunks:
            self._chunks[chunk] = bytearray(_CHUNK)
        self._chunks[chunk][at] = True

    def __contains__(self, task: int) -> bool:
        chunk, at = divmod(task, _CHUNK)
        return chunk in self._chunks and bool(self._chunks[chunk][at])


def has_frame(manifest: RedactedManifest) -> bool:
    """Whether a bundle has the frame that its metrics are computed from."""
    frame = member_of(manifest.scoring, FRAME)
    return any(member.name == frame for member in manifest.members)


def checked(
    folder: Path, manifest: RedactedManifest, report: RedactionReport
) -> Iterator[LogFault]:
    """Yield what is wrong with an unpacked bundle, whose log is sound.

    Args:
        folder: with all members, and the recomputed scorecard if there is one.
        manifest: of the bundle.
        report: of metrics that a frame gives; all else is filled in.
    """
    try:
        with TemporaryDirectory(dir=folder) as spilled:
            yield from _faults(folder, manifest, report, _DistinctHashes(Path(spilled)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield LogFault(
            what="scorecard",
            where=scorecard_of(manifest.scoring),
            message=f"is not written as siftlog writes it ({error!r})",
        )


def _faults(
    folder: Path,
    manifest: RedactedManifest,
    report: RedactionReport,
    seen: _DistinctHashes,
) -> Iterator[LogFault]:
    yield from _of_names(manifest)
    card_name = scorecard_of(manifest.scoring)
    content = (folder / card_name).read_bytes()
    again = content if report.unavailable or not report.by_frame else None
    if again is None:
        again = (folder / REBUILT).read_bytes()
    is_same = hashlib.sha256(again).hexdigest() == manifest.digest
    # the texts that a frame would fill in are not there
    if not is_same and not (report.unavailable and manifest.hidden):
        yield LogFault(
            what="scorecard",
            where=card_name,
            message=f"is not what scoring {manifest.scoring} recorded",
        )
        return
    scorecard = json.loads(content)
    report.metrics = sum(len(of["metrics"]) for of in scorecard["models"].values())
    yield from _of_values(folder, manifest, scorecard, report)
    seen.update(COMMITMENT.findall(content))
    if report.by_frame:
        frame = folder / member_of(manifest.scoring, FRAME)
        seen.update(frame_commitments(frame.read_bytes()))
    for path in certified_folders(folder):
        stated = (path / STATED).read_bytes()
        certificate = msgspec.json.decode(stated, type=StatedCertificate)
        report.certificates[f"{CERTIFICATES}/{path.name}"] = certificate.stated
        seen.update(COMMITMENT.findall(stated))
        seen.update(frame_commitments((path / FRAME).read_bytes()))
    with open_reader(folder / LOG) as reader:
        answered = _TaskNumbers()
        yield from _of_headline(reader, manifest, scorecard)
        yield from _of_log(reader, LOG, seen, answered)
    yield from _of_verdicts(folder, manifest, report, seen, answered)
    for path in label_logs(folder / LABELS):
        with open_reader(path) as reader:
            yield from _of_log(reader, f"{LABELS}/{path.name}", seen, _TaskNumbers())
    seen.update(map(str.encode, manifest.commitments.values()))
    report.commitments = seen.count()


_OTHER: Final = re.compile(
    rf"{LABELS}/.*|{CERTIFICATES}/\d+/({re.escape(FRAME)}|{re.escape(STATED)})"
)
"""Members of label logs and certificates."""


def _of_names(manifest: RedactedManifest) -> Iterator[LogFault]:
    """Check that there are no files besides those of a redacted bundle."""
    expected = {
        LOG,
        scorecard_of(manifest.scoring),
        member_of(manifest.scoring, VALUES),
        member_of(manifest.scoring, VERDICTS),
    }
    names = {member.name for member in manifest.members}
    frame = member_of(manifest.scoring, FRAME)
    for name in sorted(names ^ expected):
        if name in expected:
            yield LogFault(what="member", where=name, message="is missing")
        elif name != frame and not _OTHER.fullmatch(name):
            yield LogFault(
                what="member", where=name, message="does not belong in this bundle"
            )


def _of_values(
    folder: Path,
    manifest: RedactedManifest,
    scorecard: Mapping[str, Any],
    report: RedactionReport,
) -> Iterator[LogFault]:
    """Compute metrics again from the values of items."""
    name = member_of(manifest.scoring, VALUES)
    try:
        values = decoded_values((folder / name).read_bytes())
    except ValueError as error:
        yield LogFault(what="values", where=name, message=f"cannot be read ({error})")
        return
    if not report.by_frame:
        report.recomputed = len({(of.model, of.path) for of in values.metrics})
    for model, path in different(values, scorecard):
        yield LogFault(
            what="values",
            where=f"{name}, {path} of {model}",
            message="gives another number than the scorecard",
        )


def _of_headline(
    reader: LogReader, manifest: RedactedManifest, scorecard: Mapping[str, Any]
) -> Iterator[LogFault]:
    """Compare the headline that the log recorded with the scorecard."""
    recorded = {scoring.number: scoring for scoring in scorings(reader)}
    scoring = recorded[manifest.scoring]
    for model, value in scoring.reached.items():
        metrics = scorecard["models"].get(model, {}).get("metrics", {})
        if metrics.get(scoring.headline, {}).get("value") != value:
            yield LogFault(
                what="scorecard",
                where=f"{scoring.headline} of {model}",
                message=f"is not what scoring {manifest.scoring} recorded",
            )


def _of_verdicts(
    folder: Path,
    manifest: RedactedManifest,
    report: RedactionReport,
    seen: _DistinctHashes,
    answered: _TaskNumbers,
) -> Iterator[LogFault]:
    """Check that every verdict is about a task that was answered."""
    name = member_of(manifest.scoring, VERDICTS)
    with (folder / name).open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                verdict = msgspec.json.decode(line, type=_Verdict)
            except ValueError as error:
                yield LogFault(
                    what="verdicts",
                    where=f"{name}, line {number}",
                    message=f"cannot be read ({error})",
                )
                return
            if verdict.task not in answered:
                yield LogFault(
                    what="verdicts",
                    where=f"{name}, line {number}",
                    message=f"is about task {verdict.task}, which has no answer",
                )
            seen.update(COMMITMENT.findall(line))
            report.verdicts = number


def _of_log(
    reader: LogReader, name: str, seen: _DistinctHashes, answered: _TaskNumbers
) -> Iterator[LogFault]:
    """Check that a log holds commitments where texts were; note answered tasks."""
    for _, commit in stored_events(reader):
        for row, content in commit:
            if row.kind in {"attempt_answered", "attempt_failed"} and content.payload:
                fields = msgspec.json.decode(content.payload)
                if not isinstance(fields, dict) or fields.keys() != {"commitment"}:
                    yield LogFault(
                        what="event",
                        where=f"{name}, event {row.seq}",
                        message="holds a text, which a redacted bundle never does",
                    )
                    return
            if row.kind == "attempt_answered" and row.task is not None:
                answered.add(row.task)
            seen.update(COMMITMENT.findall(content.facts))
            seen.update(COMMITMENT.findall(content.payload or b""))
