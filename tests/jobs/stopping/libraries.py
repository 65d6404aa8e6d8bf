"""Libraries with known answers, screened in this process by simulated people."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jobs.screening.inputs import load
from jobs.screening.labelling import DECISION, labelling
from jobs.screening.settings import ScreeningSettings
from jobs.stopping.certificate import WrittenCertificate, write_certificate
from jobs.stopping.certificate_page import pages
from jobs.stopping.library import OpenLibrary, open_library
from jobs.stopping.reading_order import RecordRanking, order_hash
from jobs.stopping.session import ScreeningSession, ScreeningState
from runner.labelling import LabelField, LabelItem, ModelLabel
from store.clock import SystemClock
from store.labels.events import ScreeningPlanned, ScreeningStopped
from store.labels.fold import ItemField, TextHashes, population_hash
from store.labels.folder import LabelFolder
from store.labels.writer import LabelWriter

RUN = "r"


@dataclass(frozen=True, slots=True)
class Site:
    """A library on disk and the folder of its run, which has no log."""

    folder: Path
    library: OpenLibrary
    relevant: frozenset[str]
    target: float = 0.5

    @property
    def run(self) -> Path:
        return self.folder / RUN

    @property
    def labels(self) -> Path:
        return self.run / "labels"

    @property
    def order(self) -> Sequence[str]:
        """Ranked order: the relevant records first, but for some."""
        return sorted(self.library.keys, key=lambda key: key not in self.relevant)

    def state(self) -> ScreeningState:
        texts = dict(self.library.hashes.texts)
        return ScreeningState(LabelFolder(self.labels), RUN, texts)

    async def writer(self, author: str) -> LabelWriter:
        return await LabelWriter.open(
            self.labels,
            author=author,
            clock=SystemClock(),
            owner="test:1",
            siftlog_version="1",
        )

    def plan(self, *, target: float | None = None, seed: int = 1) -> ScreeningPlanned:
        return ScreeningPlanned(
            author="ann",
            run=RUN,
            question="does it help?",
            target=self.target if target is None else target,
            alpha=0.05,
            seed=seed,
            records=len(self.library.keys),
            population_sha256=population_hash(self.library.keys),
            library=self.library.hashes.hashes,
            order="model",
            order_sha256=order_hash(self.order),
            models=["m"],
            run_seq=1,
            run_head="0" * 64,
        )


@dataclass(frozen=True, slots=True)
class Source:
    """What a session needs of a run without answers."""

    site: Site
    run: str = RUN
    replies: ClassVar[Mapping[ItemField, Sequence[ModelLabel]]] = {}
    reply_hashes: ClassVar[TextHashes] = {}

    def item(self, key: str) -> LabelItem:
        return labelling.item(self.site.library.dataset, key)

    def field(self, name: str) -> LabelField:
        del name
        return DECISION


def site(
    folder: Path, records: int = 80, relevant: int = 12, *, target: float = 0.5
) -> Site:
    """Write a library and open it."""
    path = folder / "library.ris"
    path.write_text(
        "".join(
            f"TY  - JOUR\nID  - {n}\nTI  - title {n}\nAB  - text {n * n}\nER  - \n\n"
            for n in range(records)
        )
    )
    library = open_library(load(ScreeningSettings(library=(path,))))
    chosen = random.Random(1).sample(library.keys, relevant)
    made = Site(folder, library, frozenset(chosen), target)
    made.labels.mkdir(parents=True)
    return made


async def screened(
    site: Site, authors: Sequence[str] = ("ann",), *, most: int = 10_000
) -> ScreeningState:
    """Let people label in turn, as the library knows it, until the stop."""
    state = site.state()
    writers = [await site.writer(author) for author in authors]
    sessions: list[ScreeningSession] = []
    try:
        if state.refresh().plan is None:
            await writers[0].screening(site.plan())
        for writer in writers:
            session = ScreeningSession(
                Source(site),
                writer,
                RecordRanking(site.order),
                state=site.state(),
                clock=SystemClock(),
            )
            await session.start()
            sessions.append(session)
        for number in range(most):
            session = sessions[number % len(sessions)]
            question = session.question
            if question is None:
                break
            is_relevant = question.item.key in site.relevant
            await session.answer("include" if is_relevant else "exclude")
    finally:
        for session in sessions:
            session.close()
        for writer in writers:
            await writer.close()
    state.refresh()
    return state


async def certified(site: Site) -> WrittenCertificate:
    """Write the certificate of a stop, and record it."""
    written = write_certificate(
        site.run, site.labels, site.library.hashes, site.order, pages
    )
    async with await site.writer("ann") as writer:
        await writer.screening(
            ScreeningStopped(
                author="ann",
                run=RUN,
                number=written.document["number"],
                certificate_sha256=written.sha256,
                recall=written.document["recall_at_least"],
                relevant=written.document["relevant_found"],
                read=written.document["labelled"],
            )
        )
    return written
