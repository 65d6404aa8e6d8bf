"""Runs `siftlog screen`: ranks, records the plan, collects labels, certifies."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from jobs.cli.label_folders import writing
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.labels.desk import OpenSession, SessionDesk
from jobs.kit.labels.source import LabelSource, label_source
from jobs.launching import carry_out, new_run, resumed_run
from jobs.screening.inputs import SAMPLE, load
from jobs.screening.labels import labelled
from jobs.screening.settings import ScreeningSettings
from jobs.stopping import reading_order
from jobs.stopping.certificate import WrittenCertificate, write_certificate
from jobs.stopping.certificate_page import pages
from jobs.stopping.library import OpenLibrary, library_of, open_library
from jobs.stopping.reading_order import OrderName, RecordRanking, TfidfRanking
from jobs.stopping.screening_fold import ScreeningFold
from jobs.stopping.session import ScreeningSession, ScreeningState, locked
from jobs.stopping.simulation import Simulation, simulate
from runner.errors import DatasetError, UsageError
from store.clock import SystemClock
from store.database import open_reader
from store.filesystem import make_folder
from store.labels.events import ScreeningPlanned, ScreeningStopped
from store.labels.fold import population_hash
from store.labels.folder import LabelFolder
from store.labels.writer import LabelWriter
from store.read.status import run_started, scorings
from store.runs import RunFolder, resolve
from store.tables import head, last_seq, phase

TARGET: Final = 0.95
ALPHA: Final = 0.05
SHIPPED: Final = "sample"
"""Name of the shipped library, and of its labels."""

_SHIPPED: Final = SAMPLE / "library"
_NOT_IN_IDS: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRequest:
    """Options of the command."""

    library: tuple[str, ...]
    ranking_run: str | None
    run_id: str | None
    runs_dir: Path
    models: tuple[str, ...]
    criteria: Path | None
    question: str | None
    renames: tuple[str, ...]
    order: OrderName | None
    target: float | None
    alpha: float | None
    seed: int | None
    run_options: Mapping[str, Any]  #: of `siftlog run`, such as a budget

    @property
    def files(self) -> tuple[Path, ...]:
        """Files of the library.

        Raises:
            UsageError: there is none, or one does not exist.
        """
        if not self.library:
            raise UsageError(
                "Name a library to screen, such as records.ris, or a run with "
                "--rank-only RUN; the word sample names the shipped library."
            )
        if self.library == (SHIPPED,):
            return (_SHIPPED / "library.ris",)
        for name in self.library:
            if not Path(name).is_file():
                raise UsageError(f"{name} is no file: name a library, such as x.ris.")
        return tuple(map(Path, self.library))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the job."""
        criteria, question = self.criteria, self.question
        if self.library == (SHIPPED,) and criteria is None and question is None:
            criteria = _SHIPPED / "criteria.txt"
        if criteria is None and not (question or "").strip():
            raise UsageError(
                "Say what is screened for: --criteria FILE, a text of what to include "
                "and exclude, or --question TEXT."
            )
        settings: dict[str, Any] = {"library": self.files, "map": self.renames}
        if criteria is not None:
            if not criteria.is_file():
                raise UsageError(f"{criteria} is no file: name one with --criteria.")
            settings["criteria"] = criteria
        if question is not None:
            settings["question"] = question
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """The state of a screening after a session."""

    run: str
    labels: Path
    answered: int  #: in this session
    fold: ScreeningFold
    certificate: WrittenCertificate | None  #: written by this session


def ranked_run(request: ScreenRequest, notify: Callable[[str], None]) -> RunFolder:
    """Return the run that ranks the library: an existing, resumed or new one.

    Raises:
        UsageError: the run is unfinished, or has other files or models.
    """
    if request.ranking_run is not None:
        folder = resolve(request.runs_dir, request.ranking_run)
    else:
        run_id = request.run_id or _run_id(request.files)
        folder = RunFolder(request.runs_dir / run_id)
        if not folder.log.is_file():
            prepared = new_run(
                "screening",
                model=request.models,
                run_id=run_id,
                runs_dir=request.runs_dir,
                report=False,
                values={**request.settings, **request.run_options},
            )
            notify(f"Run {run_id} ranks the records, in {prepared.folder.path}")
            carry_out(prepared)
    if _phase(folder) != "run_finished" and request.ranking_run is None:
        notify(f"Run {folder.run_id} is resumed.")
        carry_out(resumed_run(folder, report=False, values=request.run_options))
    if _phase(folder) != "run_finished":
        raise UsageError(
            f"Run {folder.run_id} has not finished, and ranks no records before: "
            f"siftlog resume {folder.run_id}"
        )
    return folder


def _phase(folder: RunFolder) -> str:
    with open_reader(folder.log) as reader:
        return phase(reader)


def _run_id(files: Sequence[Path]) -> str:
    stem = _NOT_IN_IDS.sub("-", files[0].name.partition(".")[0].lower()).strip("-")
    return f"screen-{stem or 'library'}"


def _order_name(request: ScreenRequest, models: Sequence[str]) -> OrderName:
    if request.order is not None:
        return request.order
    has_model = any(not model.startswith("baseline/") for model in models)
    return "model" if has_model or request.models else "tfidf"


def ranking_of(
    library: OpenLibrary, order: OrderName, seed: int, source: LabelSource | None
) -> RecordRanking:
    """Return the ranking that an order selects.

    Raises:
        UsageError: the order is that of a model, and there is no run.
    """
    if order == "tfidf":
        return TfidfRanking(library.texts, library.question)
    if order == "random":
        return RecordRanking(reading_order.random_order(library.keys, seed))
    if source is None:
        raise UsageError("--order model needs --model, or a run with --rank-only.")
    replies = {about.item: of for about, of in source.replies.items()}
    return RecordRanking(reading_order.model_order(library.keys, replies))


async def screen_library(
    request: ScreenRequest,
    folder: RunFolder,
    author: str,
    labels: Path | None,
    show: Callable[[SessionDesk, str], Awaitable[None]],
    *,
    is_assisted: bool,
    goes_on: bool,
) -> Screened:
    """Run a session of one person, and write a certificate at the stop.

    Args:
        request: options of the command.
        folder: folder of the run that ranks.
        author: the person who labels.
        labels: folder of label logs; None: of the run.
        show: a front end.
        is_assisted: whether replies are visible from the start.
        goes_on: whether to continue after the stop.

    Raises:
        UsageError: target or alpha differ from the plan's.
        DatasetError: the library has changed since the run or the plan.
    """
    where = labels or folder.labels
    with label_source(folder) as source:
        library = library_of(source)
        _check_library(request, folder, library)
        make_folder(where)
        state = ScreeningState(
            LabelFolder(where), folder.run_id, dict(library.hashes.texts)
        )
        async with writing(where, author) as writer:
            with locked(where):
                fold = state.refresh()
                if fold.plan is None:
                    plan = _plan(request, folder, author, library, source)
                    await writer.screening(plan)
                    fold = state.refresh()
            if fold.plan is None:
                raise TypeError("a plan that was recorded is in the fold")
            ranking = _planned_ranking(request, fold.plan.event, library, source)
            session = ScreeningSession(
                source,
                writer,
                ranking,
                state=state,
                clock=SystemClock(),
                is_assisted=is_assisted,
                goes_on=goes_on,
            )
            try:
                await session.start()
                await show(OpenSession(session), author)
            finally:
                session.close()
            with locked(where):
                certificate = await _certify(
                    state, folder, library, ranking.order, writer
                )
        return Screened(
            run=folder.run_id,
            labels=where,
            answered=session.progress.answered,
            fold=state.refresh(),
            certificate=certificate,
        )


def _check_library(
    request: ScreenRequest, folder: RunFolder, library: OpenLibrary
) -> None:
    """Refuse files that differ from those of the run."""
    with open_reader(folder.log) as reader:
        inputs = run_started(reader).inputs
    then = [one.sha256 for one in inputs if one.setting == "library"]
    now = library.hashes.hashes
    if request.library and request.ranking_run is None:
        now = list(open_library(library.dataset, request.files).hashes.files.values())
    if then != now:
        names = ", ".join(library.hashes.files)
        raise DatasetError(
            f"{names}: the library has changed since run {folder.run_id} began, and a "
            "guarantee is about one library: restore the file, or screen the new one "
            "from its start under another --run-id."
        )


def _plan(
    request: ScreenRequest,
    folder: RunFolder,
    author: str,
    library: OpenLibrary,
    source: LabelSource,
) -> ScreeningPlanned:
    with open_reader(folder.log) as reader:
        models = run_started(reader).models["subject"]
        recorded = scorings(reader)
        seq, link = last_seq(reader), head(reader)
    order = _order_name(request, models)
    seed = secrets.randbits(32) if request.seed is None else request.seed
    return ScreeningPlanned(
        author=author,
        run=folder.run_id,
        question=library.question,
        target=TARGET if request.target is None else request.target,
        alpha=ALPHA if request.alpha is None else request.alpha,
        seed=seed,
        records=len(library.keys),
        population_sha256=population_hash(library.keys),
        library=library.hashes.hashes,
        order=order,
        order_sha256=reading_order.order_hash(
            ranking_of(library, order, seed, source).order
        ),
        models=list(models),
        run_seq=seq,
        run_head=link,
        scoring=recorded[-1].number if recorded else None,
        scoring_digest=recorded[-1].digest if recorded else "",
    )


def _planned_ranking(
    request: ScreenRequest,
    plan: ScreeningPlanned,
    library: OpenLibrary,
    source: LabelSource,
) -> RecordRanking:
    """Return the ranking of the plan, recomputed.

    Raises:
        UsageError: the request contradicts the plan, or the ranking has changed.
    """
    for name, requested, planned in (
        ("--target-recall", request.target, plan.target),
        ("--alpha", request.alpha, plan.alpha),
        ("--seed", request.seed, plan.seed),
        ("--order", request.order, plan.order),
    ):
        if requested is not None and requested != planned:
            raise UsageError(
                f"{name} is {requested}, and run {plan.run} was planned with "
                f"{planned}: a plan holds from the first draw on; leave the option "
                "out, or begin anew under another --run-id and --labels folder."
            )
    order = cast("OrderName", plan.order)
    ranking = ranking_of(library, order, plan.seed, source)
    if reading_order.order_hash(ranking.order) != plan.order_sha256:
        raise UsageError(
            f"The ranking of run {plan.run} is not the one that was planned: its "
            "answers have changed since; begin anew under another --run-id."
        )
    return ranking


async def _certify(
    state: ScreeningState,
    folder: RunFolder,
    library: OpenLibrary,
    order: Sequence[str],
    writer: LabelWriter,
) -> WrittenCertificate | None:
    """Write a certificate, if the target is reached and not certified yet."""
    fold = state.refresh()
    status = fold.status
    if status is None or not status.should_stop:
        return None
    figures = (status.relevant, status.read, status.recall)
    stops = [(one.relevant, one.read, one.recall) for one in fold.stops]
    if stops and stops[-1] == figures:
        return None
    where = state.folder.path
    written = write_certificate(folder.path, where, library.hashes, order, pages)
    await writer.screening(
        ScreeningStopped(
            author=writer.author,
            run=folder.run_id,
            number=written.document["number"],
            certificate_sha256=written.sha256,
            recall=status.recall,
            relevant=status.relevant,
            read=status.read,
        )
    )
    state.refresh()
    return written


def simulate_library(
    request: ScreenRequest,
    file: str,
    seeds: int,
    notify: Callable[[str], None],
    progress: Callable[[str], None],
) -> Simulation:
    """Screen a library with the labels of a file instead of people.

    Raises:
        DatasetError: a label belongs to no record, or no record is relevant.
    """
    if request.models or request.ranking_run is not None:
        folder = ranked_run(request, notify)
        with label_source(folder) as source:
            library = library_of(source)
            return _simulated(
                request, library, source, file, seeds=seeds, progress=progress
            )
    settings = ScreeningSettings(**request.settings)
    library = open_library(load(settings))
    return _simulated(request, library, None, file, seeds=seeds, progress=progress)


def _simulated(
    request: ScreenRequest,
    library: OpenLibrary,
    source: LabelSource | None,
    file: str,
    *,
    seeds: int,
    progress: Callable[[str], None],
) -> Simulation:
    path = _SHIPPED / "labels.csv" if file == SHIPPED else Path(file)
    if not path.is_file():
        raise UsageError(f"{file} is no file: name one of labels (id, label).")
    records = [library.dataset.record(key) for key in library.keys]
    known = labelled(path, records, InputFindings())
    missing = [key for key in library.keys if key not in known]
    if missing:
        raise DatasetError(
            f"{path.name}: {len(missing):,} of {len(library.keys):,} records have no "
            f"label, such as {missing[0].partition(':')[2]} (give each 1 or 0: a "
            "simulation needs them all)."
        )
    relevance = {key: known[key].label == 1 for key in library.keys}
    if not any(relevance.values()):
        raise DatasetError(
            f"{path.name}: no record is labelled 1, so there is no recall to simulate "
            "(check the column label)."
        )
    models = () if source is None else source.answers.models
    order = _order_name(request, models)
    fixed = None if order == "random" else ranking_of(library, order, 0, source)
    return simulate(
        relevance,
        lambda seed: fixed or ranking_of(library, order, seed, source),
        order=order,
        target=TARGET if request.target is None else request.target,
        alpha=ALPHA if request.alpha is None else request.alpha,
        seeds=seeds,
        progress=progress,
    )
