"""Packs a scoring without its texts: `siftlog bundle RUN --redact`.

Everything is read three times by the same code: for the texts that would stay, for
pieces that these share with the texts that would not, and to write the bundle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from runner.bundle import archive
from runner.bundle.certified import CertificateContent, certificate_contents
from runner.bundle.commitments import Commitments, RedactionSecret, SaltedCommitter
from runner.bundle.frame import FRAME, encoded_frame
from runner.bundle.manifest import (
    LABELS,
    LOG,
    REDACTED_FORMAT,
    RedactedManifest,
    files,
    member_of,
    scorecard_of,
)
from runner.bundle.pack import (
    Bundle,
    copied_labels,
    keys,
    manifest_fields,
    measured,
    packed,
    prove,
)
from runner.bundle.pieces import PIECE, PieceIndex, texts_in
from runner.bundle.recomputed import (
    encoded_scorecard,
    metrics_of_frame,
    recomputed_scorecard,
)
from runner.bundle.recorded import (
    VALUES,
    VERDICTS,
    values_of,
    verdict_lines,
)
from runner.bundle.redaction import Redactor
from runner.errors import RunnerError, UsageError
from runner.job import JOB_FILE, Job
from runner.reply_labels import scoring_inputs
from runner.run.folder import drafting
from runner.score.repeat import Rescorer, ScoringBasis, rescorer
from runner.scorecard import Scorecard, Verdict
from store.database import LogReader, copy_log, open_reader
from store.events import RunStarted, ScoringRecorded
from store.read.status import run_started
from store.read.tasks import parts
from store.redacted_log import stored_events, write_redacted_log
from store.runs import RunFolder
from store.tables import head


def context_of(log_head: str, recorded: ScoringRecorded) -> bytes:
    """Return the hash of what is bundled, on which all salts depend.

    Args:
        log_head: last hash of the original log's chain, in hex.
        recorded: the scoring.
    """
    text = (
        f"siftlog redacted bundle 1\0{log_head}\0{recorded.number}\0{recorded.digest}"
    )
    return hashlib.sha256(text.encode()).digest()


def part_texts(reader: LogReader) -> Callable[[bytes], bytes]:
    """Return a function that reads the parts of requests in a log by their hashes."""

    def text(sha256: bytes) -> bytes:
        return parts(reader, [sha256]).get(sha256, b"")

    return text


def make_redacted_bundle(
    folder: RunFolder,
    number: int | None,
    out: Path | None,
    secret_file: Path | None,
    *,
    labels: Path | None = None,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
) -> tuple[Bundle, Path]:
    """Pack a scoring with commitments in place of texts; return it and its secret.

    Args:
        folder: the run's folder.
        number: number of the scoring; None: the newest.
        out: the file, replaced if it exists; None: in the run's exports.
        secret_file: of the author's secret, made if it does not exist; None: next to
            the bundle.
        labels: folder of label logs that several runs share; None: the run's alone.
        environ: variables with keys, which a bundle must not contain.
        progress: receives one-line progress messages.

    Raises:
        UsageError: there is no such scoring, or a file is no plain file or secret.
        DatasetError: an input is missing or was changed since the scoring.
        RunnerError: the scorecard cannot be recomputed, or the bundle not verified.
        StoreError: the log cannot be read or copied.
    """
    with rescorer(folder) as run:
        recorded = run.recorded(number)
        name = f"{folder.run_id}.{recorded.number}.redacted"
        target = out or folder.exports / f"{name}.siftlog.zip"
        if target.exists() and not target.is_file():
            raise UsageError(f"{target} is not a plain file: name another --out.")
        stem = target.name.removesuffix(".zip").removesuffix(".siftlog")
        secret_path = secret_file or target.with_name(f"{stem}.secret.json")
        try:
            with drafting(target) as drafts:
                secret = RedactionSecret.at(secret_path, folder.run_id, recorded.number)
                manifest, members = _written(
                    run, recorded, secret, drafts, shared=labels, progress=progress
                )
                draft = drafts / "draft"
                secrets = keys(environ, folder.config)
                sha256 = packed(draft, manifest, members, secrets, progress)
                prove(draft, folder.run_id, progress, job_file(run.started))
                draft.replace(target)
        except OSError as error:
            raise RunnerError(
                f"{error.filename or target} cannot be bundled or written ("
                f"{error.strerror}): check the free space, or name another --out."
            ) from error
    size = target.stat().st_size
    return Bundle(path=target, manifest=manifest, size=size, sha256=sha256), secret_path


def _written(
    run: Rescorer,
    recorded: ScoringRecorded,
    secret: RedactionSecret,
    drafts: Path,
    *,
    shared: Path | None,
    progress: Callable[[str], None],
) -> tuple[RedactedManifest, dict[str, Path]]:
    """Write all members into a folder; return the manifest too."""
    source = drafts / "source.db"
    copy_log(run.folder.log, source, progress)
    labels = [*copied_labels(run.folder, shared, drafts, progress).values()]
    with open_reader(source) as reader:
        content = _Content.of(run, recorded, reader, labels, drafts)
        commit = SaltedCommitter(secret, context_of(head(reader), recorded))
        hidden = _hidden(run, recorded, content, progress)
        redactor = content.redactor(commit, hidden)
        members, digest, commitments = content.write(redactor, commit, drafts, progress)
    manifest = RedactedManifest(
        format=REDACTED_FORMAT,
        **manifest_fields(
            members[LOG],
            recorded.number,
            digest,
            measured(members, progress),
        ),
        commitments=commitments,
        hidden=len(hidden),
    )
    return manifest, members


class _Blank:
    """Stands in for a `SaltedCommitter` while texts are looked at."""

    def __init__(self, see: Callable[[bytes], None] = lambda _: None) -> None:
        self._see = see
        self.at = ""

    def place(self, place: str, value: bytes) -> bytes:
        del place
        self._see(value)
        return bytes(32)

    def shared(self, sort: str, value: bytes) -> bytes:
        return self.place(sort, value)


def _hidden(
    run: Rescorer,
    recorded: ScoringRecorded,
    content: _Content,
    progress: Callable[[str], None],
) -> frozenset[str]:
    """Return the texts that cannot stay: they share a piece with one that does not."""
    survey = content.redactor(_Blank())
    content.walk(survey, progress, reads_parts=False)
    index = PieceIndex(survey.visible)

    def see(value: bytes) -> None:
        for text in texts_in(value):
            index.scan(text)

    content.walk(content.redactor(_Blank(see)), progress)
    settings = run.placed(ScoringBasis.of(run.job, recorded))
    for path in files(settings, scoring_inputs(run.job, settings)).values():
        see(path.name.encode())
        for text in _texts_of_file(path):
            see(text)
        progress(f"{path.name} is searched for texts that stay")
    return frozenset(index.shared)


def _texts_of_file(path: Path) -> Iterator[bytes]:
    """Yield JSON whole, for its names are no texts, and other files in chunks."""
    with path.open("rb") as file:
        match path.suffix:
            case ".json":
                yield file.read()
            case ".jsonl":
                yield from file
            case _:
                before = b""
                for piece in archive.pieces(file):
                    yield before[-PIECE:] + piece
                    before = piece


def job_file(started: RunStarted) -> str:
    """Return the Python file of a run's job as `FILE.py:NAME`; "": it is installed."""
    files = (one.path for one in started.inputs if one.setting == JOB_FILE)
    return next((f"{path}:{started.job}" for path in files), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What a redacted bundle is made of, before anything is redacted."""

    reader: LogReader
    labels: Sequence[Path]  #: copies of the label logs
    number: int  #: of the scoring
    scorecard: bytes
    job: Job
    card: Scorecard
    frame: Any  #: that metrics are computed from; None: the job has none
    certificates: Mapping[str, CertificateContent]  #: by folder
    verdicts: Path  #: JSON lines, which are read again and again
    choices: frozenset[str]

    @classmethod
    def of(
        cls,
        run: Rescorer,
        recorded: ScoringRecorded,
        reader: LogReader,
        labels: Sequence[Path],
        drafts: Path,
    ) -> _Content:
        """Score the run again.

        Raises:
            RunnerError: the scorecard came out differently.
        """
        scoring = run.repeated(recorded)
        if scoring.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {run.folder.run_id} cannot be bundled: "
                "the code has changed since, and a replay gives other numbers; siftlog "
                f"score {run.folder.run_id} makes a scoring that today's code gives."
            )
        card = scoring.scorecard
        verdicts = drafts / "verdicts.plain"
        with verdicts.open("wb") as file:
            for detail in card.details:
                if isinstance(detail, Verdict):
                    file.write(msgspec.json.encode(detail) + b"\n")
        return cls(
            reader=reader,
            labels=labels,
            number=recorded.number,
            scorecard=scoring.content,
            job=run.job,
            card=card,
            frame=None if card.frame is None else card.frame(),
            certificates=certificate_contents(run.folder),
            verdicts=verdicts,
            choices=choices_of(run, card, scoring.dataset),
        )

    def redactor(
        self,
        commit: Commitments,
        hidden: frozenset[str] = frozenset(),
    ) -> Redactor:
        """Return a redactor of the run's log."""
        return Redactor(
            commit=commit,
            part=part_texts(self.reader),
            choices=self.choices,
            hidden=hidden,
        )

    def walk(
        self,
        redactor: Redactor,
        progress: Callable[[str], None],
        *,
        reads_parts: bool = True,
    ) -> None:
        """Redact everything and forget the result.

        Args:
            redactor: of the texts.
            progress: receives lines.
            reads_parts: whether the texts of requests are read, none of which stays.
        """
        for _, log in self._logs(redactor):
            with open_reader(log) as reader:
                if reads_parts:
                    redactor.part = part_texts(reader)
                else:
                    redactor.part = lambda _: b""
                for seq, commit in stored_events(reader):
                    for row, content in commit:
                        redactor.event(row, content)
                    progress(f"{seq:,} events searched for texts")
        redactor.log = ""
        redacted_scorecard(self.scorecard, redactor)
        self._recorded(redactor)
        for _ in self._verdict_lines(redactor):
            pass

    def write(
        self,
        redactor: Redactor,
        commit: SaltedCommitter,
        drafts: Path,
        progress: Callable[[str], None],
    ) -> tuple[dict[str, Path], str, dict[str, str]]:
        """Write the members.

        Returns:
            The members by name, the digest of the scorecard, and the commitments to the
            whole.
        """
        commit.at = "bundle"
        commitments = {
            "log": commit.place("bundle/log", head(self.reader).encode()).hex(),
            "scorecard": commit.place("bundle/scorecard", self.scorecard).hex(),
        }
        scorecard = redacted_scorecard(self.scorecard, redactor)
        scores = {scorecard_of(self.number): scorecard, **self._recorded(redactor)}
        digest = self._digest(scorecard, scores.get(member_of(self.number, FRAME)))
        redactor.digests = {hashlib.sha256(self.scorecard).hexdigest(): digest}
        members = {}
        for name, content in scores.items():
            members[name] = drafts / name.replace("/", "-")
            members[name].write_bytes(content)
        verdicts = members[member_of(self.number, VERDICTS)] = drafts / VERDICTS
        with verdicts.open("wb") as file:
            for line in self._verdict_lines(redactor):
                file.write(line + b"\n")
        for name, log in self._logs(redactor):
            members[name] = drafts / f"redacted.{len(members)}.db"
            with open_reader(log) as reader:
                # the id of a label log is the name of its author
                run_id = "" if redactor.log else run_started(reader).run_id
                redactor.part = part_texts(reader)
                write_redacted_log(
                    reader,
                    members[name],
                    run_id=run_id or name.removesuffix(".db"),
                    redact=redactor.event,
                    progress=progress,
                )
        return members, digest, commitments

    def _recorded(self, redactor: Redactor) -> dict[str, bytes]:
        """What metrics are computed from: a frame, or else values of items."""
        of_items = Scorecard(models={}, summary="")
        files = {}
        if self.frame is None:
            of_items = self.card
        else:
            files[member_of(self.number, FRAME)] = encoded_frame(
                self.frame, redactor, self.card.settings
            )
        values = values_of(of_items, redactor, self.choices)
        files[member_of(self.number, VALUES)] = msgspec.json.encode(values)
        for name, certificate in self.certificates.items():
            files |= certificate.redacted(name, redactor)
        return files

    def _digest(self, scorecard: bytes, frame: bytes | None) -> str:
        """The hash of what a reader gets from the redacted scorecard and the frame.

        Raises:
            RunnerError: the frame does not give the metrics.
        """
        if frame is not None:
            metrics = metrics_of_frame(self.job, frame)
            recomputed = recomputed_scorecard(json.loads(scorecard), metrics)
            if recomputed.different:
                model, path = recomputed.different[0]
                raise RunnerError(
                    f"The evaluation of job {self.job.name} gives another {path} of "
                    f"{model} from its frame than its scoring does; fix the job."
                )
            scorecard = recomputed.content
        return hashlib.sha256(scorecard).hexdigest()

    def _logs(self, redactor: Redactor) -> Iterator[tuple[str, Path]]:
        """Yield member and path of each log; the redactor's places are of it."""
        redactor.log = ""
        yield LOG, self.reader.path
        for number, log in enumerate(self.labels, 1):
            name = f"{LABELS}/{number}.db"
            redactor.log = f"{name}/"
            yield name, log

    def _verdict_lines(self, redactor: Redactor) -> Iterator[bytes]:
        with self.verdicts.open("rb") as file:
            verdicts = map(partial(msgspec.json.decode, type=Verdict), file)
            yield from verdict_lines(verdicts, redactor, self.choices)


def choices_of(run: Rescorer, card: Scorecard, dataset: Any) -> frozenset[str]:  # noqa: ANN401 - of any job
    """Return the answers that the job declares as choices, not as texts."""
    names: set[str] = set()
    for labels in card.labelled.values():
        names.update(labels().categories)
    if run.job.labelling is not None:
        for field in run.job.labelling.fields(dataset):
            names.update(choice.value for choice in field.choices)
    return frozenset(names)


def redacted_scorecard(content: bytes, redactor: Redactor) -> bytes:
    """Return a scorecard as it was, but for the texts that cannot stay."""
    redactor.commit.at = "scorecard"
    scorecard = json.loads(content)
    redacted = _visible(scorecard, redactor)
    if redacted == scorecard:
        return content
    return encoded_scorecard(redacted)


def _visible(value: Any, redactor: Redactor) -> Any:  # noqa: ANN401 - JSON
    match value:
        case dict():
            return {
                redactor.clear(name): _visible(item, redactor)
                for name, item in value.items()
            }
        case list():
            return [_visible(item, redactor) for item in value]
        case str():
            return redactor.clear(value)
        case _:
            return value
