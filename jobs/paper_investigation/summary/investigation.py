"""The summary text of one model's investigation, in the chosen profile's form.

The form of `clinpgx-qa` is that of recorded summaries, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from jobs.metrics import ratio
from jobs.paper_investigation.settings import PIPELINES, Settings
from jobs.paper_investigation.summary.numbers import fixed
from jobs.paper_investigation.tallies.breakdown import TOTAL, Group
from jobs.paper_investigation.tallies.figures import Figures, Papers, Value
from jobs.paper_investigation.tallies.headline import QUESTION_ACC, RECALL, SCORE
from jobs.paper_investigation.tallies.tally import Tally
from runner.scorecard import Metric

RULE = "=" * 64

SKIPS: Mapping[str, str] = {
    "no_paper_text": "no paper text",
    "paper_too_long": "too long",
    "extraction_unparsed": "unparsed extraction",
    "extraction_failed": "failed call",
}
"""The reasons every summary names, in words; others follow by their own name."""

_DASHES = f"  {'-' * 20} {'-' * 10} {'-' * 10} {'-' * 10}"


def investigation_text(
    model: str,
    tally: Tally,
    metrics: Mapping[str, Metric],
    settings: Settings,
    results: str,
) -> str:
    """The text of `{slug}_paper_investigation_summary.txt`.

    Args:
        model: whose papers these are.
        tally: of the model in one replicate.
        metrics: of the same, by path.
        settings: of the scoring.
        results: name of the file with the scored records.
    """
    form = _recorded if settings.profile == "clinpgx-qa" else _own
    return "\n".join([*form(model, tally, metrics, settings, results), ""])


def _own(
    model: str,
    tally: Tally,
    metrics: Mapping[str, Metric],
    settings: Settings,
    results: str,
) -> Iterator[str]:
    papers = tally.papers
    with_questions = metrics["papers_with_questions"].value
    yield from _head(model)
    yield f"  Papers scored:        {len(papers.scored)}"
    why = reasons(Counter(papers.skips.values()))
    yield f"  Papers skipped:       {len(papers.skips)}  ({why})"
    yield ""
    yield from _averages(
        metrics,
        "avg_question_acc",
        f"across recalled variants only; {with_questions} papers",
        "n/a",
    )
    yield from _as_zero(metrics)
    yield ""
    yield from _pipelines([(p, tally.breakdown.pipelines[p]) for p in PIPELINES])
    yield from _table_end(tally.breakdown.pipelines[TOTAL], "n/a")
    ascending = sorted(papers.scored, key=lambda p: (_score(papers, p), p))
    descending = sorted(papers.scored, key=lambda p: (-_score(papers, p), p))
    n = settings.n_examples
    yield from _examples("WORST", ascending[:n], papers, QUESTION_ACC.value)
    yield from _examples("BEST", descending[:n], papers, QUESTION_ACC.value)
    yield f"Eval results saved to {results}"


def _recorded(
    model: str,
    tally: Tally,
    metrics: Mapping[str, Metric],
    settings: Settings,
    results: str,
) -> Iterator[str]:
    """The old form: pooled question accuracy, 0.000 where nothing is defined."""
    papers = tally.papers
    yield ""
    yield from _head(model)
    yield f"  Papers scored:        {len(papers.scored)}"
    yield (
        f"  Papers skipped:       {len(papers.skips)}  (no paper text or parse failure)"
    )
    yield ""
    yield from _averages(
        metrics,
        "avg_question_acc~pooled_per_paper_zeros",
        "across recalled variants only",
        "0.000",
    )
    yield ""
    groups = tally.breakdown.pipelines
    yield from _pipelines(
        [(p, groups[p]) for p in sorted(PIPELINES) if groups[p].asked]
    )
    yield from _table_end(groups[TOTAL], "0.000")
    scored = set(papers.scored)
    ascending = sorted(
        (pmcid for pmcid in papers if pmcid in scored),
        key=lambda pmcid: _score(papers, pmcid),
    )
    n = settings.n_examples
    yield from _examples("WORST", ascending[:n], papers, _pooled_accuracy)
    yield from _examples("BEST", ascending[-n:] if n else [], papers, _pooled_accuracy)
    yield f"Eval results saved to {results}"


def _head(model: str) -> Iterator[str]:
    yield RULE
    yield f"Paper Investigation Results  |  model={model}"
    yield RULE
    yield ""


def _averages(
    metrics: Mapping[str, Metric], accuracy: str, remark: str, undefined: str
) -> Iterator[str]:
    for label, path, words in (
        ("Avg Variant Recall:", "avg_variant_recall", ""),
        ("Avg Question Acc:", accuracy, f"  ({remark})"),
        ("Avg Paper Score:", "avg_paper_score", "  (recall x question_acc)"),
    ):
        yield f"  {label:<21} {fixed(metrics[path].value, undefined)}{words}"


def _as_zero(metrics: Mapping[str, Metric]) -> Iterator[str]:
    """The score without what a model gains by failing; only where that is something."""
    for path, words in (
        ("avg_paper_score~parse_failures_as_zero", "unparsed papers as 0"),
        ("avg_paper_score~skipped_as_zero", "all skipped papers as 0"),
        ("avg_paper_score~missing_as_wrong", "missing answers as wrong"),
    ):
        metric = metrics.get(path)
        if metric and metric.value != metrics["avg_paper_score"].value:
            yield f"  {'':<21} {fixed(metric.value)}  ({words})"


def reasons(skips: Mapping[str, int]) -> str:
    """Why papers were skipped, in words: the common reasons always, others if any."""
    words = [f"{name} {skips.get(reason, 0)}" for reason, name in SKIPS.items()]
    words += [
        f"{reason.replace('_', ' ')} {n}"
        for reason, n in sorted(skips.items())
        if reason not in SKIPS
    ]
    return ", ".join(words)


def _pipelines(groups: list[tuple[str, Group]]) -> Iterator[str]:
    yield "By pipeline breakdown:"
    yield f"  {'Pipeline':<20} {'Questions':>10} {'Correct':>10} {'Accuracy':>10}"
    yield _DASHES
    for name, group in groups:
        yield _row(name, group, "n/a")


def _table_end(total: Group, undefined: str) -> Iterator[str]:
    yield _DASHES
    yield _row(TOTAL, total, undefined)
    yield ""


def _row(name: str, group: Group, undefined: str) -> str:
    accuracy = fixed(ratio(group.right, group.answered), undefined)
    return f"  {name:<20} {group.answered:>10} {group.right:>10} {accuracy:>9}"


def _examples(
    word: str, pmcids: list[str], papers: Papers, accuracy: Value
) -> Iterator[str]:
    yield f"{word} PAPERS (by paper_score):"
    for place, pmcid in enumerate(pmcids, start=1):
        recall = papers.value(pmcid, RECALL.value)
        yield (
            f"  [{place}] {pmcid}  recall={fixed(recall)}"
            f"  q_acc={fixed(papers.value(pmcid, accuracy))}"
            f"  score={fixed(papers.value(pmcid, SCORE.value))}"
        )
    yield ""


def _score(papers: Papers, pmcid: str) -> float:
    return papers.value(pmcid, SCORE.value) or 0.0


def _pooled_accuracy(paper: Figures) -> float | None:
    return paper.pooled_accuracy
