"""Opens chosen values of a redacted bundle, and checks what others have opened.

The author has the run and the secret; whoever checks has the redacted bundle alone. An
opening proves that a value is the one that was committed to when the bundle was made,
at that event, verdict or part of the bundle. It does not prove that the author told the
truth then (`design/redacted-bundles.md`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Final

import msgspec

from runner.bundle.certified import STATED
from runner.bundle.commitments import Opening, RedactionSecret, SaltedCommitter
from runner.bundle.manifest import (
    LABELS,
    LOG,
    SCORECARD,
    Manifest,
    RedactedManifest,
    member_of,
)
from runner.bundle.recorded import VALUES, VERDICTS, verdict_lines
from runner.bundle.redacted_pack import choices_of, context_of, part_texts
from runner.bundle.redaction import COMMITMENT, SHARED_PLACES, TOKEN, Redactor
from runner.bundle.verify import check
from runner.errors import RunnerError, UsageError
from runner.score.repeat import Rescorer, rescorer
from runner.scorecard import Verdict
from store.database import LogReader, open_reader
from store.events import TasksPlanned
from store.labels.folder import label_logs
from store.outcomes import link_at
from store.read.tasks import attempts, events, near_items, of_item, tasks_by_root
from store.redacted_log import stored_event
from store.runs import CERTIFICATES, RunFolder, certificates_in
from store.tables import payload, tasks_numbered
from store.task import TaskRow

SCHEMA: Final = "siftlog.disclosure/1"

WHAT: Final = ("text", "prompt", "reply", "verdict")
"""What can be opened of an item: the user's messages, all of the request, ..."""

_DIGITS: Final = 16
"""Numbers of events are shorter."""

_MOST_TASKS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Openings of values of one bundle."""

    run: str
    scoring: int
    head: str  #: of the bundle's log
    openings: tuple[Opening, ...]

    def as_json(self) -> str:
        """Return the content of the file."""
        content = {
            "schema": SCHEMA,
            "run": self.run,
            "scoring": self.scoring,
            "head": self.head,
            "openings": [opening.as_json() for opening in self.openings],
        }
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def read_disclosure(path: Path) -> Disclosure:
    """Return the openings in a file.

    Raises:
        UsageError: there is no such file, or it has another form.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"its schema is {content['schema']!r}")  # noqa: TRY301 - one message for all
        return Disclosure(
            run=str(content["run"]),
            scoring=int(content["scoring"]),
            head=str(content["head"]),
            openings=tuple(map(Opening.of_json, content["openings"])),
        )
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): name a file that siftlog "
            "disclose wrote."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise UsageError(
            f"{path} is no disclosure ({reason}): name a file that siftlog disclose "
            "wrote."
        ) from error


@dataclass(slots=True)
class Discloser:
    """Opens values of one bundle for its author."""

    run: Rescorer
    reader: LogReader  #: of the run's log, which may have continued since
    manifest: RedactedManifest
    secret: RedactionSecret
    _opened: list[Opening] = field(default_factory=list)

    def disclosure(
        self,
        items: Iterable[str],
        what: Collection[str],
        *,
        whole: bool,
        tasks: Collection[int] = (),
    ) -> Disclosure:
        """Open what is chosen of some items.

        Args:
            items: keys.
            what: of `WHAT`; empty: all of them.
            whole: open the scorecard and the last hash of the original log too.
            tasks: numbers of further tasks.

        Raises:
            UsageError: the run has no such item or task, or is not the bundle's.
        """
        openings: dict[tuple[str, str, bytes], Opening] = {}
        chosen = [*self._whole()] if whole else []
        rows = {row.task: row for item in items for row in self._tasks(item)}
        rows |= {row.task: row for row in tasks_numbered(self.reader, [*tasks])}
        if missing := sorted({*tasks} - rows.keys()):
            raise UsageError(
                f"Run {self.manifest.run} has no task {missing[0]}: siftlog tasks "
                f"{self.manifest.run} lists them."
            )
        chosen += self._of_tasks([*rows.values()], frozenset(what or WHAT))
        for opening in chosen:
            openings.setdefault((opening.at, opening.place, opening.value), opening)
        return Disclosure(
            run=self.manifest.run,
            scoring=self.manifest.scoring,
            head=self.manifest.head,
            openings=tuple(openings.values()),
        )

    def _tasks(self, item: str) -> list[TaskRow]:
        rows = tasks_by_root(self.reader, of_item(item), limit=_MOST_TASKS)
        if not rows:
            near = ", ".join(near_items(self.reader, item))
            raise UsageError(
                f"Run {self.manifest.run} has no item {item!r}"
                + (f"; near it: {near}." if near else ".")
            )
        return rows

    def _redactor(self) -> Redactor:
        """Return a redactor whose commitments are opened into `_opened`."""
        self._opened = []
        link = link_at(self.reader, self.manifest.events)
        recorded = self.run.recorded(self.manifest.scoring)
        if link is None:
            raise UsageError(
                f"The log of {self.manifest.run} has no commit that ends with event "
                f"{self.manifest.events:,}: this is not the run of the bundle."
            )

        def note(at: str, place: str, salt: bytes, value: bytes) -> None:
            self._opened.append(Opening(at=at, place=place, salt=salt, value=value))

        return Redactor(
            commit=SaltedCommitter(self.secret, context_of(link.hex(), recorded), note),
            part=part_texts(self.reader),
            choices=frozenset(),
        )

    def _whole(self) -> Iterator[Opening]:
        redactor = self._redactor()
        link = link_at(self.reader, self.manifest.events) or b""
        redactor.commit.at = "bundle"
        recorded = self.run.recorded(self.manifest.scoring)
        redactor.commit.place("bundle/log", link.hex().encode())
        redactor.commit.place("bundle/scorecard", self.run.stored(recorded) or b"")
        for path in certificates_in(self.run.folder.path):
            name = redactor.commit.at = f"{CERTIFICATES}/{path.parent.name}"
            if any(
                member.name == f"{name}/{STATED}" for member in self.manifest.members
            ):
                sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
                redactor.commit.place(f"{name}/sha256", sha256.encode())
        yield from self._opened

    def _of_tasks(
        self, tasks: list[TaskRow], what: frozenset[str]
    ) -> Iterator[Opening]:
        yield from self._keys(tasks)
        for row in tasks:
            for attempt in attempts(self.reader, row.task):
                if attempt.started_seq is not None and what & {"text", "prompt"}:
                    is_whole = "prompt" in what
                    yield from self._request(attempt.started_seq, is_whole=is_whole)
                if attempt.ended_seq is not None and "reply" in what:
                    place = f"event/{attempt.ended_seq}/payload"
                    for opening in self._of_event(attempt.ended_seq):
                        if opening.place == place:
                            yield opening
        if "verdict" in what:
            yield from self._verdicts({row.task for row in tasks})

    def _of_event(self, seq: int) -> list[Opening]:
        event = stored_event(self.reader, seq)
        if event is not None and seq <= self.manifest.events:
            self._redactor().event(*event)
            return self._opened
        return []

    def _keys(self, tasks: list[TaskRow]) -> Iterator[Opening]:
        """The names of the tasks' items, at the events that planned them."""
        for recorded in events(self.reader, limit=_MOST_TASKS, kinds=["tasks_planned"]):
            planned = recorded.event
            if not isinstance(planned, TasksPlanned):
                continue
            last = planned.first + planned.count - 1
            keys = {row.key for row in tasks if planned.first <= row.task <= last}
            if not keys:
                continue
            redactor = self._redactor()
            redactor.commit.at = f"event/{recorded.seq}"
            for key in sorted(keys):
                redactor.item(key)
            yield from self._opened

    def _request(self, seq: int, *, is_whole: bool) -> Iterator[Opening]:
        """The parts of a request: those of the user's messages, or all."""
        fields = json.loads(payload(self.reader, seq) or b"{}")
        text_of = part_texts(self.reader)
        texts = {
            text_of(bytes.fromhex(sha256))
            for message in fields.get("messages", ())
            if message["role"] != "system"
            for sha256 in message["parts"]
        }
        for opening in self._of_event(seq):
            if opening.place == "part" and (is_whole or opening.value in texts):
                yield opening

    def _verdicts(self, tasks: Collection[int]) -> Iterator[Opening]:
        """What the scoring read from replies, and what it expected."""
        scoring = self.run.repeated(self.run.recorded(self.manifest.scoring))
        card = scoring.scorecard
        redactor = self._redactor()
        opened = self._opened
        verdicts = [d for d in card.details if isinstance(d, Verdict)]
        choices = choices_of(self.run, card, scoring.dataset)
        lines = verdict_lines(verdicts, redactor, choices)
        for verdict, _ in zip(verdicts, lines, strict=True):
            if verdict.task in tasks:
                yield from opened
            opened.clear()


@dataclass(slots=True, kw_only=True)
class DisclosedTask:
    """What a disclosure proves of one task."""

    task: int
    stage: str
    model: str
    item: str | None = None  #: its key; None: not opened
    parts: int = 0  #: of its requests that are opened
    of_parts: int = 0  #: different ones that its requests have
    replies: int = 0
    verdicts: int = 0


@dataclass(slots=True, kw_only=True)
class DisclosureReport:
    """The check of a disclosure against a redacted bundle."""

    openings: int = 0
    tasks: list[DisclosedTask] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    """Of the bundle as a whole: `bundle/scorecard`, `bundle/log`."""
    problems: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether the bundle holds the commitment of every opening."""
        return not self.problems


def check_disclosure(
    disclosure: Disclosure, folder: Path, manifest: RedactedManifest
) -> DisclosureReport:
    """Check openings against an unpacked bundle, which is sound.

    Args:
        disclosure: the openings.
        folder: with the bundle's members.
        manifest: of the bundle.
    """
    report = DisclosureReport(openings=len(disclosure.openings))
    claimed = (disclosure.run, disclosure.scoring, disclosure.head)
    if claimed != (manifest.run, manifest.scoring, manifest.head):
        report.problems.append(
            f"it is of another bundle: of scoring {disclosure.scoring} of run "
            f"{disclosure.run}, whose log ends with {disclosure.head[:12]}"
        )
        return report
    with ExitStack() as opened:
        check = _DisclosureCheck(folder, manifest, disclosure, opened)
        for number, opening in enumerate(disclosure.openings, 1):
            if problem := check.problem(opening):
                report.problems.append(f"opening {number} ({opening.at}): {problem}")
            else:
                check.count(opening, report)
        check.name_items(disclosure, report)
    return report


class _DisclosureCheck:
    """Looks openings up in a bundle."""

    def __init__(
        self,
        folder: Path,
        manifest: RedactedManifest,
        disclosure: Disclosure,
        opened: ExitStack,
    ) -> None:
        parts = (_numbered(opening.at) for opening in disclosure.openings)
        chosen = {number for sort, number in parts if sort == "verdict"}
        self._folder = folder
        self._manifest = manifest
        self._logs = {
            name: opened.enter_context(open_reader(folder / name))
            for name in (
                LOG,
                *(f"{LABELS}/{path.name}" for path in label_logs(folder / LABELS)),
            )
        }
        self._log = self._logs[LOG]
        self._tasks: dict[int, DisclosedTask] = {}
        self._verdicts = {
            number: line for number, line in self._lines(VERDICTS) if number in chosen
        }

    def problem(self, opening: Opening) -> str | None:
        """Return why an opening proves nothing; None: it proves its value."""
        if opening.place not in SHARED_PLACES and not opening.place.startswith(
            f"{opening.at}/"
        ):
            return "its place is another one"
        content = self._content(opening.at)
        if content is None:
            return "the bundle has no such part"
        if opening.commitment.hex().encode() not in COMMITMENT.findall(content):
            return "the bundle does not hold its commitment"
        return None

    def count(self, opening: Opening, report: DisclosureReport) -> None:
        """Count a proven opening for the task that it is about."""
        name, number = _numbered(opening.at)
        if name == "verdict":
            task = msgspec.json.decode(self._verdicts[number])[0]
            self._of(task, report).verdicts += 1
        elif opening.at == "bundle" or name == CERTIFICATES:
            report.whole.append(opening.place)
        elif name == "event" and (event := stored_event(self._log, number)):
            row, content = event
            if row.task is None:
                return
            task = self._of(row.task, report)
            if opening.place == "part":
                task.parts += 1
                task.of_parts = len({*COMMITMENT.findall(content.payload or b"")})
            elif opening.place.endswith("/payload"):
                task.replies += 1

    def name_items(self, disclosure: Disclosure, report: DisclosureReport) -> None:
        """Name the tasks by the keys that were opened."""
        keys = {
            TOKEN + opening.commitment.hex(): opening.text
            for opening in disclosure.openings
            if opening.place == "key"
        }
        for task in report.tasks:
            (row,) = tasks_numbered(self._log, [task.task])
            task.item = keys.get(row.key)

    def _of(self, task: int, report: DisclosureReport) -> DisclosedTask:
        if task not in self._tasks:
            (row,) = tasks_numbered(self._log, [task])
            self._tasks[task] = DisclosedTask(
                task=task, stage=row.stage, model=row.model
            )
            report.tasks.append(self._tasks[task])
        return self._tasks[task]

    def _content(self, at: str) -> bytes | None:
        """Return what the bundle says at a part; None: it has no such part."""
        sort, number = _numbered(at)
        match sort or at:
            case "bundle":
                return "\n".join(self._manifest.commitments.values()).encode()
            case "values":
                return self._member(VALUES)
            case "scorecard":
                return self._member(SCORECARD)
            case "verdict":
                return self._verdicts.get(number)
            case "certificates":
                stated = self._folder / CERTIFICATES / str(number) / STATED
                return stated.read_bytes() if stated.is_file() else None
            case _:
                return self._event(sort, number)

    def _event(self, sort: str, number: int) -> bytes | None:
        reader = self._logs.get(sort.removesuffix("/event") if sort != "event" else LOG)
        event = None if reader is None else stored_event(reader, number)
        if event is None:
            return None
        return event[1].facts + b"\n" + (event[1].payload or b"")

    def _member(self, name: str) -> bytes:
        return self._path(name).read_bytes()

    def _lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        with self._path(name).open("rb") as file:
            yield from enumerate(file, 1)

    def _path(self, name: str) -> Path:
        return self._folder / member_of(self._manifest.scoring, name)


def _numbered(at: str) -> tuple[str, int]:
    """Split a part such as `event/17`; its number is 0 where it has none."""
    sort, _, number = at.rpartition("/")
    return sort, int(number) if number.isdecimal() and len(number) < _DIGITS else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDisclosure:
    """A disclosure that was written."""

    file: Path
    bundle: Path
    openings: int


def disclose_items(
    folder: RunFolder,
    items: Collection[str],
    what: Collection[str],
    *,
    whole: bool,
    tasks: Collection[int] = (),
    bundle: Path | None,
    secret: Path | None,
    out: Path | None,
    progress: Callable[[str], None],
) -> WrittenDisclosure:
    """Write openings of a run's items, checked against its redacted bundle.

    Args:
        folder: the run's folder.
        items: keys.
        what: of `WHAT`; empty: all of them.
        whole: open what is of the bundle as a whole, too.
        tasks: numbers of further tasks.
        bundle: None: the newest in the run's exports.
        secret: None: next to the bundle.
        out: None: next to the bundle.
        progress: receives one-line progress messages.

    Raises:
        UsageError: there is no such item, bundle or secret.
        RunnerError: bundle, secret and run do not belong together.
    """
    path = bundle or _newest(folder)
    name = path.name.removesuffix(".zip").removesuffix(".siftlog")
    secret_path = secret or path.with_name(f"{name}.secret.json")
    opener = RedactionSecret.read(secret_path)
    target = out or path.with_name(f"{name}.disclosure.json")
    written: list[Disclosure] = []
    problems: list[str] = []

    def use(unpacked: Path, manifest: Manifest) -> None:
        if not isinstance(manifest, RedactedManifest):
            raise UsageError(f"{path} is not redacted: it holds every text.")
        if manifest.run != folder.run_id:
            raise UsageError(
                f"{path} is of run {manifest.run}, and not of {folder.run_id}: name "
                "another --bundle."
            )
        if (opener.run, opener.scoring) != (manifest.run, manifest.scoring):
            raise UsageError(
                f"The secret is of scoring {opener.scoring} of {opener.run}, and "
                f"{path} of scoring {manifest.scoring} of {manifest.run}: name "
                "another --secret."
            )
        with rescorer(folder) as run, open_reader(folder.log) as reader:
            discloser = Discloser(run, reader, manifest, opener)
            disclosure = discloser.disclosure(items, what, whole=whole, tasks=tasks)
        written.append(disclosure)
        problems.extend(check_disclosure(disclosure, unpacked, manifest).problems)

    report = check(path, progress, use=use)
    if not written:
        faults = [f"{fault.where}: {fault.message}" for fault in report.faults]
        raise RunnerError(f"{path} is not sound ({faults[0]}): bundle the run again.")
    if problems:
        raise RunnerError(
            f"Nothing is disclosed, for {secret_path} does not open {path} "
            f"({problems[0]}): name the secret that was written with this bundle."
        )
    try:
        target.write_text(written[0].as_json(), encoding="utf-8")
    except OSError as error:
        raise RunnerError(
            f"{target} cannot be written ({error.strerror}): name another --out."
        ) from error
    return WrittenDisclosure(
        file=target, bundle=path, openings=len(written[0].openings)
    )


def _newest(folder: RunFolder) -> Path:
    """Return the run's redacted bundle of the newest scoring."""
    paths = folder.exports.glob(f"{escape(folder.run_id)}.*.redacted.siftlog.zip")
    numbers = {
        int(number): path
        for path in paths
        if (number := path.name[len(folder.run_id) + 1 :].partition(".")[0]).isdecimal()
    }
    if not numbers:
        raise UsageError(
            f"Run {folder.run_id} has no redacted bundle in {folder.exports}: name one "
            f"with --bundle, or make it with siftlog bundle {folder.run_id} --redact."
        )
    return numbers[max(numbers)]
