"""What the data of a run would allow, before anything is spent on it.

Pure counts over a loaded dataset: sizes, how questions link to truth variants at full
recall under both readings of a joined field, and what looks wrong. `check.py` prints
them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.paper_investigation import grounding, linking
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.sentences import sourced, unsourced
from jobs.paper_investigation.settings import PIPELINES, PROFILES, Link

_NUMBER = re.compile(r"\d*\.\d+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchFacts:
    """The truth variants."""

    papers: int
    with_text: int
    entries: int  #: variants as listed, repeats included
    most_entries: int  #: of one paper
    papers_with_repeats: int
    distinct_fold: int  #: per paper, summed; letter case and signs folded
    distinct_keep: int
    classes: Mapping[str, int]  #: of the distinct ones under the present settings
    kinds: Mapping[str, int]  #: of the same, finer, without those that do not occur


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFacts:
    """The questions, and those among them that need a look."""

    total: int
    papers: int
    pipelines: Mapping[str, int]
    joined: int  #: naming more than one variant
    joined_in_truth: int  #: of them, those whose every part is a truth variant
    no_bench_paper: tuple[str, ...]  #: keys of those about a paper outside the bench
    unlinked: tuple[str, ...]  #: keys of those that no truth variant can lead to
    leaks: tuple[str, ...]  #: keys of those that give their answer away


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """What would be asked if a model recalled every truth variant."""

    link: Link
    variants: int  #: truth variants of the papers that have questions
    variants_with_questions: int
    questions: int
    links: int
    most_questions: int  #: of one variant
    cap: int
    questions_capped: int
    links_capped: int
    by_paper: Mapping[str, int]  #: questions


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFacts:
    """Whether the questions' sentences are those of the sentence bench."""

    checked: int
    found: int
    missing: tuple[str, ...]  #: keys


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundingFacts:
    """Truth variants that occur in their paper's text; a ceiling for recall."""

    judged: Mapping[str, int]  #: by class
    grounded: Mapping[str, int]
    ungrounded: tuple[str, ...]  #: "PMCID: variant"


def bench_facts(dataset: Dataset) -> BenchFacts:
    """Count papers and truth variants."""
    sizes = [len(paper.variants) for paper in dataset.bench]
    kept = [len(naming.distinct(p.variants, "keep")) for p in dataset.bench]
    folded = [len(naming.distinct(p.variants, "fold")) for p in dataset.bench]
    truth = [
        variant
        for paper in dataset.bench
        for variant in linking.truth(dataset, paper.pmcid)
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
        distinct_keep=sum(kept),
        classes={name: classes[name] for name in naming.VARIANT_CLASSES},
        kinds={name: kinds[name] for name in naming.VARIANT_KINDS if kinds[name]},
    )


def question_facts(dataset: Dataset) -> QuestionFacts:
    """Count questions and name the odd ones."""
    case = dataset.settings.variant_case
    everything = tuple(_questions(dataset))
    pipelines = Counter(question.pipeline for question in everything)
    joined = joined_in_truth = 0
    unlinked, outside = [], []
    for question in everything:
        truth = linking.truth(dataset, question.pmcid)
        parts = naming.parts(question.variant, case)
        joined += len(parts) > 1
        joined_in_truth += len(parts) > 1 and all(part in truth for part in parts)
        if dataset.paper(question.pmcid) is None:
            outside.append(_name(question))
        elif not any(v in truth for v in linking.members(question, dataset.settings)):
            unlinked.append(_name(question))
    return QuestionFacts(
        total=len(everything),
        papers=len(dataset.questions),
        pipelines={name: pipelines[name] for name in PIPELINES},
        joined=joined,
        joined_in_truth=joined_in_truth,
        no_bench_paper=tuple(outside),
        unlinked=tuple(unlinked),
        leaks=tuple(_name(q) for q in everything if _leaks(q)),
    )


def link_facts(dataset: Dataset, link: Link) -> LinkFacts:
    """Count what full recall would ask; the cap is the settings', or the profile's."""
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
        truth = linking.truth(dataset, pmcid)
        groups = linking.links(questions, truth, uncapped).values()
        by_paper[pmcid] = len({q.key for group in groups for q in group})
        per_variant.extend(len(group) for group in groups)
        groups = linking.links(questions, truth, capped).values()
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


def sentence_facts(dataset: Dataset) -> SentenceFacts:
    """Look the questions' sentences up; nothing is checked without a sentence bench."""
    if not dataset.sentences:
        return SentenceFacts(checked=0, found=0, missing=())
    checked = sum(1 for _ in sourced(_questions(dataset)))
    missing = tuple(_name(question) for question in unsourced(dataset))
    return SentenceFacts(checked=checked, found=checked - len(missing), missing=missing)


def grounding_facts(dataset: Dataset) -> GroundingFacts:
    """Look each truth variant up in its paper's text, one paper at a time."""
    judged: Counter[str] = Counter()
    grounded: Counter[str] = Counter()
    ungrounded = []
    for paper in dataset.bench:
        if not dataset.settings.grounding or paper.pmcid not in dataset.papers:
            continue
        truth = linking.truth(dataset, paper.pmcid)
        verdicts = grounding.ground(dataset.papers.text(paper.pmcid), truth)
        for variant, stands in verdicts.items():
            if stands is None:
                continue
            judged[naming.variant_class(variant)] += 1
            grounded[naming.variant_class(variant)] += stands
            if not stands:
                ungrounded.append(f"{paper.pmcid}: {truth[variant]}")
    classes = [name for name in naming.VARIANT_CLASSES if name in grounding.JUDGED]
    return GroundingFacts(
        judged={name: judged[name] for name in classes},
        grounded={name: grounded[name] for name in classes},
        ungrounded=tuple(ungrounded),
    )


def _questions(dataset: Dataset) -> Iterator[Question]:
    return itertools.chain.from_iterable(dataset.questions.values())


def _name(question: Question) -> str:
    return f"{question.pmcid}/{question.key}"


def _leaks(question: Question) -> bool:
    """Whether the answer stands in what is shown of the question itself."""
    if question.options and question.correct:
        answer = question.options["abcd".index(question.correct)]
        return _stands_in(answer, question.sentence)
    number = _NUMBER.search(question.expected_p_value)
    return bool(number) and _stands_in(number[0] if number else "", question.sentence)


def _stands_in(answer: str, sentence: str) -> bool:
    pattern = rf"(?<!\w){re.escape(answer)}(?!\w)"
    return re.search(pattern, sentence, re.IGNORECASE) is not None
