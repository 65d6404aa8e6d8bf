"""Scores extracted variants without curated ones: the table, counts and agreement.

The main result is `extracted.csv`, with a line for each variant that a model lists in a
paper, and the surrounding text. Recall and precision appear when a later scoring has a
bench.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

from jobs.kit.grouping import grouped
from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.measurements import count, pooled, share, with_intervals
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics import Ratio, Resamples, ratio
from jobs.kit.score import ItemFrame, ItemMetric, ModelScores, comparable, with_models
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.tables import TableOf, flag, group, number, text
from jobs.kit.tables import count as whole
from jobs.kit.text_format import fixed
from jobs.kit.truth import no_truth, whole_sample
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.grading import GradedPaper, grade, read_extraction_reply
from jobs.paper_investigation.inputs import INPUTS
from jobs.paper_investigation.judging import ScoringVariant
from jobs.paper_investigation.measures import MEASURES
from jobs.paper_investigation.records import records
from jobs.paper_investigation.run_tally import RunTally
from jobs.paper_investigation.tables import KEYS
from jobs.paper_investigation.variants import ground, variant_class, variant_kind
from runner.job import Answers
from runner.messages import ParseFailure
from runner.scorecard import Finding, Metric, Scorecard, StreamedDetails, Verdict
from store.document import Block, wide_table

OPTION = "--bench FILE"
CONTENT = "curated variants"

CONTEXT_CHARS = 80
"""Number of characters of the text on each side of a variant: about a line."""


class PaperVariants(NamedTuple):
    """The variants that a model lists in a paper, in one replicate."""

    paper: GradedPaper
    title: str | None
    grounded: Mapping[str, bool | None]
    """By variant: is it in the text? None if it cannot be searched."""

    @property
    def spellings(self) -> Mapping[str, str]:
        """Spellings by normalised variant; empty without a list."""
        return self.paper.predicted or {}

    @property
    def judged(self) -> int:
        """Number of variants that can be searched."""
        return sum(verdict is not None for verdict in self.grounded.values())

    @property
    def found(self) -> int:
        """Number of variants that are in the text."""
        return sum(verdict is True for verdict in self.grounded.values())

    @property
    def status(self) -> str:
        """Reason why there is no list; empty if there is one."""
        failure = self.paper.parsed_list
        detail = f": {failure.reason}" if isinstance(failure, ParseFailure) else ""
        return f"{self.paper.skip}{detail}" if self.paper.skip else ""


def _paper_variants(
    dataset: InvestigationDataset, answers: Answers
) -> Iterator[PaperVariants]:
    """Yield the lists of all models, in the run's order."""
    lens = ScoringVariant.of(dataset.settings)
    for record in records(dataset, answers):
        paper = grade(read_extraction_reply(record, lens.rules), lens)
        names = paper.predicted or {}
        grounded: Mapping[str, bool | None] = dict.fromkeys(names)
        if dataset.settings.grounding and record.pmcid in dataset.papers:
            grounded = ground(dataset.papers.text(record.pmcid), names)
        yield PaperVariants(paper, dataset.papers.title(record.pmcid), grounded)


class _VariantRow(NamedTuple):
    listed: PaperVariants
    name: str  #: in its normal form
    start: int | None
    context: str | None


def _variant_rows(
    dataset: InvestigationDataset, answers: Answers
) -> Iterator[_VariantRow]:
    for listed in _paper_variants(dataset, answers):
        pmcid = listed.paper.record.pmcid
        has_text = pmcid in dataset.papers and bool(listed.spellings)
        paper_text = dataset.papers.text(pmcid) if has_text else ""
        for name, spelling in listed.spellings.items():
            yield _VariantRow(listed, name, *_context(paper_text, spelling))


def _context(paper_text: str, spelling: str) -> tuple[int | None, str | None]:
    """Return the position of a spelling in a text, and the text around it."""
    match = re.search(rf"(?<!\w){re.escape(spelling)}(?!\w)", paper_text, re.IGNORECASE)
    if match is None:
        return None, None
    start = max(0, match.start() - CONTEXT_CHARS)
    return match.start(), " ".join(
        paper_text[start : match.end() + CONTEXT_CHARS].split()
    )


EXTRACTED = TableOf[_VariantRow](
    name="extracted",
    columns=(
        group(KEYS, lambda row: row.listed.paper.record),
        text("title", lambda row: row.listed.title),
        text("variant", lambda row: row.listed.spellings[row.name], "as listed"),
        text("normalized", lambda row: row.name),
        text("class", lambda row: variant_class(row.name)),
        text("kind", lambda row: variant_kind(row.name)),
        flag("grounded", lambda row: row.listed.grounded[row.name], "in the text"),
        whole("start", lambda row: row.start, "character of the text"),
        text("context", lambda row: row.context, "the text around its first mention"),
    ),
    caption="Every variant that a model lists in a paper; grounded: it occurs in the "
    "text, under any of its spellings.",
)

PAPERS = TableOf[PaperVariants](
    name="papers",
    columns=(
        group(KEYS, lambda listed: listed.paper.record),
        text("title", lambda listed: listed.title),
        text("skip_reason", lambda listed: listed.status or None),
        whole("variants", lambda listed: _listed(listed, len(listed.spellings))),
        whole("looked_up", lambda listed: _listed(listed, listed.judged)),
        whole("grounded", lambda listed: _listed(listed, listed.found)),
    ),
    caption="Each paper with the number of variants that a model lists.",
)


def _listed(listed: PaperVariants, n: int) -> int | None:
    return n if listed.paper.is_parsed else None


class _NamedVariant(NamedTuple):
    model: str
    name: str
    spelling: str
    papers: Sequence[str]


VARIANTS = TableOf[_NamedVariant](
    name="variants",
    columns=(
        text("model", lambda row: row.model),
        text("variant", lambda row: row.spelling),
        text("normalized", lambda row: row.name),
        text("class", lambda row: variant_class(row.name)),
        whole("papers", lambda row: len(row.papers)),
        text("pmcids", lambda row: "; ".join(row.papers)),
    ),
    caption="Each variant with the papers in which a model lists it, the most frequent "
    "first; of the first replicate.",
    is_headline=True,
)


@dataclass(slots=True, kw_only=True)
class ModelLists:
    """The lists of one model in its first replicate."""

    model: str
    lists: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Spellings by normalised variant, by paper that has a list."""
    judged: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    papers: int = 0

    def add(self, listed: PaperVariants) -> None:
        """Add the list of a paper."""
        record = listed.paper.record
        if record.replicate > 1:
            return
        self.papers += 1
        if listed.paper.is_parsed:
            self.lists[record.pmcid] = listed.spellings
            self.judged[record.pmcid] = listed.judged
            self.found[record.pmcid] = listed.found

    @property
    def total(self) -> int:
        """Number of variants in all lists."""
        return sum(map(len, self.lists.values()))

    @property
    def grounded(self) -> Ratio:
        """Share of variants that are in the text, by paper."""
        return Ratio([*self.found.values()], [*self.judged.values()])

    def named(self) -> Iterator[_NamedVariant]:
        """Yield each variant with its papers, the most frequent first."""
        papers = grouped(
            (name, pmcid) for pmcid, names in self.lists.items() for name in names
        )
        for name in sorted(papers, key=lambda name: (-len(papers[name]), name)):
            spelling = self.lists[papers[name][0]][name]
            yield _NamedVariant(self.model, name, spelling, papers[name])


LISTED: Mapping[str, ValueMeasure[ModelLists]] = {
    "listed": ValueMeasure(
        "Listed variants",
        "Variants that the model lists, each once a paper",
        of=lambda lists: count(lists.total),
        definition="count@1(listed variants, each once a paper; first replicate)",
    ),
    "listed.per_paper": ValueMeasure(
        "Listed variants per paper",
        "Mean number of variants in a list",
        of=lambda lists: share(lists.total, len(lists.lists)),
        definition="mean@1(listed variants, over papers with a list; first replicate)",
    ),
    "listed.grounded": ValueMeasure(
        "Listed variants in the text",
        "Share of the listed variants that occur in the paper's text, of those that "
        "can be looked up",
        "higher",
        of=lambda lists: pooled(lists.grounded),
        definition="ratio@1(in the text / listed variants of classes with fixed names; "
        "first replicate)",
    ),
}

HEADLINE = "listed.grounded"

WORDS = replace(
    MEASURES,
    measures={**MEASURES.measures, **LISTED},
    headlines=(*LISTED, "papers_scored", "papers_skipped"),
)
"""The measures that need no truth."""


def _frame(lists: ModelLists) -> ItemFrame:
    return ItemFrame.of([*lists.lists], cluster="paper")


COMPARED: tuple[ItemMetric[ModelLists], ...] = (
    ItemMetric(HEADLINE, _frame, lambda lists: lists.grounded),
)


class ListAgreement(NamedTuple):
    """Comparison of two models' lists in the papers with a list of both."""

    a: ModelLists
    b: ModelLists

    @property
    def papers(self) -> Sequence[str]:
        """Papers with a list of both."""
        return [pmcid for pmcid in self.a.lists if pmcid in self.b.lists]

    @property
    def both(self) -> int:
        """Number of variants that both list."""
        return sum(
            len(self.a.lists[pmcid].keys() & self.b.lists[pmcid].keys())
            for pmcid in self.papers
        )

    @property
    def disagreements(self) -> Sequence[_Disagreement]:
        """Variants that only one of the models lists, by paper."""
        return [
            _Disagreement(pmcid, one.lists[pmcid][name], one.model, other.model)
            for pmcid in self.papers
            for one, other in ((self.a, self.b), (self.b, self.a))
            for name in one.lists[pmcid]
            if name not in other.lists[pmcid]
        ]

    def only(self, model: str) -> int:
        """Return the number of variants that only this model lists."""
        return sum(row.listed_by == model for row in self.disagreements)


class _Disagreement(NamedTuple):
    pmcid: str
    variant: str
    listed_by: str
    not_by: str


AGREEMENT = TableOf[ListAgreement](
    name="agreement",
    columns=(
        text("model_a", lambda pair: pair.a.model),
        text("model_b", lambda pair: pair.b.model),
        whole("papers", lambda pair: len(pair.papers), "with a list of both"),
        whole("both", lambda pair: pair.both, "variants"),
        whole("only_a", lambda pair: pair.only(pair.a.model), "variants"),
        whole("only_b", lambda pair: pair.only(pair.b.model), "variants"),
        number(
            "jaccard",
            lambda pair: ratio(pair.both, pair.both + len(pair.disagreements)),
            "share of all their variants that both list",
        ),
    ),
    caption="Models by pairs: how far their lists agree, in the first replicate.",
    is_headline=True,
)

DISAGREEMENTS = TableOf[_Disagreement](
    name="disagreements",
    columns=(
        text("pmcid", lambda row: row.pmcid),
        text("variant", lambda row: row.variant),
        text("listed_by", lambda row: row.listed_by),
        text("not_by", lambda row: row.not_by),
    ),
    caption="Every variant that one of two models lists in a paper.",
)


def score_without_truth(
    dataset: InvestigationDataset,
    answers: Answers,
    counted: RunTally,
    *,
    verdicts: Iterable[Verdict],
    findings: Iterable[Finding],
) -> Scorecard:
    """Return the tables of an extraction, its counts, and model agreement; pure.

    Args:
        dataset: papers and settings.
        answers: answers of the run.
        counted: the answers, counted.
        verdicts: verdicts on the tasks.
        findings: findings about inputs and replies.
    """
    lists = {model: ModelLists(model=model) for model in answers.models}
    for listed in _paper_variants(dataset, answers):
        lists[listed.paper.record.model].add(listed)
    pairs = [ListAgreement(a, b) for a, b in combinations(lists.values(), 2)]
    streamed = (
        EXTRACTED.streamed(lambda: _variant_rows(dataset, answers)),
        PAPERS.streamed(lambda: _paper_variants(dataset, answers)),
    )
    tables = [
        VARIANTS.table(
            row for model_lists in lists.values() for row in model_lists.named()
        )
    ]
    if pairs:
        tables.append(AGREEMENT.table(pairs))
        tables.append(
            DISAGREEMENTS.table(row for pair in pairs for row in pair.disagreements)
        )
    all_findings = (
        no_truth(OPTION + whole_sample(dataset.settings.limit), CONTENT),
        *findings,
    )
    of_run = counted.frame(counted.grounding()).metrics()
    metrics = {
        model: (*_metrics(dataset, of_run[model], model_lists),)
        for model, model_lists in lists.items()
    }
    replies = [tally.replies for tally in counted.by_model.values()]
    card = Scorecard(
        models={},
        summary=summary_text(_summary(lists, metrics, all_findings)),
        headline=HEADLINE if dataset.settings.grounding else "listed",
        worth_explaining=_least_grounded(lists.values()),
        tables=(*tables, *(table.table for table in streamed)),
        findings=all_findings,
        details=StreamedDetails(files=streamed, verdicts=verdicts),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=sum(counts.unasked for counts in replies),
        stale=sum(counts.stale for counts in replies),
    )
    models = {
        model: ModelScores(
            metrics=metrics[model],
            comparable=comparable(
                COMPARED,
                model_lists,
                {metric.path: metric for metric in metrics[model]},
            ),
            units={"paper": model_lists.papers},
        )
        for model, model_lists in lists.items()
    }
    return with_models(card, models, WORDS)


def _metrics(
    dataset: InvestigationDataset, of_run: Iterable[Metric], lists: ModelLists
) -> Iterator[Metric]:
    settings = dataset.settings
    draws = Resamples(
        [*lists.lists],
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="paper",
        form=settings.interval,
    )
    yield from with_intervals(measured(LISTED, lists), draws)
    for metric in of_run:
        if WORDS.is_operational(metric.path):
            yield metric


def _summary(
    lists: Mapping[str, ModelLists],
    metrics: Mapping[str, Sequence[Metric]],
    findings: Sequence[Finding],
) -> Iterator[Block]:
    yield "Variant extraction"
    rows = []
    for model, model_lists in lists.items():
        values = {metric.path: metric.value for metric in metrics[model]}
        per_paper, grounded = values["listed.per_paper"], values["listed.grounded"]
        papers = f"{len(model_lists.lists):,} of {model_lists.papers:,}"
        rows.append(
            [model, papers, f"{model_lists.total:,}", fixed(per_paper), fixed(grounded)]
        )
    names = ["model", "papers with a list", "variants", "per paper", "in the text"]
    yield wide_table(names, rows)
    yield from sample_sentences(findings)
    yield from finding_lines(findings)


def _least_grounded(models: Iterable[ModelLists]) -> str:
    """Return a paper to check first: one with a variant that its text lacks."""
    first = ""
    for model_lists in models:
        for pmcid in model_lists.lists:
            if model_lists.found[pmcid] < model_lists.judged[pmcid]:
                return pmcid
            first = first or pmcid
    return first
