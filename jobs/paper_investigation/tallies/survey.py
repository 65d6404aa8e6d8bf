"""The first pass over the answers: everything is counted, nothing is kept.

What stays is a few numbers per paper and model, so that memory does not grow with the
number of questions per paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from jobs.metrics import Resamples
from jobs.paper_investigation.dataset import Dataset
from jobs.paper_investigation.marking.families import records
from jobs.paper_investigation.marking.judging import RuleChoice
from jobs.paper_investigation.marking.lenses import Lens, Lenses
from jobs.paper_investigation.marking.paper import MarkedPaper, Reading, mark, read
from jobs.paper_investigation.measures import MEASURES
from jobs.paper_investigation.record import Mode, PaperRecord
from jobs.paper_investigation.tallies.agreement import Agreement
from jobs.paper_investigation.tallies.ballots import Ballots
from jobs.paper_investigation.tallies.comparable import comparable
from jobs.paper_investigation.tallies.grounded import Gathering, Grounding
from jobs.paper_investigation.tallies.headline import AVERAGES
from jobs.paper_investigation.tallies.measure import metrics
from jobs.paper_investigation.tallies.pairs import Pair, Pairing
from jobs.paper_investigation.tallies.replicates import Repeats, over_replicates
from jobs.paper_investigation.tallies.tally import Tally
from runner.job import Answers
from runner.scorecard import Comparable, Metric

KEPT_DRAWS = 4
"""Sets of papers whose resamples are held; the models of a run mostly share one."""


class Survey:
    """All that is counted over a run's answers."""

    def __init__(self, dataset: Dataset, answers: Answers, mode: Mode) -> None:
        settings = dataset.settings
        self.mode: Mode = mode
        self.lenses = Lenses.of(settings, mode)
        self.models = answers.models
        self.replicates = range(1, answers.replicates + 1)
        self.tallies = {model: Tally(self.lenses, mode) for model in self.models}
        self.by_replicate = {
            (model, replicate): Tally(self.lenses, mode)
            if len(self.replicates) > 1
            else self.tallies[model]
            for model in self.models
            for replicate in self.replicates
        }
        self.ballots = Ballots()
        self._repeats = {model: Repeats(answers.replicates) for model in self.models}
        self._gathering = Gathering(
            texts=dataset.papers if settings.grounding else None
        )
        self.agreements = (
            Agreement(settings.profile, settings.variant_case),
            Agreement(
                self.lenses.profile, self.lenses.other_profile.settings.variant_case
            ),
        )
        self.contradictions: list[str] = []  #: records at odds with their own lists
        self._draw = lru_cache(maxsize=KEPT_DRAWS)(
            partial(
                Resamples,
                b=settings.boot_b,
                seed=settings.boot_seed,
                level=settings.level,
                cluster="paper",
                form=settings.interval,
            )
        )

    def add(self, record: PaperRecord) -> None:
        """Count one record."""
        readings: dict[RuleChoice, Reading] = {}

        def seen(lens: Lens) -> MarkedPaper:
            if lens.rules not in readings:
                readings[lens.rules] = read(record, lens.rules)
            return mark(readings[lens.rules], lens)

        paper = seen(self.lenses.chosen)
        others = {name: seen(lens) for name, lens in self.lenses.others.items()}
        self.tallies[record.model].add(paper, others)
        self.ballots.add(paper)
        self._gathering.add(paper)
        if len(self.replicates) > 1:
            self.by_replicate[record.model, record.replicate].add(paper, others)
            self._repeats[record.model].add(paper)
        if record.recorded or any(item.recorded for item in record.items):
            self._compare(paper, seen(self.lenses.other_profile))

    def _compare(self, paper: MarkedPaper, otherwise: MarkedPaper) -> None:
        """Hold what the file states against both profiles."""
        for agreement, seen in zip(self.agreements, (paper, otherwise), strict=True):
            agreement.add(seen)
        recorded = paper.record.recorded
        for fact in ("variant_recall", "recall"):
            if recorded.get(fact) not in {None, paper.recall, otherwise.recall}:
                self.contradictions.append(f"{paper.record.model} {paper.record.pmcid}")

    def draw(self, papers: Sequence[str]) -> Resamples:
        """The resamples of *papers*, the same ones whenever they are asked for."""
        return self._draw(tuple(papers))

    def grounding(self) -> Grounding:
        """Look all variants up in the papers' texts."""
        return self._gathering.looked_up()

    def metrics(self, model: str, grounding: Grounding) -> tuple[Metric, ...]:
        """Everything there is to say about *model*."""
        tally = self.tallies[model]
        measures = [*tally.measures(), *grounding.measures(model)]
        if len(self.replicates) > 1:
            own = [self.by_replicate[model, each] for each in self.replicates]
            measures += over_replicates(own, self._repeats[model], AVERAGES[self.mode])
        papers = tally.clusters
        return MEASURES.describe(metrics(measures, self.draw(papers), len(papers)))

    def comparable(self, model: str) -> Comparable:
        """What *model* can be compared in, item by item."""
        papers = self.tallies[model].papers
        return comparable(model, papers, self.ballots, self.mode)

    def pairs(self) -> tuple[Pair, ...]:
        """Every two models."""
        return Pairing(
            papers={model: tally.papers for model, tally in self.tallies.items()},
            ballots=self.ballots,
            averages=AVERAGES[self.mode],
            settings=self.lenses.chosen.settings,
        ).pairs(self.models)


def survey(dataset: Dataset, answers: Answers) -> Survey:
    """Count everything; what kind of work it is, the records say themselves."""
    made: Survey | None = None
    for record in records(dataset, answers):
        if made is None:
            made = Survey(dataset, answers, record.mode)
        made.add(record)
    return made or Survey(dataset, answers, dataset.settings.mode)
