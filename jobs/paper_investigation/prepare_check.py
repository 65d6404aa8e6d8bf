"""Checks the input data: `siftlog prepare paper-investigation check`.

Prints the requests of a run at full recall, and the points to check first: questions
that can never be sent, truth variants that no text contains, answers that are revealed.
It reads the same files as a run and writes nothing.

The counts are pure: sizes, the links of questions to truth variants at full recall
under both interpretations of a joined field, and possible errors.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from jobs.paper_investigation import plan, variants
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.bench import sourced, unsourced
from jobs.paper_investigation.data import LETTERS, InvestigationDataset, PaperQuestion
from jobs.paper_investigation.inputs import load
from jobs.paper_investigation.settings import (
    PIPELINES,
    PROFILES,
    InvestigationSettings,
    Link,
)
from runner.scorecard import Finding

_NUMBER = re.compile(r"\d*\.\d+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchFacts:
    """Counts of papers and truth variants."""

    papers: int
    with_text: int
    entries: int  #: variants as listed, with repeats
    most_entries: int  #: of one paper
    papers_with_repeats: int
    distinct_fold: int  #: per paper, summed; letter case and signs folded
    distinct_keep: int
    classes: Mapping[str, int]  #: of the distinct ones under the current settings
    kinds: Mapping[str, int]  #: of the same, finer, without empty ones


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFacts:
    """Counts of questions, and those to check."""

    total: int
    papers: int
    pipelines: Mapping[str, int]
    joined: int  #: with more than one variant
    joined_in_truth: int  #: joined ones whose parts are all truth variants
    no_bench_paper: tuple[str, ...]  #: keys, if the bench lacks the paper
    unlinked: tuple[str, ...]  #: keys of those that no truth variant links to
    leaks: tuple[str, ...]  #: keys of those that reveal their answer


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """The requests if a model recalled every truth variant."""

    link: Link
    variants: int  #: truth variants of the papers that have questions
    variants_with_questions: int
    questions: int
    links: int
    most_questions: int  #: of one variant
    cap: int
    questions_capped: int
    links_capped: int
    by_paper: Mapping[str, int]  #: number of questions


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFacts:
    """Counts of questions whose sentence is in the sentence bench."""

    checked: int
    found: int
    missing: tuple[str, ...]  #: keys


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundingFacts:
    """Truth variants that occur in their paper's text; an upper bound of recall."""

    judged: Mapping[str, int]  #: by class
    grounded: Mapping[str, int]
    ungrounded: tuple[str, ...]  #: "PMCID: variant"


def bench_facts(dataset: InvestigationDataset) -> BenchFacts:
    """Count papers and truth variants."""
    sizes = [len(paper.variants) for paper in dataset.bench]
    unfolded = [len(naming.distinct(p.variants, "keep")) for p in dataset.bench]
    folded = [len(naming.distinct(p.variants, "fold")) for p in dataset.bench]
    truth = [
        variant
        for paper in dataset.bench
        for variant in plan.truth_variants(dataset, paper.pmcid)
    ]
    classes = Counter(map(naming.variant_class, truth))
    kinds = Counter(map(naming.variant_kind, truth))
    return BenchFacts(
        papers=len(dataset.bench),
        with_text=sum(paper.pmcid in dataset.papers for paper in dataset.bench),
        entries=sum(sizes),
        most_entries=max(sizes, default=0),
        papers_with_repeats=sum(
            few < many for few, many in zip(folded, sizes, strict=True)
        ),
        distinct_fold=sum(folded),
        distinct_keep=sum(unfolded),
        classes={name: classes[name] for name in naming.VARIANT_CLASSES},
        kinds={name: kinds[name] for name in naming.VARIANT_KINDS if kinds[name]},
    )


def question_facts(dataset: InvestigationDataset) -> QuestionFacts:
    """Count questions and list those to check."""
    case = dataset.settings.variant_case
    all_questions = tuple(_questions(dataset))
    pipelines = Counter(question.pipeline for question in all_questions)
    joined = joined_in_truth = 0
    unlinked, outside = [], []
    for question in all_questions:
        truth = plan.truth_variants(dataset, question.pmcid)
        parts = naming.parts(question.variant, case)
        joined += len(parts) > 1
        joined_in_truth += len(parts) > 1 and all(part in truth for part in parts)
        if dataset.paper(question.pmcid) is None:
            outside.append(_name(question))
        elif not any(
            v in truth for v in plan.question_variants(question, dataset.settings)
        ):
            unlinked.append(_name(question))
    return QuestionFacts(
        total=len(all_questions),
        papers=len(dataset.questions),
        pipelines={name: pipelines[name] for name in PIPELINES},
        joined=joined,
        joined_in_truth=joined_in_truth,
        no_bench_paper=tuple(outside),
        unlinked=tuple(unlinked),
        leaks=tuple(_name(q) for q in all_questions if _leaks(q)),
    )


def link_facts(dataset: InvestigationDataset, link: Link) -> LinkFacts:
    """Count the requests at full recall, with the cap of the settings or profile."""
    cap = (
        dataset.settings.max_questions_per_variant
        or PROFILES["clinpgx-qa"]["max_questions_per_variant"]
    )
    uncapped, capped = (
        dataset.settings.model_copy(
            update={"variant_link": link, "max_questions_per_variant": limit}
        )
        for limit in (0, cap)
    )
    by_paper: dict[str, int] = {}
    per_variant: list[int] = []
    questions_capped = links_capped = 0
    for pmcid, questions in dataset.questions.items():
        truth = plan.truth_variants(dataset, pmcid)
        groups = plan.links(questions, truth, uncapped).values()
        by_paper[pmcid] = len({q.key for group in groups for q in group})
        per_variant.extend(len(group) for group in groups)
        groups = plan.links(questions, truth, capped).values()
        questions_capped += len({q.key for group in groups for q in group})
        links_capped += sum(len(group) for group in groups)
    return LinkFacts(
        link=link,
        variants=len(per_variant),
        variants_with_questions=sum(n > 0 for n in per_variant),
        questions=sum(by_paper.values()),
        links=sum(per_variant),
        most_questions=max(per_variant, default=0),
        cap=cap,
        questions_capped=questions_capped,
        links_capped=links_capped,
        by_paper=by_paper,
    )


def sentence_facts(dataset: InvestigationDataset) -> SentenceFacts:
    """Compare the questions' sentences with the sentence bench, if there is one."""
    if not dataset.sentences:
        return SentenceFacts(checked=0, found=0, missing=())
    checked = sum(1 for _ in sourced(_questions(dataset)))
    missing = tuple(_name(question) for question in unsourced(dataset))
    return SentenceFacts(checked=checked, found=checked - len(missing), missing=missing)


def grounding_facts(dataset: InvestigationDataset) -> GroundingFacts:
    """Search each truth variant in its paper's text, one paper at a time."""
    judged: Counter[str] = Counter()
    grounded: Counter[str] = Counter()
    ungrounded = []
    for paper in dataset.bench:
        if not dataset.settings.grounding or paper.pmcid not in dataset.papers:
            continue
        truth = plan.truth_variants(dataset, paper.pmcid)
        verdicts = variants.ground(dataset.papers.text(paper.pmcid), truth)
        for variant, is_grounded in verdicts.items():
            if is_grounded is None:
                continue
            judged[naming.variant_class(variant)] += 1
            grounded[naming.variant_class(variant)] += is_grounded
            if not is_grounded:
                ungrounded.append(f"{paper.pmcid}: {truth[variant]}")
    classes = [name for name in naming.VARIANT_CLASSES if name in variants.JUDGED]
    return GroundingFacts(
        judged={name: judged[name] for name in classes},
        grounded={name: grounded[name] for name in classes},
        ungrounded=tuple(ungrounded),
    )


def _questions(dataset: InvestigationDataset) -> Iterator[PaperQuestion]:
    return itertools.chain.from_iterable(dataset.questions.values())


def _name(question: PaperQuestion) -> str:
    return f"{question.pmcid}/{question.key}"


def _leaks(question: PaperQuestion) -> bool:
    """Return whether a question contains its answer."""
    if question.options and question.correct:
        answer = question.options[LETTERS.index(question.correct)]
        return _occurs_in(answer, question.sentence)
    number = _NUMBER.search(question.expected_p_value)
    return bool(number) and _occurs_in(number[0] if number else "", question.sentence)


def _occurs_in(answer: str, sentence: str) -> bool:
    pattern = rf"(?<!\w){re.escape(answer)}(?!\w)"
    return re.search(pattern, sentence, re.IGNORECASE) is not None


MOST_EXAMPLES = 10
"""Maximum number of examples in the text; the JSON has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """The result of a check, as text and as JSON."""

    bench: BenchFacts
    questions: QuestionFacts
    links: tuple[LinkFacts, ...]  #: whole, then split
    sentences: SentenceFacts
    grounding: GroundingFacts
    findings: tuple[Finding, ...]

    @property
    def json(self) -> dict[str, object]:
        """Every number and every full list."""
        return asdict(self)

    @property
    def text(self) -> str:
        """A page for a terminal."""
        return "\n".join(_lines(self)) + "\n"


def check_data(settings: InvestigationSettings) -> DataCheck:
    """Load the data that *settings* name, and count."""
    dataset = load(settings)
    return DataCheck(
        bench=bench_facts(dataset),
        questions=question_facts(dataset),
        links=tuple(link_facts(dataset, link) for link in ("whole", "split")),
        sentences=sentence_facts(dataset),
        grounding=grounding_facts(dataset),
        findings=dataset.findings,
    )


def _lines(result: DataCheck) -> Iterator[str]:
    bench, questions = result.bench, result.questions
    yield f"bench      {bench.papers:,} papers, {bench.with_text:,} with text"
    yield (
        f"variants   {bench.entries:,} entries, at most {bench.most_entries} a paper; "
        f"distinct {bench.distinct_fold:,} folded, {bench.distinct_keep:,} as spelt; "
        f"{bench.papers_with_repeats:,} papers repeat one"
    )
    yield f"           {_counts(bench.classes)}"
    yield f"kinds      {_counts(bench.kinds)}"
    yield (
        f"questions  {questions.total:,} about {questions.papers:,} papers: "
        f"{_counts(questions.pipelines)}"
    )
    yield (
        f"joined     {questions.joined:,} name several variants, "
        f"{questions.joined_in_truth:,} of them only truth variants"
    )
    yield ""
    yield from _link_lines(result.links)
    yield ""
    yield from _concerns(result)


def _link_lines(links: Sequence[LinkFacts]) -> Iterator[str]:
    variants, cap = links[0].variants, links[0].cap
    yield f"at full recall ({variants:,} truth variants of papers with questions)"
    yield (
        f"  link    with questions   questions   links   most a variant   "
        f"cap {cap}: questions   links"
    )
    for facts in links:
        yield (
            f"  {facts.link:<6}{facts.variants_with_questions:>16,}"
            f"{facts.questions:>12,}{facts.links:>8,}{facts.most_questions:>17,}"
            f"{facts.questions_capped:>{len(str(cap)) + 19},}{facts.links_capped:>8,}"
        )


def _concerns(result: DataCheck) -> Iterator[str]:
    questions, sentences = result.questions, result.sentences
    ground = result.grounding
    if sentences.checked:
        yield (
            f"sentences  {sentences.found:,} of {sentences.checked:,} questions' "
            f"sentences are in the sentence bench{_examples(sentences.missing)}"
        )
    judged = ", ".join(
        f"{name} {ground.grounded[name]:,}/{n:,}" for name, n in ground.judged.items()
    )
    yield f"grounding  truth found in its text: {judged}{_examples(ground.ungrounded)}"
    for label, keys in (
        ("outside", questions.no_bench_paper),
        ("unlinked", questions.unlinked),
        ("leaks", questions.leaks),
    ):
        yield f"{label:<9}  {len(keys):,} {_MEANING[label]}{_examples(keys)}"
    for finding in result.findings:
        yield f"{finding.severity:<9}  {finding.line}"


_MEANING = {
    "outside": "questions are about papers that the bench does not name",
    "unlinked": "questions name no truth variant, so no recall leads to them",
    "leaks": "questions show their own answer",
}


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())


def _examples(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = (
        f" and {len(names) - MOST_EXAMPLES:,} more"
        if len(names) > MOST_EXAMPLES
        else ""
    )
    return f": {', '.join(names[:MOST_EXAMPLES])}{more}"
