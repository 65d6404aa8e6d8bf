"""`siftlog prepare paper-investigation check`: is this data fit for a run?

Prints what a run at full recall would ask, and what a person should look at first:
questions that can never be asked, truth that no text holds, answers that are given
away. It reads the same files as a run and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from jobs.paper_investigation import facts
from jobs.paper_investigation.load import load
from jobs.paper_investigation.settings import Settings
from runner.scorecard import Finding

SHOWN = 10
"""Examples of a list in the text; the JSON has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result, for people and for programs."""

    bench: facts.BenchFacts
    questions: facts.QuestionFacts
    links: tuple[facts.LinkFacts, ...]  #: whole, then split
    sentences: facts.SentenceFacts
    grounding: facts.GroundingFacts
    findings: tuple[Finding, ...]

    @property
    def json(self) -> dict[str, object]:
        """Every figure and every list in full."""
        return asdict(self)

    @property
    def text(self) -> str:
        """A page for a terminal."""
        return "\n".join(_lines(self)) + "\n"


def check(settings: Settings) -> Check:
    """Load the data that *settings* name, and count."""
    dataset = load(settings)
    return Check(
        bench=facts.bench_facts(dataset),
        questions=facts.question_facts(dataset),
        links=tuple(facts.link_facts(dataset, link) for link in ("whole", "split")),
        sentences=facts.sentence_facts(dataset),
        grounding=facts.grounding_facts(dataset),
        findings=dataset.findings,
    )


def _lines(result: Check) -> Iterator[str]:
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


def _link_lines(links: Sequence[facts.LinkFacts]) -> Iterator[str]:
    variants, cap = links[0].variants, links[0].cap
    yield f"at full recall ({variants:,} truth variants of papers with questions)"
    yield (
        f"  link    with questions   questions   links   most a variant   "
        f"cap {cap}: questions   links"
    )
    for each in links:
        yield (
            f"  {each.link:<6}{each.variants_with_questions:>16,}"
            f"{each.questions:>12,}{each.links:>8,}{each.most_questions:>17,}"
            f"{each.questions_capped:>{len(str(cap)) + 19},}{each.links_capped:>8,}"
        )


def _concerns(result: Check) -> Iterator[str]:
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
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f": {', '.join(names[:SHOWN])}{more}"
