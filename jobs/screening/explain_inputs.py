"""Explains a review's negatives without a run: `siftlog explain screening [REVIEW]`.

Nothing is written and no model is called. The page has numbered steps, then the
diagram.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jobs.kit.text_format import (
    TextColumn,
    hanging_lines,
    joined_words,
    plural,
    text_table,
)
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
from store.document import NONE, WIDTH
from store.printable import cut, display_width, one_line

INCLUDED = 5
"""Included papers that are listed."""
MOST_LISTED = 10
"""Candidates, and drawn papers of a kind, that are listed; `--json` has all."""
DIGITS = 12
"""Of a lot: what a page shows of 64."""

DROP_REASONS = {
    "too_few_included": "it includes too few papers",
    "no_candidates": "it has no near-miss candidate",
    "no_text": "nothing can be read of it, or of any paper that it includes",
}
_PLAIN = str.maketrans("┌┐└┘┬┴─│▼…", "++++++-|v~")


def page(account: NegativesTrace, *, plain: bool = False) -> str:
    """The page.

    Args:
        account: of one review.
        plain: in ASCII alone.
    """
    lines = (*_steps(account), "", *diagram(account))
    return "\n".join(map(_ascii, lines) if plain else lines)


def _steps(account: NegativesTrace) -> Iterator[str]:
    figures = account.statistics
    yield cut(f"{account.review}  {one_line(account.title) or UNTITLED}", WIDTH)
    yield ""
    without = figures.n_references - figures.n_included
    yield (
        f"1. Included: {plural(figures.n_included, 'paper')} with an abstract; "
        f"without, relating none: {without:,}."
    )
    yield from _titled(account.included[:INCLUDED])
    yield from _more(figures.n_included - INCLUDED)
    yield (
        f"2. Related: {plural(figures.n_related_reviews, 'review')} "
        f"{'shares' if figures.n_related_reviews == 1 else 'share'} a paper with it."
    )
    for related_review in account.related:
        yield from _titled([(related_review.review, related_review.title)])
        yield from _wrapped(
            f"shares {len(related_review.shared):,}: ", related_review.shared
        )
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


def _compared(account: NegativesTrace, near: FirstNearMiss) -> Iterator[str]:
    """Both abstracts: why a near miss is near, and what a reader must tell apart."""
    yield "7. Compared: the review and its first near miss, by their abstracts."
    for name, title, abstract in (
        (account.review, account.title, near.review_abstract),
        (near.paper, near.title, near.abstract),
    ):
        yield from _titled([(name, title)])
        yield from hanging_lines("       ", one_line(abstract).strip() or NO_ABSTRACT)


def _candidates(account: NegativesTrace) -> Iterator[str]:
    listed = account.candidates[:MOST_LISTED]
    if listed:
        yield from text_table(
            [
                _column("paper", (candidate.paper for candidate in listed)),
                _column("known", (candidate.known or NONE for candidate in listed)),
                _column(
                    "brought by", (joined_words(candidate.by) for candidate in listed)
                ),
                _column("title", (candidate.title or UNTITLED for candidate in listed)),
            ],
            indent="     ",
        )
    yield from _more(len(account.candidates) - MOST_LISTED)


def _draw(kind: DrawnKind) -> Iterator[str]:
    short = kind.wanted - len(kind.lots)
    lack = f"; {short:,} short of {kind.wanted:,}" if short else ""
    yield f"   {kind.kind}: {len(kind.lots):,} of {kind.pool:,}{lack}"
    listed = kind.lots[:MOST_LISTED]
    if not listed:
        return
    yield from text_table(
        [
            TextColumn(
                title="rank", cells=[str(rank) for rank, _ in enumerate(listed, 1)]
            ),
            _column("hash", (lot.sha256[:DIGITS] for lot in listed)),
            _column("paper", (lot.paper for lot in listed)),
        ],
        indent="     ",
    )
    yield from _more(len(kind.lots) - MOST_LISTED)


def _column(title: str, cells: Iterable[str]) -> TextColumn:
    return TextColumn(title=title, cells=list(map(one_line, cells)), has_words=True)


def _titled(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, title in rows:
        yield cut(f"     {one_line(name)}  {one_line(title) or UNTITLED}", WIDTH)


def _more(n: int) -> Iterator[str]:
    if n > 0:
        yield f"     and {n:,} more"


def _wrapped(label: str, papers: Iterable[str]) -> Iterator[str]:
    """Ids behind a label, on as many lines as they take; one alone may be cut."""
    line = f"       {label}"
    blank = " " * len(line)
    for paper in map(one_line, papers):
        if display_width(f"{line}{paper}") > WIDTH and line.strip():
            yield cut(line.rstrip(), WIDTH)
            line = blank
        line += f"{paper} "
    yield cut(line.rstrip(), WIDTH)


def _ascii(line: str) -> str:
    """A line in as many cells: letters without their marks, ? for what has none."""
    signs = []
    for sign in line.translate(_PLAIN):
        base = unicodedata.normalize("NFKD", sign)[0]
        signs.append(base if base.isascii() else "?" * display_width(sign))
    return "".join(signs)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsExplanation:
    """An account in both forms."""

    text: str
    json: dict[str, object]


def explain_inputs(
    settings: ScreeningSettings, items: tuple[str, ...]
) -> InputsExplanation:
    """How a review comes to its negatives.

    Args:
        settings: the inputs and the draw, as for `prepare`.
        items: a review's id; none: the first one that is easy to follow.

    Raises:
        UsageError: more than one is named, or no inputs are.
        DatasetError: an input is off, or no such review cites anything.
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
