"""Explains a review's negatives without a run: `siftlog explain screening [REVIEW]`.

Nothing is written and no model is called. The page has numbered steps, then the
diagram.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jobs.kit.text_format import joined_words, plural
from jobs.screening.corpus import read_corpus
from jobs.screening.explain import NO_ABSTRACT
from jobs.screening.graph import Graph
from jobs.screening.negatives_trace import (
    UNTITLED,
    DrawnKind,
    FirstNearMiss,
    NegativesTrace,
    diagram,
    trace_negatives,
)
from jobs.screening.settings import ScreeningSettings
from runner.errors import UsageError
from store.document import Block, Fact, Numbers, TableBlock, Words, as_text
from store.printable import display_width, one_line

INCLUDED = 5
"""Number of included papers that are listed."""
MOST_LISTED = 10
"""Number of candidates, and of drawn papers per kind, that are listed; `--json` has
all."""
DIGITS = 12
"""Digits of a lot that a page shows, of 64."""

DROP_REASONS = {
    "too_few_included": "it includes too few papers",
    "no_candidates": "it has no near-miss candidate",
    "no_text": "neither it nor any paper that it includes has a text",
}
_PLAIN = str.maketrans("┌┐└┘┬┴─│▼…", "++++++-|v~")


def page(account: NegativesTrace, *, plain: bool = False) -> str:
    """Return the page as text.

    Args:
        account: trace of one review.
        plain: in ASCII only.
    """
    text = as_text([*_steps(account), "", *diagram(account)])
    return "\n".join(map(_ascii, text.split("\n"))) if plain else text


def _steps(account: NegativesTrace) -> Iterator[Block]:
    figures = account.statistics
    yield _titled(account.review, account.title, indent=0)
    yield ""
    without = figures.n_references - figures.n_included
    yield (
        f"1. Included: {plural(figures.n_included, 'paper')} with an abstract; "
        f"without, relating none: {without:,}."
    )
    yield from (_titled(*paper) for paper in account.included[:INCLUDED])
    if figures.n_included > INCLUDED:
        yield f"     and {figures.n_included - INCLUDED:,} more"
    yield (
        f"2. Related: {plural(figures.n_related_reviews, 'review')} "
        f"{'shares' if figures.n_related_reviews == 1 else 'share'} a paper with it."
    )
    for related_review in account.related:
        yield _titled(related_review.review, related_review.title)
        label = f"shares {len(related_review.shared):,}: "
        yield Fact(label, joined_words(related_review.shared), 7, 0)
    yield (
        f"3. Collected: {plural(figures.n_related_papers, 'paper')} with an abstract "
        "that they include."
    )
    yield (
        f"4. Removed: {figures.n_related_papers - figures.n_candidates:,} that the "
        f"review includes itself; {account.without_abstract:,} without an abstract;"
    )
    yield f"   known exclusions, left to their own kind: {account.known_left_out:,}."
    yield f"5. Candidates: {plural(figures.n_candidates, 'paper')}, SHA-256"
    yield f"   {figures.candidates_sha256}"
    yield from _candidates(account)
    yield f"6. Draw: by hash, seed {account.seed}."
    if account.dropped:
        yield f"   The review is not in the set: {DROP_REASONS[account.dropped]}."
        return
    for kind in account.drawn_kinds:
        if kind.kind == "included" and len(kind.lots) == kind.pool:
            yield f"   included: all {kind.pool:,}"
        else:
            yield from _draw(kind)
    if account.compared is not None:
        yield from _compared(account, account.compared)


def _compared(account: NegativesTrace, near: FirstNearMiss) -> Iterator[Block]:
    """Yield both abstracts, to show why a near miss resembles the review."""
    yield "7. Compared: the review and its first near miss, by their abstracts."
    for name, title, abstract in (
        (account.review, account.title, near.review_abstract),
        (near.paper, near.title, near.abstract),
    ):
        yield _titled(name, title)
        yield Fact("", abstract.strip() or NO_ABSTRACT, 7, 0)


def _candidates(account: NegativesTrace) -> Iterator[Block]:
    if account.candidates:
        yield TableBlock(
            [Words("paper"), Words("known"), Words("brought by"), Words("title")],
            [
                (
                    candidate.paper,
                    candidate.known or None,
                    joined_words(candidate.by),
                    candidate.title or UNTITLED,
                )
                for candidate in account.candidates[:MOST_LISTED]
            ],
            indent=5,
            total=len(account.candidates),
        )


def _draw(kind: DrawnKind) -> Iterator[Block]:
    short = kind.wanted - len(kind.lots)
    lack = f"; {short:,} short of {kind.wanted:,}" if short else ""
    yield f"   {kind.kind}: {len(kind.lots):,} of {kind.pool:,}{lack}"
    if kind.lots:
        yield TableBlock(
            [Numbers("rank"), Words("hash"), Words("paper")],
            [
                (rank, lot.sha256[:DIGITS], lot.paper)
                for rank, lot in enumerate(kind.lots[:MOST_LISTED], 1)
            ],
            indent=5,
            total=len(kind.lots),
        )


def _titled(name: str, title: str, indent: int = 5) -> Fact:
    text = f"{name}  {one_line(title) or UNTITLED}"
    return Fact("", text, indent, width=0, is_cut=True)


def _ascii(line: str) -> str:
    """Convert a line to ASCII of the same width, with ? for unknown signs."""
    signs = []
    for sign in line.translate(_PLAIN):
        base = unicodedata.normalize("NFKD", sign)[0]
        signs.append(base if base.isascii() else "?" * display_width(sign))
    return "".join(signs)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsExplanation:
    """A trace as text and as JSON."""

    text: str
    json: dict[str, object]


def explain_inputs(
    settings: ScreeningSettings, items: tuple[str, ...]
) -> InputsExplanation:
    """Explain how the negatives of a review are chosen.

    Args:
        settings: the inputs and the draw, as for `prepare`.
        items: a review's id; if empty, the first one that is easy to follow.

    Raises:
        UsageError: more than one is named, or no inputs are.
        DatasetError: an input is invalid, or no such review cites a paper.
    """
    if len(items) > 1:
        raise UsageError("explain screening takes one review at a time.")
    corpus = read_corpus(settings)
    graph = Graph(corpus, settings.max_paper_degree)
    account = trace_negatives(corpus, graph, settings, *items)
    return InputsExplanation(
        text=page(account, plain=settings.ascii), json=_json(account)
    )


def _json(account: NegativesTrace) -> dict[str, Any]:
    return {
        **asdict(account.statistics),
        "title": account.title,
        "included": [
            {"paper": paper, "title": title} for paper, title in account.included
        ],
        "related": [asdict(related_review) for related_review in account.related],
        "removed": {
            "included": account.statistics.n_related_papers
            - account.statistics.n_candidates,
            "no_abstract": account.without_abstract,
            "known_exclusions": account.known_left_out,
        },
        "candidates": [asdict(candidate) for candidate in account.candidates],
        "seed": account.seed,
        "draw": {
            kind.kind: {
                "pool": kind.pool,
                "wanted": kind.wanted,
                "drawn": [asdict(lot) for lot in kind.lots],
            }
            for kind in account.drawn_kinds
        },
        "dropped": account.dropped or None,
    }
