"""The documents of a scoring: in short for programs, and on failures for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.review_benchmark.json_file import json_file
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.lost import LOST_AT, PaperMatch
from jobs.review_benchmark.measuring.results import Results
from jobs.review_benchmark.summary.reasons import failure_reasons, percent
from jobs.text import plural
from runner.scorecard import Artifact, Metric
from store.printable import printable

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]<>#|~&"})
"""What Markdown and the HTML in it act on."""


def documents(
    results: Results, models: Mapping[str, Sequence[Metric]], summary: str
) -> Iterator[Artifact]:
    """`summary.json`, `summary.txt` and `failure_report.md`.

    Args:
        results: what was measured.
        models: all metrics, by model.
        summary: the text that a terminal shows, in full.
    """
    yield json_file("summary.json", _summary(results, models))
    yield Artifact(name="summary.txt", text=summary)
    lines = (line for each in _failures(results) for line in (each, ""))
    yield Artifact(name="failure_report.md", text="\n".join(lines))


def _summary(
    results: Results, models: Mapping[str, Sequence[Metric]]
) -> dict[str, Any]:
    settings = results.dataset.settings
    return {
        "models": {
            model: {
                "metrics": {
                    own.path: _metric(own)
                    for own in models[model]
                    if not own.path.startswith("review.")
                },
                "reviews": {
                    review: {
                        "passed": found.passes(settings.target_recall),
                        "recall": found.recall,
                        "precision": found.precision,
                        "ceiling": found.ceiling,
                        "failure_reasons": list(failure_reasons(found, settings)),
                    }
                    for review, found in column.benchmarks.items()
                },
            }
            for model, column in results.columns.items()
        },
        "target_recall": settings.target_recall,
        "matching": results.matching,
        "truth_sha256": dict(results.truth),
        "database_sha256": results.database,
    }


def _metric(own: Metric) -> dict[str, Any]:
    return {
        "value": own.value,
        "n": own.n,
        "n_defined": own.n if own.n_defined is None else own.n_defined,
        "lo": own.lo,
        "hi": own.hi,
        "std": own.std,
    }


def _failures(results: Results) -> Iterator[str]:
    """A paragraph, heading or list each; every text from outside is made plain."""
    target = results.dataset.settings.target_recall
    yield "# Reviews that failed"
    yield (
        f"A review passes at a recall of {percent(target)}. What was lost is listed by "
        "the step at which it was lost, with what can be done about it."
    )
    for model, column in results.columns.items():
        yield f"## {_plain(model)}"
        failed = [
            review
            for review, found in column.benchmarks.items()
            if not found.passes(target)
        ]
        yield (
            f"{len(failed)} of {plural(len(column.benchmarks), 'review')} failed."
            if failed
            else f"All of {plural(len(column.benchmarks), 'review')} passed."
        )
        for review in failed:
            yield from _failed(results, column, review)


def _failed(results: Results, column: Column, review: str) -> Iterator[str]:
    found = column.benchmarks[review]
    titles = {own.id: own.title for own in results.sheet.reviews}
    yield f"### {_plain(review)}: {_plain(titles[review])}"
    reached = f"Recall {found.recall:.1%}; these papers allow {found.ceiling:.1%}"
    reasons = failure_reasons(found, results.dataset.settings)
    yield "\n".join(f"- {_plain(each)}" for each in (reached, *reasons))
    lost = column.lost(review)
    for step in LOST_AT:
        papers = [own for own in lost if own.lost_at == step]
        if papers:
            yield f"`{step}` ({len(papers)}):"
            yield "\n".join(map(_paper, papers))


def _paper(own: PaperMatch) -> str:
    name = f"{own.paper.ref_id}: " if own.paper.ref_id else ""
    title = own.paper.title or own.paper.name
    said = f" It says: {own.rationale}" if own.rationale else ""
    return f"- {_plain(name + title)}\n  {_plain(own.resolution + '.' + said)}"


def _plain(text: str) -> str:
    """A text from outside that neither a terminal nor Markdown acts on, on one line."""
    return printable(" ".join(text.split())).translate(_MARKDOWN)
