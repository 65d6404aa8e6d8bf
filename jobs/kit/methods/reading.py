"""Opens a run or a bundle and recomputes what its methods text says."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from jobs.kit.methods.check import Earlier
from jobs.kit.methods.facts import SCORECARD_DIGEST, references
from jobs.kit.methods.manuscript import Source
from jobs.kit.methods.record import RunRecord, read_record, scoring_numbered
from jobs.kit.methods.references import QuotedValues, Rounding, encoded
from jobs.kit.methods.text import Choice
from jobs.kit.report.headline import main_paths
from runner.bundle.manifest import (
    LABELS,
    LOG,
    REBUILT,
    Manifest,
    RedactedManifest,
    scorecard_of,
)
from runner.bundle.verify import BundleReport, check
from runner.errors import RunnerError
from runner.fingerprint import code_hash
from runner.prompts import USUAL_PROFILE, written
from runner.registry import job_of
from runner.score.render import changes
from runner.score.repeat import Rescorer, ScoringBasis, rescorer
from store.database import open_reader
from store.errors import StoreError
from store.events import ScoringRecorded
from store.labels.fold import LabelSet
from store.labels.folder import read_labels
from store.read.tasks import parts
from store.runs import RunFolder
from store.tables import visible_seq
from store.time_travel import LogPrefix, moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsSource:
    """Data of the methods text of a run."""

    record: RunRecord
    choice: Choice
    seq: int  #: the log's last event
    templates: str = ""  #: prompts of the job with their placeholders, as TOML


def methods_source(
    folder: RunFolder, number: int | None, labels_dir: Path | None
) -> MethodsSource:
    """Read a run, and replay a scoring of it.

    Args:
        folder: the run's folder.
        number: number of the scoring; None: the newest, or none if there is none.
        labels_dir: folder of labels; None: those of the run.

    Raises:
        UsageError: there is no such scoring.
        RunnerError: the replay gives other numbers than the scoring.
    """
    labels = read_labels(labels_dir or folder.labels)
    with open_reader(folder.log) as reader:
        if number is None and scoring_numbered(reader, None) is None:
            record = read_record(reader, None, b"", labels)
            job = job_of(record.started)
            choice = Choice(step=job.review_step)
            return MethodsSource(record=record, choice=choice, seq=visible_seq(reader))
    with rescorer(folder) as run:
        recorded = run.recorded(number)
        scoring = run.repeated(recorded)
        if scoring.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be repeated: the "
                "code or the inputs have changed since, and a replay gives other "
                f"numbers; siftlog score {folder.run_id} makes a new scoring."
            )
        card = scoring.scorecard
        choice = Choice(
            step=run.job.review_step,
            metrics=tuple(main_paths(card)),
            changed=_changed(run, recorded, tuple(card.settings)),
        )
        record = read_record(run.reader, recorded, scoring.content, labels)
        return MethodsSource(
            record=record,
            choice=choice,
            seq=visible_seq(run.reader),
            templates=_templates(run, recorded),
        )


def _changed(
    run: Rescorer, recorded: ScoringRecorded, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the settings of a scoring that differ from the default."""
    settings = run.placed(ScoringBasis.of(run.job, recorded))
    return tuple(changes(run.job, settings, names))


def _templates(run: Rescorer, recorded: ScoringRecorded) -> str:
    """Return the prompts of a run, unless the job's code has changed since."""
    catalog = run.job.prompts
    if catalog is None or code_hash(run.job) != run.started.code_sha256:
        return ""
    settings = run.placed(ScoringBasis.of(run.job, recorded))
    file = getattr(settings, "prompts", None)
    profile = getattr(settings, "profile", USUAL_PROFILE)
    return written(catalog, catalog.book(file, profile))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBasis:
    """Data that a manuscript is compared with."""

    run: str
    scoring: int | None
    known: QuotedValues
    metric_words: frozenset[str]  #: names of metrics for readers, and the ends of paths
    earlier: Earlier
    notes: tuple[str, ...] = ()
    redacted: Container[str] = frozenset()
    """Names of values that cannot be checked, because a bundle hides their texts."""


def basis_of_run(
    folder: RunFolder,
    number: int | None,
    labels_dir: Path | None,
    use: Callable[[CheckBasis], None],
) -> None:
    """Replay a run and call *use* with its values.

    Args:
        folder: the run's folder.
        number: number of the scoring; None: the newest, or none if there is none.
        labels_dir: folder of labels; None: those of the run.
        use: compares manuscripts.

    Raises:
        UsageError: there is no such scoring.
    """
    labels = read_labels(labels_dir or folder.labels)
    with open_reader(folder.log) as reader:
        if number is None and scoring_numbered(reader, None) is None:
            use(_basis(reader, folder.log, None, b"", labels))
            return
    with rescorer(folder) as run:
        recorded = run.recorded(number)
        scoring = run.repeated(recorded)
        notes: tuple[str, ...] = ()
        if scoring.digest != recorded.digest:
            sentence = (
                f"scoring {recorded.number} of {folder.run_id}, repeated, gives other "
                "numbers than it did, as the code or the inputs have changed since; "
                "values are compared with these numbers"
            )
            notes = (sentence,)
        basis = _basis(run.reader, folder.log, recorded, scoring.content, labels)
        use(replace(basis, notes=notes))


def basis_of_bundle(
    path: Path,
    use: Callable[[CheckBasis], None],
    progress: Callable[[str], None],
    is_late: Callable[[], bool],
) -> BundleReport:
    """Verify a bundle and call *use* with its values; not if the bundle has faults."""

    def read(folder: Path, manifest: Manifest) -> None:
        log, card = folder / LOG, folder / REBUILT
        notes: tuple[str, ...] = ()
        if not card.is_file():  # of a redacted bundle
            card = folder / scorecard_of(manifest.scoring)
            sentence = (
                f"{path.name} is redacted, and its metrics were not all computed "
                "again; values are compared with its scorecard"
            )
            notes = (sentence,)
        with open_reader(log) as reader:
            recorded = scoring_numbered(reader, manifest.scoring)
            labels = read_labels(folder / LABELS)
            basis = _basis(reader, log, recorded, card.read_bytes(), labels)
            if isinstance(manifest, RedactedManifest):
                basis = replace(basis, redacted=_HiddenNames(basis.known, manifest))
            use(replace(basis, notes=notes))

    return check(path, progress, is_late=is_late, use=read)


_TOKEN = re.compile(r"~[0-9a-f]{64}")
_TOKEN_IN_NAME = re.compile(encoded("~") + r"[0-9a-f]{64}")


class _HiddenNames(Container[str]):
    """Names of values that a redacted bundle hides.

    Of a model whose name is hidden, a manuscript names the values by that name, and the
    bundle by a token in its place.
    """

    def __init__(self, known: QuotedValues, manifest: RedactedManifest) -> None:
        self._known = known
        self._of_texts = frozenset(_names_of_texts(known, manifest))
        self._around_tokens = {
            (name[: token.start()], name[token.end() :])
            for name in known
            if (token := _TOKEN_IN_NAME.search(name))
        }

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name in self._known:
            return name in self._of_texts
        return any(
            name.startswith(before) and name.endswith(after)
            for before, after in self._around_tokens
        )


def _names_of_texts(known: QuotedValues, manifest: RedactedManifest) -> Iterator[str]:
    for name, quoted in known.items():
        # a hash of what has a token
        is_hash = quoted.rounding is Rounding.HASH and (
            name.startswith("prompt:") or (name == SCORECARD_DIGEST and manifest.hidden)
        )
        if is_hash or _TOKEN.match(str(quoted.value)):
            yield name


def _basis(
    reader: sqlite3.Connection,
    log: Path,
    recorded: ScoringRecorded | None,
    scorecard: bytes,
    labels: LabelSet,
) -> CheckBasis:
    record = read_record(reader, recorded, scorecard, labels)
    return CheckBasis(
        run=record.started.run_id,
        scoring=None if recorded is None else recorded.number,
        known=references(record),
        metric_words=_metric_words(record),
        earlier=cache(partial(_earlier, reader, log)),
    )


def _metric_words(record: RunRecord) -> frozenset[str]:
    return frozenset(
        word
        for scored in record.scorecard.get("models", {}).values()
        for path, metric in scored["metrics"].items()
        for word in (metric["name"], path, path.rpartition(".")[2])
    )


def _earlier(
    reader: sqlite3.Connection, log: Path, source: Source
) -> QuotedValues | None:
    """Return what a run's values were when a text was written; None: unknown.

    The scorecard of that time is the recorded one: it only explains a difference.
    """
    recorded = scoring_numbered(reader, source.scoring) if source.scoring else None
    key = b"" if recorded is None else bytes.fromhex(recorded.digest)
    card = parts(reader, [key]).get(key, b"") if key else b""
    try:
        with ExitStack() as opened:
            before = reader
            if source.seq < visible_seq(reader):
                prefix = opened.enter_context(LogPrefix(log))
                prefix.move_to(moment_of(reader, source.seq))
                before = opened.enter_context(prefix.open_reader())
            return references(read_record(before, recorded, card))
    except StoreError:
        return None  # it is a union, whose beginning cannot be read, or made up
